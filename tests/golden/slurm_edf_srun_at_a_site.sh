#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by srun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
# Site: CSCS Clariden, by these sources:
# https://docs.cscs.ch/clusters/daint/ (2026-08-20)
# https://docs.cscs.ch/running/slurm/ (2026-08-20)
# https://docs.cscs.ch/software/communication/nccl/ (2026-08-20)
# https://docs.cscs.ch/software/container-engine/run/ (2026-08-20)
# https://docs.cscs.ch/software/uenv/guides/ (2026-08-20)
# https://docs.cscs.ch/clusters/clariden/ (2026-08-20)
# https://docs.cscs.ch/software/ml/pytorch/ (2026-08-20)
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=normal
#SBATCH --account=proj
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 4 ranks, 8 ranks in all, by srun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=4
job_world_size=8
job_cpus_per_node=288
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=srun
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda
job_container_runtime=edf
job_container_image=./train.toml

container() {
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=288 --mpi=none --export=ALL \
    --environment=./train.toml --container-workdir="$PWD" --container-mounts="$JOBGEN_RUN_DIR:$JOBGEN_RUN_DIR,$PWD:$PWD",/capstor/store:/capstor/store "$@"
}

environment() {
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=72
  job_need srun
  job_try_container
  job_need_inside python3
  job_need_file train.py
}

launch() {
  export JOBGEN_INSIDE=yes
  unset LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH CPATH PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX CUDA_HOME CUDA_PATH ROCM_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=72 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    --environment=./train.toml --container-workdir="$PWD" --container-mounts="$JOBGEN_RUN_DIR:$JOBGEN_RUN_DIR,$PWD:$PWD",/capstor/store:/capstor/store bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
