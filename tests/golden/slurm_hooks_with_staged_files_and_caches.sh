#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
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
job_title='2 nodes x 4 ranks, 8 ranks in all, by torchrun on NVIDIA GPUs'
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
job_launcher_name=torchrun
job_rank_logs=node
job_host_access=srun
job_node_limit=600
job_local_dir=$'$SCRATCH_LOCAL'
job_stage=(/data/env.tar.gz:env/ /data/train.bin:train.bin)
job_local_caches=(TRITON_CACHE_DIR=triton TORCHINDUCTOR_CACHE_DIR=inductor TORCH_EXTENSIONS_DIR=torch_extensions MIOPEN_USER_DB_PATH=miopen_db MIOPEN_CUSTOM_CACHE_DIR=miopen CUDA_CACHE_PATH=cuda_kernels HF_MODULES_CACHE=hf_modules)
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need python3 torchrun
  job_need_file train.py
}

on_each_node() {  # once a node, before the ranks
"$JOBGEN_STAGE"/env/bin/warm-up

}

launch() {
  # --cpus-per-task again, for one task a node. Since Slurm 23.11 srun also reads that of the job, and warns.
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py
}

after_on_each_node() {  # once a node, after the ranks
cp "$JOBGEN_LOCAL_DIR"/*.trace "$JOBGEN_RUN_DIR" || true

}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
