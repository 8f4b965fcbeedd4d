# jobgen pbs --site ./site.toml --nodes 1 --ranks-per-node 64 --cpus-per-rank 1 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=1:ppn=64
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q main
# jobgen: note: the launcher is torchrun, that of site site
