#!/bin/bash
# 1 node x 4 ranks + 2 nodes x 8 ranks, 20 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs; made by jobgen 0.2.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH hetjob
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=8
#SBATCH --time=01:00:00
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
trap 'echo "jobgen: ${job_fault:-this script is incomplete, or failed before the job began}: nothing was started" >&2; exit 70' EXIT
case ${BASH_VERSION:-0.} in [0-3].* | 4.[01].*) job_fault="this shell is not bash 4.2 or newer, but ${BASH_VERSION:-another one}"; exit 70 ;; esac
set -euo pipefail +o posix  # which sh and POSIXLY_CORRECT set

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen'
job_title='1 node x 4 ranks + 2 nodes x 8 ranks, 20 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs'
job_runs_dir=runs
job_nodes=3
job_ranks_per_node=8
job_world_size=20
job_cpus_per_node=16
job_node_groups=1x4+2x8
job_components='1x4x8 2x8x16'
job_walltime_seconds=3600
job_grace_seconds=120
job_sends_signal_itself=yes
job_save_signal=USR1
job_preflight_mode=always
job_preflight_seconds=120
job_launcher_name=mpirun
job_runs_training_module=yes
job_rank_logs=node
job_mpi_command=mpirun
job_mpi_version_text='Open MPI'
job_mpi_title='Open MPI'
job_remote_commands=srun
job_host_access=remote
job_accelerator=cuda

environment() {
  job_cuda
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
  export OMPI_MCA_ras=^slurm PRTE_MCA_ras=^slurm OMPI_MCA_plm=rsh PRTE_MCA_plm=ssh  # not only the nodes of the first component
  job_need python3 mpirun
  job_need_training
}

launch() {
  exec mpirun -np 20 \
    --hostfile "$JOBGEN_RUN_DIR/hostfile" \
    --map-by slot --bind-to none \
    -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

rank() {  # the rank variables
  RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE  # not exported: the training module uses mpi4py
}

program() {  # what every rank runs
  exec python3 -m jobgen.train "$@" --task digits
}

# Below is the runtime, the same in every script that needs it. A job whose runtime was edited prints a warning.
