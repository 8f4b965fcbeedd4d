#!/bin/bash
# 2 nodes x 8 ranks, 16 ranks in all, by torchrun on Ascend NPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=16:mpiprocs=8:naccelerators=8
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 8 ranks, 16 ranks in all, by torchrun on Ascend NPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=8
job_world_size=16
job_cpus_per_node=16
job_walltime_seconds=3600
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_preflight_mode=always
job_preflight_seconds=120
job_launcher_name=torchrun
job_runs_training_module=yes
job_rank_logs=node
job_remote_commands='pbs_tmrsh ssh'
job_host_access=remote
job_accelerator=npu
job_container_runtime=docker
job_container_image=ascendai/cann:8.1.rc1-910b-ubuntu22.04-py3.10

container() {
  docker_options docker
  exec docker run "${job_options[@]}" \
    --ulimit=stack=67108864 ascendai/cann:8.1.rc1-910b-ubuntu22.04-py3.10 "$@"
}

environment() {
  job_hccl
  export DS_ACCELERATOR=npu
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need docker
  job_try_container
  job_need_inside python3 torchrun
  job_need_training
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/each_node.sh" "$@"
}

node() {  # what every node runs
  exec bash "$JOBGEN_RUN_DIR/container.sh" torchrun --nnodes=2 --nproc-per-node=8 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@"
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
