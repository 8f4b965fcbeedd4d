#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by srun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
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
job_cpus_per_node=8
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=srun
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda
job_container_runtime=apptainer
job_container_image=/images/train.sif
job_container_variables=(LD_LIBRARY_PATH)
job_container_variable_prefix=APPTAINERENV_

variables() {
  export LD_LIBRARY_PATH=/opt/ofi
}

container() {
  job_binds+=(/data:/data:ro)
  exec apptainer exec --nv --pwd "$PWD" "${job_binds[@]/#/--bind=}" \
    /images/train.sif "$@"
}

environment() {
  variables
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  variables  # again: modules and scripts may have changed them
  job_need apptainer srun
  job_try_container
  job_need_inside python3
  job_need_file train.py
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=2 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4
}

program() {  # what every rank runs
  exec bash "$JOBGEN_RUN_DIR/container.sh" python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
