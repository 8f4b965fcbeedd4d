#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
# Site: JUWELS Booster, by these sources:
# https://apps.fz-juelich.de/jsc/hps/juwels/booster-overview.html
# https://github.com/FZJ-JSC/tutorial-multi-gpu (2025-12-03)
# scripts of users: partitions, the suffix i, srun --cpu-bind=none, SYSTEMNAME
# jobgen: disable=fixed-interface,forced-devices
#SBATCH --job-name=jobgen
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --gres=gpu:4
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=booster
#SBATCH --account=trustllm
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 4 ranks, 8 ranks in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=3
job_needed_nodes=2
job_ranks_per_node=4
job_world_size=8
job_cpus_per_node=48
job_walltime_seconds=3600
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_preflight_mode=always
job_preflight_seconds=120
job_launcher_name=torchrun
job_runs_training_module=yes
job_rank_logs=node
job_host_access=srun
job_master_addr='{host}i'
job_accelerator=cuda

variables() {
  export CUDA_VISIBLE_DEVICES=0,1,2,3
}

environment() {
  variables
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=12
  # jobgen: disable=fixed-interface
  export NCCL_SOCKET_IFNAME=ib0 GLOO_SOCKET_IFNAME=ib0 TP_SOCKET_IFNAME=ib0
  variables  # again: modules and scripts may have changed them
  job_need python3 torchrun
  job_need_training
}

launch() {
  # --cpus-per-task again, for one task a node. Since Slurm 23.11 srun also reads that of the job, and warns.
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --nodes=$((JOBGEN_WORLD_SIZE / 4)) --ntasks=$((JOBGEN_WORLD_SIZE / 4)) --ntasks-per-node=1 --cpus-per-task=48 \
    --nodelist="$(paste -sd , "$JOBGEN_RUN_DIR/hosts")" --kill-on-bad-exit=1 --export=ALL --mpi=none \
    --cpu-bind=none bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=$((JOBGEN_WORLD_SIZE / 4)) --nproc-per-node=4 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@"
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
