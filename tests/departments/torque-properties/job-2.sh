# jobgen pbs --site ./site.toml --nodes 1 --queue cpu --accelerator cpu --ranks-per-node 4 -- train.py
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=1:ppn=16
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q cpu
# jobgen: note: queue cpu of tqsrv: the job gets 2 nodes with 4 accelerators, 16 cores, 24105M, features k80; --gpus-per-node TYPE:N or --constraint chooses others: 1 node with 2 accelerators, 32 cores, 24105M, features fat
