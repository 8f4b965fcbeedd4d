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
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='1 node x 4 ranks, 4 ranks in all, by torchrun on NVIDIA GPUs' job_run_dir=runs
job_nodes=1 job_ranks_per_node=4 job_world_size=4 job_cpus_per_node=64
job_walltime=3600 job_grace=120 job_signal=USR1
job_launcher_name=torchrun job_rank_logs=node
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

program() {  # what every rank runs
  exec python3 train.py
}

node() {  # what every node runs
  exec torchrun --nnodes=1 --nproc-per-node=4 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
