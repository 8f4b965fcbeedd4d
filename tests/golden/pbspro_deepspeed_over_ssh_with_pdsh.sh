#!/bin/bash
# 2 nodes x 2 ranks, 4 ranks in all, by deepspeed on NVIDIA GPUs; made by jobgen 0.1.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE. Of a repeated directive PBS heeds the first.
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=4:mpiprocs=2:ngpus=2
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -j oe
set -euo pipefail
unset CDPATH

# Statuses of this script; any other one is the launcher's:
# 70 the allocation is not what was asked for      71 a file, a module or a command is missing
# 72 a directory cannot be used                    73 the launcher said 0 without proof of success
job_say() { printf 'jobgen: %s\n' "$*" >&2; }
job_die() { # STATUS MESSAGE
  job_say "$2"
  exit "$1"
}
# shellcheck disable=SC2329  # the trap calls it
job_end() {
  local status=$? what=finished
  if ((status == 0)) && [[ -z ${job_status:-} ]]; then
    job_say 'a script that was sourced has called exit: nothing was launched'
    status=71
  fi
  [[ -n ${job_over:-} ]] || what='was ended by a signal'
  ((status == 0)) || what="failed with status $status"
  job_say "job ${job_id:-?} $what after $SECONDS s${job_output:+; output in $job_output}${job_dir:+; files in $job_dir}"
  exit "$status"
}
trap job_end EXIT

