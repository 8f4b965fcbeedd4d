#!/bin/bash
#PBS -N digits
#PBS -l nodes=2:ppn=4:gpus=4
#PBS -l walltime=00:30:00
#PBS -t 1,3,5
#PBS -o digits-$PBS_JOBID.log
#PBS -j oe
#PBS -V
set -euo pipefail
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
export NCCL_DEBUG=WARN
cd "$PBS_O_WORKDIR/work"
mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none -x PATH -x NCCL_DEBUG python3 train.py --seed "$PBS_ARRAYID" --data /data/digits
# 12: --cpu-bind cores: has no counterpart
