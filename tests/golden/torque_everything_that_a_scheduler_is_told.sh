#!/bin/bash
# 2 nodes x 1 rank, 2 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs; made by jobgen 0.2.0.
# Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=2:gpus=1:a100:ib
#PBS -l walltime=01:00:00
#PBS -l advres=night.1
#PBS -l qos=high
#PBS -a 2000
#PBS -p -5
#PBS -l naccesspolicy=singlejob
#PBS -j oe
#PBS -o jobgen-$PBS_JOBID.out
#PBS -m n
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='2 nodes x 1 rank, 2 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs' job_run_dir=runs
job_nodes=2 job_ranks_per_node=1 job_world_size=2 job_cpus_per_node=2
job_walltime=3600 job_grace=120 job_timer=yes job_signal=USR1 job_preflight_kind=always job_preflight_limit=120
job_launcher_name=mpirun job_training=yes job_rank_logs=node job_mpirun=mpirun job_mpi_version='Open MPI' job_mpi_title='Open MPI'
job_agents='pbsdsh ssh' job_reach=remote
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need python3 mpirun
  job_need_training
}

rank() {  # the rank variables
  RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=1  # not exported: the training module uses mpi4py
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@"
}

launch() {
  exec mpirun -np 2 \
    --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --map-by ppr:1:node --bind-to none \
    -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
