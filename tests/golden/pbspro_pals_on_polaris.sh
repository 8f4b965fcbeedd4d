#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by mpirun (HPE Cray PALS) on NVIDIA GPUs; made by jobgen 0.2.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
#PBS -l filesystems=home:eagle
#PBS -N polaris
#PBS -S /bin/bash
#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q debug
#PBS -A proj
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='polaris'
job_title='2 nodes x 4 ranks, 8 ranks in all, by mpirun (HPE Cray PALS) on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=4
job_world_size=8
job_cpus_per_node=32
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=mpirun
job_rank_logs=node
job_host_access=ssh
job_accelerator=cuda

environment() {
  job_module conda
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=8
  job_need python3 mpiexec
  job_need_file train.py
}

launch() {
  exec mpiexec -n 8 --ppn 4 --depth 8 --cpu-bind depth \
    --hostfile "$JOBGEN_RUN_DIR/hosts" \
    --env PATH="$PATH" --env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" --env PYTHONPATH="$PYTHONPATH" --env MASTER_ADDR="$MASTER_ADDR" --env MASTER_PORT="$MASTER_PORT" \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$PALS_RANKID WORLD_SIZE=${PMI_SIZE:-$JOBGEN_WORLD_SIZE} LOCAL_RANK=$PALS_LOCAL_RANKID LOCAL_WORLD_SIZE=4
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
