#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by deepspeed on NVIDIA GPUs; made by jobgen 0.2.0.
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
job_title='2 nodes x 4 ranks, 8 ranks in all, by deepspeed on NVIDIA GPUs'
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
job_launcher_name=deepspeed
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda
job_device_variable=CUDA_VISIBLE_DEVICES
job_container_runtime=enroot
job_container_image=/images/train.sqsh

container() {
  enroot_options
  # shellcheck disable=SC2016  # expanded in the container, which has no option for the directory
  exec enroot start "${job_options[@]}" --env NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    /images/train.sqsh sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

environment() {
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need enroot
  job_try_container
  job_need_inside python3 deepspeed
  job_need_file train.py
}

launch() {
  # --cpus-per-task again, for one task a node. Since Slurm 23.11 srun also reads that of the job, and warns.
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec bash "$JOBGEN_RUN_DIR/container.sh" deepspeed --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --no_ssh --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
    --no_python --no_local_rank bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py "--local_rank=$LOCAL_RANK" --deepspeed_config ds.json
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
