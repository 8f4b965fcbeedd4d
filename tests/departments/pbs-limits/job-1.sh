# jobgen pbs --site ./site.toml --nodes 2 --queue large -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4:mem=500gb
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q large
# jobgen: note: the launcher is torchrun, that of site site
