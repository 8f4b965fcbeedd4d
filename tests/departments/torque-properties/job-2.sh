# jobgen pbs --site ./site.toml --nodes 1 --queue cpu --accelerator cpu --ranks-per-node 4 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=1:ppn=32
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q cpu
# jobgen: note: the launcher is torchrun, that of site site
