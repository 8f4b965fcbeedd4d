#!/bin/bash
# 2 nodes x 1 rank, 2 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs; made by jobgen 0.2.0.
# Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=4:gpus=1
#PBS -l mem=64gb
#PBS -l walltime=01:00:00
#PBS -j oe
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 1 rank, 2 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=1
job_world_size=2
job_cpus_per_node=4
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=mpirun
job_rank_logs=node
job_mpi_command=mpirun
job_mpi_version_text='Open MPI'
job_mpi_title='Open MPI'
job_remote_commands='pbsdsh ssh'
job_host_access=remote
job_accelerator=cuda

variables() {
  export UCX_TLS=tcp,cuda_copy
}

environment() {
  variables
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
  variables  # again: modules and scripts may have changed them
  job_need python3 mpirun
}

launch() {
  exec mpirun -np 2 \
    --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --map-by ppr:1:node --bind-to none \
    -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT -x UCX_TLS \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=1
}

program() {  # what every rank runs
  exec python3 -m mnist.train --deepspeed_config ds.json
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
