#!/bin/bash
# 2 nodes x 1 rank, 2 ranks in all, by deepspeed on NVIDIA GPUs; made by jobgen 0.2.0.
# Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm
# Submit it with: qsub FILE
#PBS -N mnist
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=1:gpus=1
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q gpu
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='mnist'
job_title='2 nodes x 1 rank, 2 ranks in all, by deepspeed on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=1
job_world_size=2
job_cpus_per_node=1
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=deepspeed
job_rank_logs=node
job_remote_commands='pbsdsh ssh'
job_host_access=remote
job_accelerator=cuda
job_device_variable=CUDA_VISIBLE_DEVICES

environment() {
  job_source /opt/profile/cuda-11.6.sh
  job_source /opt/profile/gcc-9.sh
  job_source /opt/profile/openmpi-intel.sh
  job_cuda
  job_conda /home/me/envs/ds
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
  job_need python3 deepspeed
  job_need_file mnist.py
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/each_node.sh" "$@"
}

node() {  # what every node runs
  exec deepspeed --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --no_ssh --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
    --no_python --no_local_rank bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 mnist.py "--local_rank=$LOCAL_RANK" --deepspeed_config ds.json
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
