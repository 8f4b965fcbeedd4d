#!/bin/bash
# 2 nodes x 1 rank, 2 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs; made by jobgen 0.1.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE. Of a repeated directive Slurm heeds the last.
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
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
command -v scontrol > /dev/null || job_die 71 'cannot find scontrol on PATH'
[[ -n ${SLURM_JOB_ID:-} && -n ${SLURM_JOB_NODELIST:-} ]] ||
  job_die 70 'SLURM_JOB_ID and SLURM_JOB_NODELIST are not set: submit this script with sbatch'
job_id=$SLURM_JOB_ID
# shellcheck disable=SC2034  # unused where the port is given
job_number=$SLURM_JOB_ID
job_nodelist=$SLURM_JOB_NODELIST
job_submit_dir=${SLURM_SUBMIT_DIR:-$PWD}
job_output=$(scontrol show job "$SLURM_JOB_ID" | awk 'sub(/^ *StdOut=/, "") && !n++') || true  # as sbatch has it
unset SLURM_EXPORT_ENV  # sbatch --export=NONE would go on to the daemons that mpirun starts by srun
cd "$job_submit_dir" || job_die 72 "cannot enter $job_submit_dir"
job_workdir=$'/data/it\'s "here"'
[[ $job_workdir == /* ]] || job_workdir=$PWD/$job_workdir
cd "$job_workdir" || job_die 72 "cannot enter $job_workdir"
# Everything that belongs to this job alone is in a directory of its own.
job_dir='my runs'/jobgen-${job_id//[^A-Za-z0-9._-]/_}
[[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir"
[[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir"
rm -f "$job_dir/status.json"

# ---- the environment ----------------------------------------------------------------------
job_export() { # now, as modules and scripts may read them, and again after those, as they may change them
  export A=$'a b;$(touch pwned)`id`\\'
  export B=$'two\nlines\n#SBATCH --nodes=99'
  export C=$'\342\200\234é\342\200\235'
}
job_export
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
job_file='/opt/my env/set up.sh'
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
export PYTHONUNBUFFERED=1
export OMP_NUM_THREADS=2
job_export
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need python3
job_need mpirun
job_program='train.py'
[[ -f $job_program ]] || job_die 71 "there is no $job_program in $PWD"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
{ scontrol show hostnames "$job_nodelist" || job_say "scontrol cannot list the hosts of $job_nodelist"; } |
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
  printf 'export %s=%q\n' A "$A"
  printf 'export %s=%q\n' B "$B"
  printf 'export %s=%q\n' C "$C"
}
(umask 077; job_save_environment > "$job_dir/env.sh")  # it may hold secrets

# What every rank runs.
cat > "$job_dir/rank.sh" <<'END_OF_RANK'
#!/bin/bash
set -euo pipefail
# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/env.sh"
export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=1
if [[ $WORLD_SIZE != "$JOBGEN_WORLD_SIZE" ]]; then
  echo "jobgen: $(hostname): mpirun started a world of $WORLD_SIZE ranks, not $JOBGEN_WORLD_SIZE: is it another MPI's?" >&2
  exit 70
fi
exec python3 train.py $'$HOME' : '' -- --x=%h
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
if command -v srun > /dev/null; then
  exec srun --jobid="$JOBGEN_JOB_ID" --nodes=1 --ntasks=1 --nodelist="$job_host" --cpus-per-task=2 \
    --overlap --export=ALL --mpi=none --input=none "${job_words[@]}"
fi
echo "jobgen: no srun on PATH" >&2
exit 71
END_OF_REMOTE
chmod +x "$job_dir/jobgen-remote"
job_say "2 nodes x 1 rank, 2 ranks in all, by mpirun (Open MPI) on NVIDIA GPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
job_status=0
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}
# Open MPI refuses root, which a container's user often is.
((EUID)) || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_plm_rsh_agent=jobgen-remote PRTE_MCA_plm_ssh_agent=jobgen-remote
export OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1 PATH=$job_dir:$PATH
case $(mpirun --version 2>&1 || true) in
  *'Open MPI'*) ;;
  *'HYDRA'* | *'Intel'*)
    job_die 71 "$(command -v mpirun) is not Open MPI's: load the right module, or say --mpi" ;;
  *) job_say "warning: $(command -v mpirun) does not say that it is Open MPI's" ;;
esac
# Without input: the script itself may be bash's, and mpirun would read the rest of it.
mpirun -np 2 \
  --hostfile "$job_dir/hostfile" \
  --map-by ppr:1:node --bind-to none \
  -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT -x A -x B -x C \
  '*' bash "$job_dir/rank.sh" < /dev/null || job_status=$?

# ---- the end ------------------------------------------------------------------------------
job_over=yes
exit "$job_status"
