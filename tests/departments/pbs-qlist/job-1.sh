# jobgen pbs --site ./site.toml --nodes 2 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q gpu
# jobgen: note: the launcher is torchrun, that of site site
