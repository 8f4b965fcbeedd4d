# jobgen pbs --site ./site.toml --nodes 1 --gpus-per-node 8 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=1:ncpus=48:mpiprocs=8:ngpus=8:gpu_type=2080ti:mem=184gb
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q gpu
# jobgen: note: the launcher is torchrun, that of site site
