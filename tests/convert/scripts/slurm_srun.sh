#!/bin/bash
#SBATCH -J digits
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH -t 30
#SBATCH -o digits-%j.log
#SBATCH --array=1,3,5
set -euo pipefail
export NCCL_DEBUG=WARN
cd "$SLURM_SUBMIT_DIR/work"
srun --mpi=pmix --cpu-bind=cores python3 train.py --seed "$SLURM_ARRAY_TASK_ID" --data /data/digits
