#!/bin/bash
#PBS -N llama
#PBS -q gpu
#PBS -A proj42
#PBS -l nodes=4:ppn=32:gpus=4:a100
#PBS -l pmem=8388608kb
#PBS -l walltime=36:00:00
#PBS -W depend=afterany:4711
#PBS -j oe
#PBS -m ae
#PBS -M me@example.org
#PBS -V
set -euo pipefail
cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job
SLURM_CPUS_PER_TASK=32
SLURM_NNODES=$(sort -u "$PBS_NODEFILE" | wc -l)
export SLURM_CPUS_PER_TASK SLURM_NNODES
module load cuda/12.4
source /opt/venv/bin/activate
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
MASTER_ADDR=$(awk '!seen[$1]++' "$PBS_NODEFILE" | head -n 1)
MASTER_PORT=$((20000 + ${PBS_JOBID%%[!0-9]*} % 10000))
export MASTER_ADDR MASTER_PORT
echo "$SLURM_NNODES nodes, the first is $MASTER_ADDR"
mpirun -np 4 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node --bind-to none -x PATH -x OMP_NUM_THREADS -x MASTER_ADDR -x MASTER_PORT -x SLURM_NNODES bash -c 'exec torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 \
  --node-rank="$OMPI_COMM_WORLD_RANK" --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" train.py --data /data'
