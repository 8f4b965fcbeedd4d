#!/bin/bash
# 2 nodes x 2 ranks, 4 ranks in all, by srun (Open MPI) on CPUs; made by jobgen 0.1.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE. Of a repeated directive Slurm heeds the last.
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=2
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
# Everything that belongs to this job alone is in a directory of its own.
job_dir=runs/jobgen-${job_id//[^A-Za-z0-9._-]/_}
[[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir"
[[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir"
rm -f "$job_dir/status.json"

# ---- the environment ----------------------------------------------------------------------
export DS_ACCELERATOR=cpu  # also on a node that has devices
export PYTHONUNBUFFERED=1
export OMP_NUM_THREADS=2
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need srun
job_program='./solver'
command -v "$job_program" > /dev/null || job_die 71 "cannot run $job_program in $PWD"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
{ scontrol show hostnames "$job_nodelist" || job_say "scontrol cannot list the hosts of $job_nodelist"; } |
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
export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_WORLD_SIZE=4 JOBGEN_ACCELERATOR=cpu
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
# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/env.sh"
export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=2
if [[ $WORLD_SIZE != "$JOBGEN_WORLD_SIZE" ]]; then
  echo "jobgen: $(hostname): srun started a world of $WORLD_SIZE ranks, not $JOBGEN_WORLD_SIZE: is it another MPI's?" >&2
  exit 70
fi
exec ./solver
END_OF_RANK

# ---- the launch ---------------------------------------------------------------------------
job_say "2 nodes x 2 ranks, 4 ranks in all, by srun (Open MPI) on CPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
job_status=0
# --cpus-per-task again: srun does not take it from the job on Slurm 22.05 to 23.02.
srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --cpus-per-task=2 \
  --kill-on-bad-exit=1 --export=ALL --mpi=pmix \
  bash "$job_dir/rank.sh" || job_status=$?

# ---- the end ------------------------------------------------------------------------------
job_over=yes
exit "$job_status"
