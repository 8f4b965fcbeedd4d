#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
# Site: NCSA Delta, by these sources:
# https://docs.ncsa.illinois.edu/systems/delta/en/latest/user_guide/running_jobs.html (2025-05-28)
# https://docs.ncsa.illinois.edu/systems/delta/en/latest/user_guide/architecture.html (2025-05-28)
# https://docs.ncsa.illinois.edu/systems/delta/en/latest/user_guide/job_accounting.html (2025-05-28)
# https://docs.ncsa.illinois.edu/systems/delta/en/latest/user_guide/login.html (2025-05-28)
# jobgen: disable=fixed-interface
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=4
#SBATCH --mem=208G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --constraint=scratch
#SBATCH --partition=gpuA40x4
#SBATCH --account=bbka-delta-gpu
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 4 ranks, 8 ranks in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=4
job_world_size=8
job_cpus_per_node=64
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=torchrun
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda
job_cpu_bind=site
job_cpu_lists=(48-63 32-47 16-31 0-15)

variables() {
  export NCCL_SOCKET_IFNAME=hsn
}

environment() {
  variables
  job_module nccl
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=16
  variables  # again: modules and scripts may have changed them
  job_need python3 torchrun
  job_need_file multinode.py
}

launch() {
  # --cpus-per-task again, for one task a node. Since Slurm 23.11 srun also reads that of the job, and warns.
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=64 \
    --cpu-bind=none --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 multinode.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
