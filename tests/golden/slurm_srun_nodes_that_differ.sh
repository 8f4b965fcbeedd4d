#!/bin/bash
# 1 node x 1 rank + 2 nodes x 8 ranks, 17 ranks in all, by srun on CPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=64G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --dependency=afterok:12
#SBATCH --partition=work
#SBATCH hetjob
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --mem=64G
#SBATCH --time=01:00:00
#SBATCH --partition=work
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 1 rank + 2 nodes x 8 ranks, 17 ranks in all, by srun on CPUs'
job_runs_dir=runs
job_has_dependency=yes
job_nodes=3
job_ranks_per_node=8
job_world_size=17
job_cpus_per_node=32
job_node_groups=1x1+2x8
job_components='1x1x4 2x8x32'
job_walltime_seconds=3600
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_max_requeues=2
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=srun
job_rank_logs=node
job_remote_commands=srun
job_host_access=remote
job_accelerator=cpu

environment() {
  export DS_ACCELERATOR=cpu  # also on a node that has devices
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
  job_need srun
  job_need_program ./solver
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --het-group=0 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=4 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@" \
    : --het-group=1 --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=4 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=$((SLURM_PROCID < 1 ? 1 : 8))
}

program() {  # what every rank runs
  exec ./solver
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