# ---- the job ------------------------------------------------------------------------------
[[ -n ${PBS_JOBID:-} ]] || job_die 70 'PBS_JOBID is not set: submit this script with qsub'
[[ -r ${PBS_NODEFILE:-} ]] || job_die 70 "cannot read the list of hosts: PBS_NODEFILE is '${PBS_NODEFILE:-}'"
job_id=$PBS_JOBID
job_number=${PBS_JOBID%%[!0-9]*}
job_index=${PBS_ARRAY_INDEX:-${PBS_ARRAYID:-0}}  # the tasks of an array share the number
# shellcheck disable=SC2034  # unused where the port is given
job_number=$((10#${job_number:-0} + 1009 * job_index))
job_nodefile=$PBS_NODEFILE
job_submit_dir=${PBS_O_WORKDIR:-$PWD}  # PBS starts a job in the home directory
job_output=${PBS_JOBID%%.*}
job_output=${job_output/[/.}  # of 12[3], a task of an array, PBS makes .o12.3
job_output=$job_submit_dir/${PBS_JOBNAME:-jobgen}.o${job_output%]}
cd "$job_submit_dir" || job_die 72 "cannot enter $job_submit_dir"
# Everything that belongs to this job alone is in a directory of its own.
job_dir=runs/jobgen-${job_id//[^A-Za-z0-9._-]/_}
[[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir"
[[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir"
rm -f "$job_dir/status.json"

# ---- the environment ----------------------------------------------------------------------
# CUDA: PyTorch brings its own libraries; the toolkit is for DeepSpeed's ops, which compile at run time.
if [[ -z ${CUDA_HOME:-} ]] && command -v nvcc > /dev/null; then
  CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
elif [[ -z ${CUDA_HOME:-} && -x /usr/local/cuda/bin/nvcc ]]; then
  CUDA_HOME=/usr/local/cuda
fi
[[ -z ${CUDA_HOME:-} ]] || export CUDA_HOME PATH=$CUDA_HOME/bin:$PATH
export PYTHONUNBUFFERED=1
export OMP_NUM_THREADS=2
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need python3
job_need deepspeed
python3 -c 'import jobgen.train' || job_die 71 "$(command -v python3) has no jobgen.train: pip install 'jobgen[train]'"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
cat "$job_nodefile" |
  awk -v slots=2 'NF && !seen[$1]++ { print $1 " slots=" slots }' > "$job_dir/hostfile"
awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
mapfile -t job_hosts < "$job_dir/hosts"
job_slots=$(awk -F= '{ n += $2 } END { print n + 0 }' "$job_dir/hostfile")
((${#job_hosts[@]} == 2)) ||
  job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]:0:8}), but 2 were asked for"
((job_slots == 4)) ||
  job_die 70 "the hostfile has $job_slots slots, but 2 x 2 = 4 were asked for"

# ---- the rendezvous -----------------------------------------------------------------------
export MASTER_ADDR=${job_hosts[0]}
# From the job id, so that two jobs on one node differ, and the next one up where somebody listens.
export MASTER_PORT=$((20000 + job_number % 10000))
while (exec 3<> "/dev/tcp/localhost/$MASTER_PORT") 2> /dev/null; do MASTER_PORT=$((MASTER_PORT + 1)); done
export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_WORLD_SIZE=4 JOBGEN_ACCELERATOR=cuda
JOBGEN_START_TIME=$(($(date +%s) - SECONDS))
export JOBGEN_START_TIME

# ---- the program --------------------------------------------------------------------------
# The environment as it is now, for the other nodes: less what belongs to this node or this shell.
job_save_environment() {
  printf 'cd %q\n' "$PWD"
  for job_name in $(compgen -e); do
    case $job_name in
      SLURM* | PMI* | OMPI_COMM_* | *_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | TMPDIR | HOSTNAME | HOST | DISPLAY | SSH_* | XDG_*) ;;
      RANK | LOCAL_RANK | WORLD_SIZE | LOCAL_WORLD_SIZE | NODE_RANK | GROUP_RANK | PBS_NODENUM | PBS_TASKNUM | PBS_VNODENUM) ;;
      BASH* | SHELLOPTS | SHLVL | PWD | OLDPWD | UID | EUID | PPID | _) ;;
      *) printf 'export %s=%q\n' "$job_name" "${!job_name}" ;;
    esac
  done
}
(umask 077; job_save_environment > "$job_dir/env.sh")  # it may hold secrets

# What every rank runs.
cat > "$job_dir/rank.sh" <<'END_OF_RANK'
#!/bin/bash
set -euo pipefail
# The deepspeed launcher counts the devices of a node from 0; the scheduler may have given it others.
if [[ -n ${JOBGEN_DEVICES:-} ]]; then
  IFS=, read -ra job_given <<< "$JOBGEN_DEVICES"
  IFS=, read -ra job_chosen <<< "$CUDA_VISIBLE_DEVICES"
  job_devices=
  for job_i in "${job_chosen[@]}"; do
    job_devices+=,${job_given[job_i]:?$(hostname) has only the devices $JOBGEN_DEVICES}
  done
  export CUDA_VISIBLE_DEVICES=${job_devices#,}
fi
# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/env.sh"
exec python3 -m jobgen.train "--local_rank=$LOCAL_RANK"
END_OF_RANK

# ---- the launch ---------------------------------------------------------------------------
job_say "2 nodes x 2 ranks, 4 ranks in all, by deepspeed on NVIDIA GPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
job_status=0
# DeepSpeed's own way over ssh: pdsh joins words with blanks and has the other side parse them again.
command -v pdsh > /dev/null || job_die 71 'cannot find pdsh on PATH; --remote auto needs none'
[[ $PWD$job_dir != *[!A-Za-z0-9._/+@:,=-]* ]] ||
  job_die 72 "pdsh can pass on neither $PWD nor $job_dir: choose directories with plain names, or --remote auto"
# What the launcher hands on to the other nodes; the ranks read env.sh. The launcher puts double quotes
# around it, which "" ends; %q says it to the shell there; pdsh takes %h and the like for its own.
for job_name in $(compgen -e); do
  case $job_name in
    PATH* | LD_LIBRARY* | PYTHON* | MLFLOW* | MV2* | UCX* | NCCL* | ASCEND* | HCCL*)
      printf -v job_value '%q' "${!job_name}"
      printf '%s="%s"\n' "$job_name" "${job_value//%/%%}"
      ;;
  esac
done > "$job_dir/deepspeed_env"
export DS_ENV_FILE=$job_dir/deepspeed_env PDSH_RCMD_TYPE=ssh
deepspeed --hostfile "$job_dir/hostfile" \
  --launcher pdsh --force_multi --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
  --no_python --no_local_rank bash "$job_dir/rank.sh" || job_status=$?

# ---- the end ------------------------------------------------------------------------------
# A launcher may end with 0 although a rank was killed: the training's own word is needed, too.
if ((job_status == 0)) && ! grep -q '"state": *"finished"' "$job_dir/status.json" 2> /dev/null; then
  job_die 73 "deepspeed ended with status 0, but $job_dir/status.json does not say that the training finished"
fi
job_over=yes
exit "$job_status"
