#!/bin/bash
# 1 node x 2 ranks, 2 ranks in all, by deepspeed on NVIDIA GPUs; made by jobgen 0.2.0.
# Run it with: bash FILE. This machine is the allocation.
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 2 ranks, 2 ranks in all, by deepspeed on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=1
job_ranks_per_node=2
job_world_size=2
job_cpus_per_node=2
job_walltime_seconds=600
job_grace_seconds=60
job_save_signal=USR1
job_launcher_timeout=00:10:00
job_launcher_name=deepspeed
job_rank_logs=node
job_accelerator=cuda
job_device_variable=CUDA_VISIBLE_DEVICES

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
  job_need python3 deepspeed
  job_need_file train.py
}

launch() {
  exec timeout 600 bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec deepspeed --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --no_ssh --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
    --no_python --no_local_rank bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py "--local_rank=$LOCAL_RANK"
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
