#!/bin/bash
# 4 nodes x 4 ranks, 16 ranks in all, by srun on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
# Site: CSCS Clariden, by these sources:
# https://docs.cscs.ch/clusters/daint/ (2026-08-20)
# https://docs.cscs.ch/running/slurm/ (2026-08-20)
# https://docs.cscs.ch/software/communication/nccl/ (2026-08-20)
# https://docs.cscs.ch/software/uenv/guides/ (2026-08-20)
# https://docs.cscs.ch/clusters/clariden/ (2026-08-20)
# https://docs.cscs.ch/software/ml/pytorch/ (2026-08-20)
#SBATCH --job-name=jobgen
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --time=00:22:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=debug
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='4 nodes x 4 ranks, 16 ranks in all, by srun on NVIDIA GPUs' job_run_dir=runs
job_nodes=4 job_ranks_per_node=4 job_world_size=16 job_cpus_per_node=288
job_walltime=1320 job_grace=120 job_signal=USR1 job_preflight_kind=if_there job_preflight_limit=120
job_launcher_name=srun job_rank_logs=node
job_reach=srun
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=72
  job_need python3 srun
  job_need_file train.py
}

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4
}

program() {  # what every rank runs
  exec python3 train.py
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=4 --ntasks=16 --ntasks-per-node=4 --cpus-per-task=72 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
