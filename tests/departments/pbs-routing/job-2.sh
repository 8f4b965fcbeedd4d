# jobgen pbs --site ./site.toml --nodes 1 --queue debug --walltime 10m -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=1:ncpus=32:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS -l walltime=00:10:00
#PBS -j oe
#PBS -q debug
# jobgen: note: the launcher is torchrun, that of site site
