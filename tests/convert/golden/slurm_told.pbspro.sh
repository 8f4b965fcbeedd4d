#!/bin/bash
#PBS -N told
#PBS -l select=2:ncpus=1:mpiprocs=1
#PBS -l place=scatter:excl
#PBS -l walltime=10:00:00
#PBS -J 0-9%3
#PBS -W depend=afterok:12
#PBS -j oe
#PBS -m e
#PBS -M me@example.org
#PBS -V
#PBS -q R12
#PBS -l matlab=2
#PBS -l ansys=1
#PBS -a 203001312000.30
#PBS -p -5
# not translated: the output file %x-%A-%a.out: PBS Pro does not support %A in a name; remove it
# not translated: --qos=high: PBS Pro has no equivalent; use a queue
# not translated: --constraint=a100&ib: must be a resource of a node in PBS Pro, such as gpu_type=a100
# not translated: --comment=the last one: PBS Pro does not store comments of users
# not translated: --mail-type=END,TIME_LIMIT: TIME_LIMIT has no counterpart in PBS Pro
# not translated: --dependency=afterok:12,aftercorr:13: aftercorr:13 has no counterpart in PBS Pro
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
mpirun -np 2 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node --bind-to none -x PATH hostname
# 2: the output file %x-%A-%a.out: PBS Pro does not support %A in a name; remove it
# 4: --qos=high: PBS Pro has no equivalent; use a queue
# 5: --constraint=a100&ib: must be a resource of a node in PBS Pro, such as gpu_type=a100
# 7: --comment=the last one: PBS Pro does not store comments of users
# 13: --mail-type=END,TIME_LIMIT: TIME_LIMIT has no counterpart in PBS Pro
# 14: --dependency=afterok:12,aftercorr:13: aftercorr:13 has no counterpart in PBS Pro
