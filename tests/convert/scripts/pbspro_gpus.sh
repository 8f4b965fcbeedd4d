#!/bin/bash
#PBS -N vit
#PBS -A proj42
#PBS -q gpu
#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4:mem=480gb
#PBS -l place=scatter:excl
#PBS -l walltime=12:00:00
#PBS -l filesystems=home:eagle
#PBS -J 0-9:3%2
#PBS -W depend=afterok:4711.server
#PBS -m ae
#PBS -M me@example.org
#PBS -v DATA=/data/imagenet,STAGE
set -euo pipefail
module load openmpi
export MASTER_ADDR MASTER_PORT NCCL_DEBUG=WARN
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
MASTER_PORT=$((20000 + PBS_ARRAY_INDEX))
echo "task $PBS_ARRAY_INDEX of job $PBS_JOBID, submitted in $PBS_O_WORKDIR"
mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to core -x MASTER_ADDR -x MASTER_PORT \
  python "$PBS_O_WORKDIR/train.py" --fold "$PBS_ARRAY_INDEX"
