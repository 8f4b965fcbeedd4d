#!/bin/bash
#PBS -N digits
#PBS -l select=2:ncpus=4:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -J 1-5:2
#PBS -j oe
#PBS -V
# not translated: the output file digits-%j.log: PBS Pro does not support %j in a name; remove it
set -euo pipefail
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
export NCCL_DEBUG=WARN
cd "$PBS_O_WORKDIR/work"
mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none -x PATH -x NCCL_DEBUG python3 train.py --seed "$PBS_ARRAY_INDEX" --data /data/digits
# 2: the output file digits-%j.log: PBS Pro does not support %j in a name; remove it
# 12: --cpu-bind cores: has no counterpart
