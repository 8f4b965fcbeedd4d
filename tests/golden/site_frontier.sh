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
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='2 nodes x 8 ranks, 16 ranks in all, by srun on AMD GPUs' job_run_dir=runs
job_nodes=2 job_ranks_per_node=8 job_world_size=16 job_cpus_per_node=56
job_walltime=7200 job_grace=120 job_signal=USR1 job_preflight_kind=if_there job_preflight_limit=120
job_launcher_name=srun job_rank_logs=node
job_reach=srun
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

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=8
}

program() {  # what every rank runs
  exec python3 train.py
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    --gpus-per-node=8 --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000 bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
