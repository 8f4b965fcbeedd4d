#!/bin/bash
# 2 nodes x 8 ranks, 16 ranks in all, by srun on AMD GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --gpus-per-node=8
#SBATCH --mem=480G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --mail-user=me@example.org
#SBATCH --mail-type=BEGIN,END,FAIL
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 8 ranks, 16 ranks in all, by srun on AMD GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=8
job_world_size=16
job_cpus_per_node=56
job_walltime_seconds=3600
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_preflight_mode=always
job_preflight_seconds=120
job_launcher_name=srun
job_runs_training_module=yes
job_rank_logs=node
job_host_access=srun
job_accelerator=rocm

environment() {
  job_module_use /opt/site/modulefiles
  job_module PrgEnv-gnu rocm/6.2
  job_rocm
  job_miopen
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=7
  job_need python3 srun
  job_need_training
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=8
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@"
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
