#!/bin/bash
#SBATCH --job-name=mnist-mpi
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --gpus-per-node=1
#SBATCH --time=12:00:00
#SBATCH --output=%x.o%j
# The hosts of the job, one line a slot, as PBS lists them.
PBS_NODEFILE=$(mktemp)
trap 'rm -f "$PBS_NODEFILE"' EXIT
scontrol show hostnames "$SLURM_JOB_NODELIST" > "$PBS_NODEFILE"
export PBS_NODEFILE
cd "$SLURM_SUBMIT_DIR" || exit 1
hostfile="$SLURM_SUBMIT_DIR/hosts.$SLURM_JOB_ID"
: > "$hostfile"
sort -u "$PBS_NODEFILE" | while read -r host; do
  echo "$host slots=1" >> "$hostfile"
done
source /public/software/profile.d/cuda-11.6-cudnn-8.4.sh
source /public/software/profile.d/compiler-gnu-9.3.0.sh
source /public/software/profile.d/openmpi-4.1.4-intel.sh
# shellcheck source=/dev/null
source ~/.bashrc
conda activate /public/home/me/envs/deepspeed
export NCCL_DEBUG=WARN
env UCX_TLS=tcp,cuda_copy,cuda_ipc srun --ntasks=2 --kill-on-bad-exit=1 --mpi=pmix python mnist.py --deepspeed_config ds_config.json
# 20: look: "$hostfile": srun uses the hosts of the job
# 20: look: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK: programs that read them find SLURM_PROCID, and so on
