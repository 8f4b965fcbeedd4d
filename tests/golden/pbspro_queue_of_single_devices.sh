#!/bin/bash
# 1 node x 4 ranks, 4 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
# Site: ALCF Sophia, by these sources:
# https://docs.alcf.anl.gov/sophia/queueing-and-running-jobs/running-jobs/ (2026-08-19)
# https://docs.alcf.anl.gov/sophia/ (2026-08-19)
# https://docs.alcf.anl.gov/sophia/data-science/python/ (2026-08-19)
# https://docs.alcf.anl.gov/sophia/getting-started/ (2026-08-19)
# https://docs.alcf.anl.gov/running-jobs/ (2026-08-19)
# jobgen: disable=packed-chunks,nodes-mismatch
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=4
#PBS -l filesystems=home:eagle
#PBS -k doe
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q by-gpu
#PBS -A proj
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 4 ranks, 4 ranks in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=1
job_ranks_per_node=4
job_world_size=4
job_cpus_per_node=64
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_launcher_name=torchrun
job_rank_logs=node
job_accelerator=cuda

variables() {
  export HTTP_PROXY=http://proxy.alcf.anl.gov:3128
  export HTTPS_PROXY=http://proxy.alcf.anl.gov:3128
  export http_proxy=http://proxy.alcf.anl.gov:3128
  export https_proxy=http://proxy.alcf.anl.gov:3128
}

environment() {
  variables
  job_module_use /soft/modulefiles
  job_module conda
  job_cuda
  job_conda base
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=16
  variables  # again: modules and scripts may have changed them
  job_need python3 torchrun
  job_need_file train.py
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=1 --nproc-per-node=4 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
