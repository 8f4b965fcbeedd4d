#!/bin/bash
# 2 nodes x 1 rank, 2 ranks in all, by deepspeed on NVIDIA GPUs; made by jobgen 0.1.0.
# Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm
# Submit it with: qsub FILE. Of a repeated directive PBS heeds the first.
#PBS -N mnist
#PBS -S /bin/bash
#PBS -l nodes=2:ppn=1:gpus=1
#PBS -l walltime=01:00:00
#PBS -j oe
#PBS -q gpu
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
job_output=$job_submit_dir/${PBS_JOBNAME:-mnist}.o${job_output%]}
cd "$job_submit_dir" || job_die 72 "cannot enter $job_submit_dir"
# Everything that belongs to this job alone is in a directory of its own.
job_dir=runs/mnist-${job_id//[^A-Za-z0-9._-]/_}
[[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir"
[[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir"
rm -f "$job_dir/status.json" "$job_dir"/done-*

# ---- the environment ----------------------------------------------------------------------
# A sourced script is seldom written for set -eu, and may change more of the shell than its environment.
# It is sourced at the top level: what it declares in a function would be gone with that.
job_here=$PWD
job_readable() { [[ -f $job_file && -r $job_file ]] || job_die 71 "cannot read $job_file, which was to be sourced"; }
job_sourced() { # STATUS
  set -eu +fx
  unset IFS
  trap job_end EXIT
  cd "$job_here"
  (($1 == 0)) || job_say "warning: $job_file returned status $1"
}
job_file='/opt/profile/cuda-11.6.sh'
job_readable
set +eu
# shellcheck disable=SC1090  # found at run time
source "$job_file"
job_sourced $?
job_file='/opt/profile/gcc-9.sh'
job_readable
set +eu
# shellcheck disable=SC1090  # found at run time
source "$job_file"
job_sourced $?
job_file='/opt/profile/openmpi-intel.sh'
job_readable
set +eu
# shellcheck disable=SC1090  # found at run time
source "$job_file"
job_sourced $?
# CUDA: PyTorch brings its own libraries; the toolkit is for DeepSpeed's ops, which compile at run time.
if [[ -z ${CUDA_HOME:-} ]] && command -v nvcc > /dev/null; then
  CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
elif [[ -z ${CUDA_HOME:-} && -x /usr/local/cuda/bin/nvcc ]]; then
  CUDA_HOME=/usr/local/cuda
fi
[[ -z ${CUDA_HOME:-} ]] || export CUDA_HOME PATH=$CUDA_HOME/bin:$PATH
# conda's own shell hook: conda init is for login shells and does nothing in a batch job.
job_conda=${CONDA_EXE:-$(command -v conda || true)}
for job_file in "$HOME"/{miniforge3,miniconda3,mambaforge,anaconda3}/bin/conda /opt/conda/bin/conda; do
  [[ -n $job_conda ]] || [[ ! -x $job_file ]] || job_conda=$job_file
done
[[ -n $job_conda ]] || job_die 71 'cannot find conda: load its module, or put it on PATH'
job_hook=$("$job_conda" shell.bash hook) || job_die 71 "$job_conda has no shell hook"
set +eu
job_conda_env='/home/me/envs/ds'
eval "$job_hook" && conda activate "$job_conda_env"
job_activated=$?
set -eu
((job_activated == 0)) || job_die 71 "cannot activate the conda environment $job_conda_env"
export PYTHONUNBUFFERED=1
export OMP_NUM_THREADS=1
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need python3
job_need deepspeed
job_program='mnist.py'
[[ -f $job_program ]] || job_die 71 "there is no $job_program in $PWD"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
cat "$job_nodefile" |
  awk -v slots=1 'NF && !seen[$1]++ { print $1 " slots=" slots }' > "$job_dir/hostfile"
awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
mapfile -t job_hosts < "$job_dir/hosts"
job_slots=$(awk -F= '{ n += $2 } END { print n + 0 }' "$job_dir/hostfile")
((${#job_hosts[@]} == 2)) ||
  job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]:0:8}), but 2 were asked for"
((job_slots == 2)) ||
  job_die 70 "the hostfile has $job_slots slots, but 2 x 1 = 2 were asked for"

# ---- the rendezvous -----------------------------------------------------------------------
export MASTER_ADDR=${job_hosts[0]}
# From the job id, so that two jobs on one node differ, and the next one up where somebody listens.
export MASTER_PORT=$((20000 + job_number % 10000))
while (exec 3<> "/dev/tcp/localhost/$MASTER_PORT") 2> /dev/null; do MASTER_PORT=$((MASTER_PORT + 1)); done
export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_WORLD_SIZE=2 JOBGEN_ACCELERATOR=cuda
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
(exec python3 mnist.py "--local_rank=$LOCAL_RANK" --deepspeed_config ds.json)
touch "$JOBGEN_RUN_DIR/done-$RANK"
END_OF_RANK

# ---- the launch ---------------------------------------------------------------------------
# jobgen-remote HOST COMMAND: runs a shell command on a host, in the environment and the directory of
# this job. It stands where mpirun expects ssh.
[[ $job_dir != *:* ]] || job_die 72 "the run directory $job_dir must be without a colon: it goes on PATH"
cat > "$job_dir/jobgen-remote" <<'END_OF_REMOTE'
#!/bin/bash
set -euo pipefail
while [[ $1 == -* ]]; do shift; done  # options for ssh
job_host=$1
shift
# shellcheck disable=SC2016  # expanded on the other side
job_words=(/bin/bash -c '. "$0/env.sh" && export PATH=$0:$PATH && eval "$1"' "$JOBGEN_RUN_DIR" "$*")
# It parses nothing and gives no environment, and its own status says nothing: that comes by a file.
if command -v pbsdsh > /dev/null; then
  job_answer=$JOBGEN_RUN_DIR/status-of-$job_host-$$
  # shellcheck disable=SC2016  # expanded on the other side
  pbsdsh -h "$job_host" /bin/bash -c '"$@"; echo $? > "$0"' "$job_answer" "${job_words[@]}"
  exit "$(cat "$job_answer")"
fi
# ssh joins its words with blanks and has the other side's shell parse them.
if command -v ssh > /dev/null; then
  exec ssh -o BatchMode=yes "$job_host" "$(printf '%q ' "${job_words[@]}")"
fi
echo "jobgen: no pbsdsh or ssh on PATH" >&2
exit 71
END_OF_REMOTE
chmod +x "$job_dir/jobgen-remote"
job_say "2 nodes x 1 rank, 2 ranks in all, by deepspeed on NVIDIA GPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
job_status=0
# What every node runs: the launcher without ssh, once a node.
cat > "$job_dir/node.sh" <<'END_OF_NODE'
#!/bin/bash
# node.sh [NODE_RANK]
set -euo pipefail
JOBGEN_DEVICES=$(printenv CUDA_VISIBLE_DEVICES || true)
export JOBGEN_DEVICES
exec deepspeed --hostfile "$JOBGEN_RUN_DIR/hostfile" \
  --no_ssh --node_rank "${1:-$SLURM_NODEID}" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \
  --no_python --no_local_rank bash "$JOBGEN_RUN_DIR/rank.sh"
END_OF_NODE
# One launcher a node, the first here; the first failure is the job's status and ends the others.
job_pids=()
for job_rank in "${!job_hosts[@]}"; do
  job_host=${job_hosts[job_rank]}
  if [[ $job_host == "$(head -n 1 "$job_dir/hosts")" ]]; then
    bash "$job_dir/node.sh" "$job_rank" &
  else
    "$job_dir/jobgen-remote" "$job_host" "bash \"\$JOBGEN_RUN_DIR/node.sh\" $job_rank" &
  fi
  job_pids+=($!)
done
for job_rank in "${!job_hosts[@]}"; do
  wait -n && continue
  job_status=$?
  job_say "the launcher of a node ended with status $job_status; ending the others"
  # torchrun, told to end, still waits minutes for the nodes that have gone.
  kill "${job_pids[@]}" 2> /dev/null || true
  { sleep 10; kill -KILL "${job_pids[@]}"; } 2> /dev/null &
  wait "${job_pids[@]}" || true
  kill $! 2> /dev/null || true
  break
done

# ---- the end ------------------------------------------------------------------------------
# deepspeed ends with 0 although it was killed on some node: every rank's own word is needed, too.
for ((job_rank = 0; job_status == 0 && job_rank < 2; job_rank++)); do
  rm "$job_dir/done-$job_rank" || job_die 73 "deepspeed ended with status 0, but rank $job_rank did not"
done
job_over=yes
exit "$job_status"
