#!/bin/bash
#PBS -N told
#PBS -l nodes=2:ppn=4:gpus=4:a100:ib
#PBS -l walltime=1:00:00,qos=high,naccesspolicy=singlejob
#PBS -W x=FLAGS:ADVRES:night.1
#PBS -W depend=afterokarray:12[].head,after:7
#PBS -a 12312000
#PBS -p 5
#PBS -t 1-4%2
#PBS -j oe
#PBS -o told-$PBS_JOBID.out
#PBS -m n
cd "$PBS_O_WORKDIR" || exit 1
mpirun -np 8 python train.py
