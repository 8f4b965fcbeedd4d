#!/bin/bash
# 2 nodes x 2 ranks, 4 ranks in all, by deepspeed on NVIDIA GPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=4:mpiprocs=2:ngpus=2
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 2 ranks, 4 ranks in all, by deepspeed on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=2
job_world_size=4
job_cpus_per_node=4
job_walltime_seconds=3600
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_preflight_mode=always
job_preflight_seconds=120
job_launcher_name=deepspeed
job_runs_training_module=yes
job_rank_logs=node
job_host_access=ssh
job_accelerator=cuda
job_device_variable=CUDA_VISIBLE_DEVICES

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need python3 deepspeed
  job_need_training
}

launch() {
  # shellcheck disable=SC2086  # names: deepspeed would write some variables on the command line of pdsh
  unset ${JOBGEN_SECRETS:-}
  exec deepspeed --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --launcher pdsh --force_multi --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
    --no_python --no_local_rank bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@" "--local_rank=$LOCAL_RANK"
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
