#!/bin/bash
# 1 node x 1 rank, 1 rank in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%A_%a.log
#SBATCH --open-mode=append
#SBATCH --array=0-1
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 1 rank, 1 rank in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_is_array=yes
job_nodes=1
job_ranks_per_node=1
job_world_size=1
job_cpus_per_node=2
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_launcher_name=torchrun
job_rank_logs=node
job_accelerator=cuda
job_container_runtime=apptainer
job_container_image=a.sif

# lr: 2 points, every combination, of which the last changes fastest.
sweep_lr=(
  0.1 0.01
)

sweep() {
  job_sweep_begins 2
  job_sweep_value lr number --lr "${sweep_lr[job_index % 2]}"
  job_sweep_ends
}

container() {
  exec apptainer exec --nv --pwd "$PWD" "${job_binds[@]/#/--bind=}" \
    a.sif "$@"
}

environment() {
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need apptainer
  job_try_container
  job_need_inside python3 torchrun
  job_need_file train.py
}

launch() {
  exec bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec bash "$JOBGEN_RUN_DIR/container.sh" torchrun --nnodes=1 --nproc-per-node=1 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py ${job_point[@]+"${job_point[@]}"}
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
