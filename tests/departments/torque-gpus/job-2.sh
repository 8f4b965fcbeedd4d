# jobgen pbs --site ./site.toml --nodes 1 --gpus-per-node 4 --walltime 1h -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=1:ppn=32:gpus=4
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q entry
# jobgen: note: the launcher is torchrun, that of site site
