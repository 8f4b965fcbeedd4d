# jobgen pbs --site ./site.toml --nodes 2 --walltime 1h -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=16:gpus=2
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q entry
# jobgen: note: queue entry of tqsrv: the job gets 2 nodes with 2 accelerators, 16 cores, 24105M; --gpus-per-node TYPE:N or --constraint chooses others: 1 node with 4 accelerators, 32 cores, 24105M
