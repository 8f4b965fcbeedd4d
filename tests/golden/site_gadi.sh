#!/bin/bash
# 4 nodes x 4 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
# Site: NCI Gadi, by these sources:
# https://opus.nci.org.au/pages/viewpage.action?pageId=236880996
# https://opus.nci.org.au/spaces/Help/pages/236880942/Job+Costs...
# https://opus.nci.org.au/x/OgBbCw
# https://opus.nci.org.au/spaces/Help/pages/184647980/PyTorch
# scripts of users: gpuhopper, dgxa100, storage, login nodes
#PBS -l storage=gdata/kf09+scratch/kf09
#PBS -l jobfs=800GB
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l ncpus=192
#PBS -l ngpus=16
#PBS -l mem=512gb
#PBS -l wd
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q gpuvolta
#PBS -P kf09
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='4 nodes x 4 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=4
job_ranks_per_node=4
job_world_size=16
job_cpus_per_node=48
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=torchrun
job_rank_logs=node
job_remote_commands='pbs_tmrsh ssh'
job_host_access=remote
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=12
  job_need python3 torchrun
  job_need_file train.py
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/each_node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=4 --nproc-per-node=4 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
