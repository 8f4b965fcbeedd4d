#!/bin/bash
# 2 nodes x 12 ranks, 24 ranks in all, by mpirun (HPE Cray PALS) on Intel GPUs; made by jobgen 0.1.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE
# Site: ALCF Aurora, by its manual as read on 2026-11-21:
# https://docs.alcf.anl.gov/aurora/running-jobs-aurora/
# https://docs.alcf.anl.gov/aurora/data-science/frameworks/pytorch/
# https://docs.alcf.anl.gov/aurora/data-science/frameworks/oneCCL/
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2
#PBS -l place=scatter
#PBS -l filesystems=home:flare
#PBS -k doe
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q debug
#PBS -A proj
# shellcheck disable=SC2034,SC2120,SC2154,SC2329  # the runtime below uses them
set -euo pipefail

# ---- settings -----------------------------------------------------------------------------
job_name='jobgen' job_title='2 nodes x 12 ranks, 24 ranks in all, by mpirun (HPE Cray PALS) on Intel GPUs' job_run_dir=runs
job_nodes=2 job_ranks_per_node=12 job_world_size=24 job_cpus_per_node=36
job_walltime=3600 job_grace=120 job_signal=USR1 job_preflight_kind=if_there job_preflight_limit=120
job_launcher_name=mpirun job_rank_logs=node
job_reach=ssh
job_accelerator=xpu

variables() {
  export CCL_PROCESS_LAUNCHER=pmix
  export CCL_ATL_TRANSPORT=mpi
  export CCL_ALLREDUCE=topo
  export CCL_ALLREDUCE_SCALEOUT=rabenseifner
  export CCL_BCAST=double_tree
  export CCL_KVS_MODE=mpi
  export CCL_KVS_CONNECTION_TIMEOUT=600
  export CCL_KVS_USE_MPI_RANKS=1
  export CCL_CONFIGURATION=cpu_gpu_dpcpp
  export CCL_CONFIGURATION_PATH=''
  export CCL_ZE_CACHE_OPEN_IPC_HANDLES_THRESHOLD=1024
  export FI_CXI_DEFAULT_CQ_SIZE=131072
  export FI_CXI_CQ_FILL_PERCENT=20
}

environment() {
  variables
  job_module_use /soft/modulefiles
  job_module frameworks
  export DS_ACCELERATOR=xpu  # PyTorch brings its own libraries, or the module of the site does
  job_source /lus/flare/projects/proj/venv/bin/activate
  export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=3
  variables  # again: modules and scripts may have changed them
  job_need python3 mpiexec
  job_need_file train.py
}

rank() {  # the rank variables
  export RANK=$PALS_RANKID WORLD_SIZE=${PMI_SIZE:-$JOBGEN_WORLD_SIZE} LOCAL_RANK=$PALS_LOCAL_RANKID LOCAL_WORLD_SIZE=12
}

program() {  # what every rank runs
  exec python3 train.py
}

launch() {
  exec mpiexec -n 24 --ppn 12 --depth 3 --cpu-bind list:2-4:10-12:18-20:26-28:34-36:42-44:54-56:62-64:70-72:78-80:86-88:94-96 \
    --hostfile "$JOBGEN_RUN_DIR/hosts" \
    --env PATH="$PATH" --env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" --env PYTHONPATH="$PYTHONPATH" --env MASTER_ADDR="$MASTER_ADDR" --env MASTER_PORT="$MASTER_PORT" \
    bash "$JOBGEN_RUN_DIR/rank.sh" "$@"
}

# Below is the runtime, the same in every script. The script starts nothing if the runtime is incomplete.
job_sum=$(sed -n 's/^# =* jobgen runtime .* SHA-256 //p' "$0" 2> /dev/null) || true
[[ ! -f $0 || $(sed '1,/^# =* jobgen runtime /d' "$0" | sha256sum) == "${job_sum%% *}  -" ]] || {
  echo 'jobgen: the runtime of this script is missing or was edited: render it again; nothing was started' >&2
  exit 70
}
