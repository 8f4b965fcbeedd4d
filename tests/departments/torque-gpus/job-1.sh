# jobgen pbs --site ./site.toml --nodes 2 --walltime 1h -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=16:gpus=2
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q entry
# jobgen: note: the launcher is torchrun, that of site site
