#!/bin/bash
# 2 nodes x 2 ranks, 4 ranks in all, by mpirun (Intel MPI) on CPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=4:mpiprocs=2
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 2 ranks, 4 ranks in all, by mpirun (Intel MPI) on CPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=2
job_world_size=4
job_cpus_per_node=4
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=mpirun
job_rank_logs=node
job_mpi_command=mpirun
job_mpi_version_text=Intel
job_mpi_title='Intel MPI'
job_remote_commands=pbs_tmrsh
job_host_access=remote
job_accelerator=cpu

environment() {
  job_source /opt/intel/oneapi/setvars.sh
  export DS_ACCELERATOR=cpu  # also on a node that has devices
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need python3 mpirun pbs_tmrsh
  job_need_file train.py
}

launch() {
  export JOBGEN_SENT_BY=$JOBGEN_LOGS  # its srun or ssh has a session of its own
  exec mpirun -n 4 -ppn 2 \
    -f "$JOBGEN_RUN_DIR/hosts" \
    -genv PATH "$PATH" -genv LD_LIBRARY_PATH "$LD_LIBRARY_PATH" -genv PYTHONPATH "$PYTHONPATH" -genv MASTER_ADDR "$MASTER_ADDR" -genv MASTER_PORT "$MASTER_PORT" \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE LOCAL_RANK=$MPI_LOCALRANKID LOCAL_WORLD_SIZE=2
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
