#!/bin/bash
# 1 node x 2 ranks, 2 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='1 node x 2 ranks, 2 ranks in all, by torchrun on NVIDIA GPUs' job_run_dir=runs
job_nodes=1 job_ranks_per_node=2 job_world_size=2 job_cpus_per_node=4
job_walltime=3600 job_grace=120 job_timer=yes job_signal=USR1
job_launcher_name=torchrun job_training=yes job_rank_logs=node
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need python3 torchrun
  job_need_training
}

program() {  # what every rank runs
  exec python3 -m jobgen.train
}

node() {  # what every node runs
  exec torchrun --nnodes=1 --nproc-per-node=2 --node-rank="$NODE_RANK" \
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
