# jobgen pbs --site ./site.toml --nodes 1 --queue cpu --accelerator cpu --ranks-per-node 4 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=1:ncpus=128:mpiprocs=4
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q cpu
# jobgen: note: the launcher is torchrun, that of site site
