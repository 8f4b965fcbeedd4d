# jobgen pbs --site ./site.toml --nodes 1 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=1:ncpus=32:mpiprocs=2:ngpus=2
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q small
# jobgen: note: the launcher is torchrun, that of site site
