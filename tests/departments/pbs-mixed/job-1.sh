# jobgen pbs --site ./site.toml --nodes 2 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=128:mpiprocs=4:ngpus=4:gpu_type=a100:mem=1000gb
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q gpu
# jobgen: note: queue gpu of pbssrv: the job gets 2 nodes with 4 x a100, 128 cores, 1000G; --gpus-per-node TYPE:N or --constraint chooses others: 1 node with 8 x 2080ti, 48 cores, 190G
# jobgen: note: the launcher is torchrun, that of site site
