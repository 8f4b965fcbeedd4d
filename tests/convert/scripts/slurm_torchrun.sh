#!/bin/bash
#SBATCH --job-name=llama
#SBATCH --partition=gpu
#SBATCH --account=proj42
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --gres=gpu:4
#SBATCH --mem=256G
#SBATCH --time=1-12:00:00
#SBATCH --constraint=a100
#SBATCH --dependency=afterany:4711
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=me@example.org
set -euo pipefail
module load cuda/12.4
source /opt/venv/bin/activate
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT
echo "$SLURM_NNODES nodes, the first is $MASTER_ADDR"
srun --cpus-per-task=32 --kill-on-bad-exit=1 bash -c 'exec torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 \
  --node-rank="$SLURM_PROCID" --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" train.py --data /data'
