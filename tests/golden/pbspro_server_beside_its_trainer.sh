#!/bin/bash
# 2 nodes x 8 ranks, 3 steps, on CPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=16:mpiprocs=8
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 8 ranks, 3 steps, on CPUs'
job_runs_dir=runs
job_steps=3
job_parallel_steps=(2)
job_nodes=2
job_ranks_per_node=8
job_world_size=16
job_cpus_per_node=16
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_launcher_name=deepspeed
job_rank_logs=node
job_remote_commands='pbs_tmrsh ssh'
job_host_access=remote
job_accelerator=cpu

environment() {
  export DS_ACCELERATOR=cpu  # also on a node that has devices
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need python3 torchrun mpirun
  job_need_program ./serve
  job_need_program ./solve
  job_need_program ./report
}

step_1() {  # 2 nodes x 1 rank, 2 ranks in all, by torchrun on CPUs
  job_title='2 nodes x 1 rank, 2 ranks in all, by torchrun on CPUs'
  job_nodes=2
  job_ranks_per_node=1
  job_world_size=2
  job_launcher_name=torchrun
  job_remote_commands='pbs_tmrsh ssh'
  job_host_access=remote
  job_step_name=server
  job_ends_with=2
  job_ready_line=listening
  job_ready_seconds=600
  job_part_cores=0-3
  job_mpi_command=''
  job_mpi_version_text=''
  job_mpi_title=''
  export OMP_NUM_THREADS=4
  launch() {
    exec bash "$JOBGEN_RUN_DIR/each_node.sh" "$@"
  }
  node() {
    exec torchrun --nnodes=2 --nproc-per-node=1 --node-rank="$NODE_RANK" \
      --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
      --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
  }
  program() {
    exec ./serve
  }
}

step_2() {  # 2 nodes x 6 ranks, 12 ranks in all, by mpirun (Open MPI) on CPUs
  job_title='2 nodes x 6 ranks, 12 ranks in all, by mpirun (Open MPI) on CPUs'
  job_nodes=2
  job_ranks_per_node=6
  job_world_size=12
  job_launcher_name=mpirun
  job_remote_commands='pbs_tmrsh ssh'
  job_host_access=remote
  job_step_name=solver
  job_part_cores=4-15
  job_waits_for=(1)
  job_mpi_command=mpirun
  job_mpi_version_text='Open MPI'
  job_mpi_title='Open MPI'
  export OMP_NUM_THREADS=2
  launch() {
    exec mpirun -np 12 \
      --hostfile "$JOBGEN_RUN_DIR/hostfile" \
      --map-by ppr:6:node --bind-to none \
      -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT \
      bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
  }
  rank() {
    export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=6
  }
  program() {
    exec ./solve
  }
}

step_3() {  # one process on 1 node, on CPUs
  job_title='one process on 1 node, on CPUs'
  job_nodes=1
  job_ranks_per_node=1
  job_world_size=1
  job_launcher_name=none
  job_remote_commands=''
  job_host_access=''
  job_mpi_command=''
  job_mpi_version_text=''
  job_mpi_title=''
  export OMP_NUM_THREADS=2
  launch() {
    exec bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
  }
  rank() {
    unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
    RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1  # not exported
  }
  program() {
    exec ./report
  }
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
