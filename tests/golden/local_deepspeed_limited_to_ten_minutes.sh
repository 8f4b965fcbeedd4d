#!/bin/bash
# 1 node x 2 ranks, 2 ranks in all, by deepspeed on NVIDIA GPUs; made by jobgen 0.2.0.
# Run it with: bash FILE. This machine is the allocation.
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='1 node x 2 ranks, 2 ranks in all, by deepspeed on NVIDIA GPUs' job_run_dir=runs
job_nodes=1 job_ranks_per_node=2 job_world_size=2 job_cpus_per_node=2
job_walltime=600 job_grace=60 job_signal=USR1 job_limit=00:10:00
job_launcher_name=deepspeed job_rank_logs=node
job_accelerator=cuda job_visible=CUDA_VISIBLE_DEVICES

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
  job_need python3 deepspeed
  job_need_file train.py
}

program() {  # what every rank runs
  exec python3 train.py "--local_rank=$LOCAL_RANK"
}

node() {  # what every node runs
  exec deepspeed --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --no_ssh --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
    --no_python --no_local_rank bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

launch() {
  exec timeout 600 bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
