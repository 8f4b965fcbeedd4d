#!/bin/bash
# MNIST on two nodes with a GPU each
#SBATCH --job-name=mnist
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --gpus-per-node=1
#SBATCH --time=02:00:00
#SBATCH --output=%x.o%j
set -euo pipefail
cd "$HOME" || exit 1  # where PBS starts a job
# The hosts of the job, one line a slot, as PBS lists them.
PBS_NODEFILE=$(mktemp)
trap 'rm -f "$PBS_NODEFILE"' EXIT
scontrol show hostnames "$SLURM_JOB_NODELIST" > "$PBS_NODEFILE"
export PBS_NODEFILE
source /public/profile.d/cuda-11.6.sh
source /public/profile.d/gnu-9.3.sh
eval "$(conda shell.bash hook)"
conda activate /public/envs/deepspeed
cd "$SLURM_SUBMIT_DIR"
hostfile=hostfile.$SLURM_JOB_ID
: > "$hostfile"
while read -r host; do
  echo "$host slots=1" >> "$hostfile"
done < "$PBS_NODEFILE"
env UCX_TLS=tcp,cuda_copy srun --ntasks="$SLURM_NTASKS" --kill-on-bad-exit=1 --mpi=pmix python mnist.py --deepspeed_config ds.json
# 19: look: "$hostfile": srun uses the hosts of the job
# 19: look: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK: programs that read them find SLURM_PROCID, and so on
