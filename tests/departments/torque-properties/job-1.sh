# jobgen pbs --site ./site.toml --nodes 2 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=16:gpus=4
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q gpu
# jobgen: note: the launcher is torchrun, that of site site
