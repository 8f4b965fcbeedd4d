#!/bin/bash
# 2 nodes x 12 ranks, 24 ranks in all, by torchrun on Intel GPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
# Site: ALCF Aurora, by these sources:
# https://docs.alcf.anl.gov/aurora/running-jobs-aurora/ (2026-08-19)
# https://docs.alcf.anl.gov/aurora/data-science/frameworks/pytorch/ (2026-08-19)
# https://docs.alcf.anl.gov/aurora/data-science/frameworks/oneCCL/ (2026-08-19)
# https://docs.alcf.anl.gov/aurora/system-updates/ (2026-08-19)
# https://uxlfoundation.github.io/oneCCL/env-variables.html (2025-03-21)
# https://docs.alcf.anl.gov/aurora/known-issues/ (2026-08-19)
# https://docs.alcf.anl.gov/aurora/containers/containers/ (2026-08-19)
# https://docs.alcf.anl.gov/aurora/data-science/jupyter/ (2026-08-19)
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2
#PBS -l place=scatter
#PBS -l filesystems=home:flare
#PBS -k doe
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q debug
#PBS -A proj
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 12 ranks, 24 ranks in all, by torchrun on Intel GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=12
job_world_size=24
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
job_accelerator=xpu
job_cpu_bind=site
job_cpu_lists=(4-7 8-11 12-15 16-19 20-23 24-27 56-59 60-63 64-67 68-71 72-75 76-79)

variables() {
  export FI_MR_CACHE_MONITOR=userfaultfd
  export HTTP_PROXY=http://proxy.alcf.anl.gov:3128
  export HTTPS_PROXY=http://proxy.alcf.anl.gov:3128
  export http_proxy=http://proxy.alcf.anl.gov:3128
  export https_proxy=http://proxy.alcf.anl.gov:3128
  export no_proxy='admin,*.hostmgmt.cm.aurora.alcf.anl.gov,*.alcf.anl.gov,localhost'
  export CCL_PROCESS_LAUNCHER=torchrun
  export CCL_ATL_TRANSPORT=ofi
  export CCL_KVS_USE_MPI_RANKS=0
}

environment() {
  variables
  job_module_use /soft/modulefiles
  job_module frameworks
  export DS_ACCELERATOR=xpu  # PyTorch brings its own libraries, or the module of the site does
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
  variables  # again: modules and scripts may have changed them
  job_need python3 torchrun
  job_need_file train.py
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/each_node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=2 --nproc-per-node=12 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
