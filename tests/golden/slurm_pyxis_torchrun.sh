#!/bin/bash
# 2 nodes x 8 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=8
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 8 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=8
job_world_size=16
job_cpus_per_node=16
job_walltime_seconds=3600
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_preflight_mode=always
job_preflight_seconds=120
job_launcher_name=torchrun
job_runs_training_module=yes
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda
job_container_runtime=pyxis
job_container_image='nvcr.io#nvidia/pytorch:25.01-py3'

container() {
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=16 --mpi=none --export=ALL \
    --container-image='nvcr.io#nvidia/pytorch:25.01-py3' --container-workdir="$PWD" --container-mounts="$JOBGEN_RUN_DIR:$JOBGEN_RUN_DIR,$PWD:$PWD",/data:/data "$@"
}

environment() {
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need srun
  job_try_container
  job_need_inside python3 torchrun
  job_need_training
}

launch() {
  export JOBGEN_INSIDE=yes
  unset LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH CPATH PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX CUDA_HOME CUDA_PATH ROCM_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME
  # --cpus-per-task again, for one task a node. Since Slurm 23.11 srun also reads that of the job, and warns.
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=16 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    --container-image='nvcr.io#nvidia/pytorch:25.01-py3' --container-workdir="$PWD" --container-mounts="$JOBGEN_RUN_DIR:$JOBGEN_RUN_DIR,$PWD:$PWD",/data:/data bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=2 --nproc-per-node=8 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@"
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
