#!/bin/bash
# 4 points a task, each 1 node x 2 ranks, 2 ranks in all, by mpirun (Open MPI) on CPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=8:mpiprocs=4
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -J 0-1:2
#PBS -j oe
#PBS -W tolerate_node_failures=all
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 2 ranks, 2 ranks in all, by mpirun (Open MPI) on CPUs'
job_runs_dir=runs
job_is_array=yes
job_nodes=1
job_ranks_per_node=2
job_world_size=2
job_cpus_per_node=8
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
job_accelerator=cpu
job_pack=4
job_pack_nodes=2
job_points=1,5-7
job_points_per_node=2
job_pack_cores=(0-3 4-7)

environment() {
  export DS_ACCELERATOR=cpu  # also on a node that has devices
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need mpirun
  job_need_program ./solver
}

launch() {
  exec mpirun -np 2 \
    --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --map-by ppr:2:node --bind-to none \
    -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=2
}

program() {  # what every rank runs
  exec ./solver
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
