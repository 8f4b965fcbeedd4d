#!/bin/bash
#PBS -N told
#PBS -l select=2:ncpus=4:mpiprocs=4:ngpus=4
#PBS -l place=scatter:excl
#PBS -l walltime=01:00:00
#PBS -J 1-4%2
#PBS -W depend=afterok:12[],after:7
#PBS -j oe
#PBS -m n
#PBS -q night.1
#PBS -a 12312000
#PBS -p 5
# not translated: the output file told-$PBS_JOBID.out: PBS Pro does not support %j in a name; remove it
# not translated: -l nodes=2:ppn=4:gpus=4:a100:ib: must be a resource of a node in PBS Pro, such as gpu_type=a100
# not translated: -l qos=high: PBS Pro has no equivalent; use a queue
cd "$PBS_O_WORKDIR" || exit 1
mpirun -np 8 python train.py
# 2: the output file told-$PBS_JOBID.out: PBS Pro does not support %j in a name; remove it
# 3: -l nodes=2:ppn=4:gpus=4:a100:ib: must be a resource of a node in PBS Pro, such as gpu_type=a100
# 4: -l qos=high: PBS Pro has no equivalent; use a queue
