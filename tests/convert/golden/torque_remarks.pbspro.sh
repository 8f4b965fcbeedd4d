#!/bin/bash
#PBS -N told
#PBS -l select=2:ncpus=4:mpiprocs=4:ngpus=4
#PBS -l place=scatter:excl
#PBS -l walltime=01:00:00
#PBS -J 1-4%2
#PBS -W depend=afterok:12[],after:7
#PBS -j oe
#PBS -m n
#PBS -a 12312000
#PBS -p 5
# not translated: a100:ib of -l nodes: must be a resource of a node in PBS Pro, such as gpu_type=a100
# not translated: -l qos=high: PBS Pro has no equivalent; use a queue
# not translated: -W x=FLAGS:ADVRES:night.1: reservations of PBS Pro are queues with names such as R12
unset OMP_NUM_THREADS  # PBS Pro sets it to the cores of a node
exec > "told-${PBS_JOBID%%[!0-9]*}.out-$PBS_ARRAY_INDEX" 2>&1
cd "$PBS_O_WORKDIR" || exit 1
mpirun -np 8 python train.py
# 3: a100:ib of -l nodes: must be a resource of a node in PBS Pro, such as gpu_type=a100
# 4: -l qos=high: PBS Pro has no equivalent; use a queue
# 5: -W x=FLAGS:ADVRES:night.1: reservations of PBS Pro are queues with names such as R12
# 6: look: -W depend=afterokarray:12[].head,after:7: names a job of Torque: write the number of a job of PBS Pro
# 9: look: -t 1-4%2: programs that read PBS_ARRAYID find PBS_ARRAY_INDEX
# 11: look: -o told-$PBS_JOBID.out: the script opens it with exec; what is printed before that is in the log of PBS Pro
# 11: look: the output file told-$PBS_JOBID.out: Torque appends -INDEX to the name of the log of each task
