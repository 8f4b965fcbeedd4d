# jobgen pbs --site ./site.toml --nodes 2 --ranks-per-node 4 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=16
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q main
# jobgen: note: the launcher is torchrun, that of site site
