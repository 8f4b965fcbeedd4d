#!/bin/bash
# 1 node x 8 ranks + 2 nodes x 4 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=1:ncpus=64:mpiprocs=8:ngpus=8+2:ncpus=32:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='1 node x 8 ranks + 2 nodes x 4 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs' job_run_dir=runs
job_nodes=3 job_ranks_per_node=8 job_world_size=16 job_cpus_per_node=64 job_mixed=2x4+1x8
job_walltime=3600 job_grace=120 job_timer=yes job_signal=USR1 job_preflight_kind=always job_preflight_limit=120
job_launcher_name=torchrun job_training=yes job_rank_logs=node
job_agents='pbs_tmrsh ssh' job_reach=remote
job_accelerator=cuda job_bind=cores

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=8
  job_need python3 torchrun
  job_need_training
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=3 --nproc-per-node="$(awk -F= -v line="$((NODE_RANK + 1))" 'NR == line { print $2 }' "$JOBGEN_RUN_DIR/hostfile")" --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/each_node.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
