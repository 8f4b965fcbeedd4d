#!/bin/bash
# 2 nodes x 1 rank, 2 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='2 nodes x 1 rank, 2 ranks in all, by torchrun on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=2
job_ranks_per_node=1
job_world_size=2
job_cpus_per_node=2
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=torchrun
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda

setup() {
ulimit -l unlimited
export DS_BUILD_OPS=0

  true
}

environment() {
  job_cuda
  job_setup
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  job_need python3 torchrun
}

before() {
sbcast data.tar /tmp/data.tar

}
requirements() { job_need_file train.py; }  # behind before, which may make them

launch() {
  # --cpus-per-task again, for one task a node. Since Slurm 23.11 srun also reads that of the job, and warns.
  unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
  exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=2 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/node.sh" "$@"
}

node() {  # what every node runs
  exec torchrun --nnodes=2 --nproc-per-node=1 --node-rank="$NODE_RANK" \
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
    --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

program() {  # what every rank runs
  exec python3 train.py
}

after() {
echo "status $JOBGEN_STATUS"

}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
