#!/bin/bash
# 1 node x 1 rank + 2 nodes x 4 ranks, 9 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=cpu
#SBATCH hetjob
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=a100:4
#SBATCH --mem=256G
#SBATCH --time=01:00:00
#SBATCH --partition=gpu
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 1 rank + 2 nodes x 4 ranks, 9 ranks in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=3
job_ranks_per_node=4
job_world_size=9
job_cpus_per_node=16
job_node_groups=1x1+2x4
job_components='1x1x16 2x4x8'
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_launcher_name=torchrun
job_rank_logs=node
job_remote_commands=srun
job_host_access=remote
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=16
  job_need python3 torchrun
  job_need_file train.py
}

launch() {
  # --cpus-per-task again, for one task a node. Since Slurm 23.11 srun also reads that of the job, and warns.
  unset "${!SLURM_CPUS_PER_TASK@}" "${!SLURM_TRES_PER_TASK@}"
  exec srun --het-group=0 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=16 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/node.sh" "$@" \
    : --het-group=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=3 --nproc-per-node="$(awk -F= -v line="$((NODE_RANK + 1))" 'NR == line { print $2 }' "$JOBGEN_RUN_DIR/hostfile")" --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export OMP_NUM_THREADS=$((RANK < 1 ? 16 : 2))
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
