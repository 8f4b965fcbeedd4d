#!/bin/bash
# 1 node x 1 rank + 2 nodes x 4 ranks, 9 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=1:ncpus=16:mpiprocs=1:mem=64gb+2:ncpus=8:mpiprocs=4:ngpus=4:mem=256gb:gpu_type=a100
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 1 rank + 2 nodes x 4 ranks, 9 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=3
job_ranks_per_node=4
job_world_size=9
job_cpus_per_node=16
job_node_groups=1x1+2x4
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_launcher_name=mpirun
job_rank_logs=node
job_mpi_command=mpirun
job_mpi_version_text='Open MPI'
job_mpi_title='Open MPI'
job_remote_commands='pbs_tmrsh ssh'
job_host_access=remote
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=16
  job_need python3 mpirun
  job_need_file train.py
}

launch() {
  exec mpirun -np 9 \
    --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --map-by slot --bind-to none \
    -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE
  export OMP_NUM_THREADS=$((RANK < 1 ? 16 : 2))
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
