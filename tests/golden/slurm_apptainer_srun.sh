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
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) echo "jobgen: this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}: nothing was started" >&2; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set
[[ ! -f $0 ]] || grep -qs '^# =* jobgen runtime ' "$0" || { echo 'jobgen: the runtime of this script is missing: nothing was started' >&2; exit 70; }

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='2 nodes x 4 ranks, 8 ranks in all, by srun on NVIDIA GPUs' job_run_dir=runs
job_nodes=2 job_ranks_per_node=4 job_world_size=8 job_cpus_per_node=8
job_walltime=3600 job_grace=120 job_signal=USR1 job_preflight_kind=if_there job_preflight_limit=120
job_launcher_name=srun job_rank_logs=node
job_reach=srun
job_accelerator=cuda
job_container=apptainer job_image=/images/train.sif job_binds=(/data:/data:ro) job_carried=(LD_LIBRARY_PATH) job_carried_prefix=APPTAINERENV_

variables() {
  export LD_LIBRARY_PATH=/opt/ofi
}

container() {
  exec apptainer exec --nv --pwd "$PWD" "${binds[@]/#/--bind=}" \
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

rank() {  # the rank variables
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=4
}

program() {  # what every rank runs
  exec bash "$JOBGEN_RUN_DIR/container.sh" python3 train.py
}

launch() {
  # --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
  exec srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=2 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
