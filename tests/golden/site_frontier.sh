#!/bin/bash
# 2 nodes x 8 ranks, 16 ranks in all, by srun on AMD GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
# Site: OLCF Frontier, by these sources:
# https://docs.olcf.ornl.gov/systems/frontier_user_guide.html (2026-07-22)
# https://docs.olcf.ornl.gov/software/analytics/pytorch_frontier.html (2026-07-22)
# LMOD_SYSTEM_NAME in scripts of users
# jobgen: disable=fixed-interface
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --time=02:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=batch
#SBATCH --account=abc123
#SBATCH --network=disable_rdzv_get
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
job_walltime_seconds=7200
job_grace_seconds=120
job_save_signal=USR1
job_preflight_mode=if_there
job_preflight_seconds=120
job_launcher_name=srun
job_rank_logs=node
job_host_access=srun
job_accelerator=rocm

variables() {
  export FI_CXI_RDZV_PROTO=alt_read
}

environment() {
  variables
  job_module rocm rccl-net-plugin craype-accel-amd-gfx90a
  job_rocm
  job_miopen
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=7
  # jobgen: disable=fixed-interface
  export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3 GLOO_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3 TP_SOCKET_IFNAME=hsn0
  [[ -z ${CRAY_LD_LIBRARY_PATH:-} ]] || export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  variables  # again: modules and scripts may have changed them
  job_need python3 srun
  job_need_file train.py
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    --gpus-per-node=8 --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000 bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=8
}

program() {  # what every rank runs
  exec python3 train.py
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
