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
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='mnist' job_title='2 nodes x 1 rank, 2 ranks in all, by deepspeed on NVIDIA GPUs' job_run_dir=runs
job_nodes=2 job_ranks_per_node=1 job_world_size=2 job_cpus_per_node=1
job_walltime=3600 job_grace=120 job_signal=USR1 job_preflight_kind=if_there job_preflight_limit=120
job_launcher_name=deepspeed job_rank_logs=node
job_agents='pbsdsh ssh' job_reach=remote
job_accelerator=cuda job_visible=CUDA_VISIBLE_DEVICES

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

program() {  # what every rank runs
  exec python3 mnist.py "--local_rank=$LOCAL_RANK" --deepspeed_config ds.json
}

node() {  # what every node runs
  exec deepspeed --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --no_ssh --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
    --no_python --no_local_rank bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
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
