#!/bin/bash
# 2 nodes x 8 ranks, 2 steps, on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
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
job_title='2 nodes x 8 ranks, 2 steps, on NVIDIA GPUs'
job_runs_dir=runs
job_steps=2
job_parallel_steps=(2)
job_nodes=2
job_ranks_per_node=8
job_world_size=16
job_cpus_per_node=64
job_walltime_seconds=3600
job_grace_seconds=120
job_save_signal=USR1
job_launcher_name=deepspeed
job_rank_logs=node
job_host_access=srun
job_accelerator=cuda
job_device_variable=CUDA_VISIBLE_DEVICES

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=8
  job_need python3 torchrun
  job_need_program ./serve
  job_need_file train.py
}

step_1() {  # one process on 1 node, on NVIDIA GPUs
  job_title='one process on 1 node, on NVIDIA GPUs'
  job_nodes=1
  job_ranks_per_node=1
  job_world_size=1
  job_launcher_name=none
  job_host_access=''
  job_device_variable=''
  job_step_name=server
  job_ends_with=2
  job_ready_seconds=600
  job_part_devices=0,1
  job_part_variable=CUDA_VISIBLE_DEVICES
  job_part_cores=0-15
  export OMP_NUM_THREADS=16
  variables() {
    export CACHE=/tmp/judge
  }
  launch() {
    # jobgen: disable=ranks-mismatch  # they are those of its part of the node
    exec bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
  }
  rank() {
    unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
    RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1  # not exported
  }
  program() {
    exec ./serve --model judge
  }
}

step_2() {  # 2 nodes x 6 ranks, 12 ranks in all, by torchrun on NVIDIA GPUs
  job_title='2 nodes x 6 ranks, 12 ranks in all, by torchrun on NVIDIA GPUs'
  job_nodes=2
  job_ranks_per_node=6
  job_world_size=12
  job_launcher_name=torchrun
  job_host_access=srun
  job_device_variable=''
  job_step_name=trainer
  job_part_devices=2,3,4,5,6,7
  job_part_variable=CUDA_VISIBLE_DEVICES
  job_part_cores=16-63
  job_waits_for=(1)
  export OMP_NUM_THREADS=8
  unset -f variables
  launch() {
    # With all cores of the job: each process then uses its part.
    unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK
    exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --overlap \
      --cpu-bind=none --nodelist="$(paste -sd , "$JOBGEN_RUN_DIR/hosts")" --kill-on-bad-exit=1 --export=ALL --mpi=none \
      bash "$JOBGEN_RUN_DIR/node.sh" "$@"
  }
  node() {
    # jobgen: disable=ranks-mismatch  # they are those of its part of the node
    exec torchrun --nnodes=2 --nproc-per-node=6 --node-rank="$NODE_RANK" \
      --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
      --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
  }
  program() {
    exec python3 train.py
  }
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
