#!/bin/bash
# 1 node x 2 ranks, 2 ranks in all, by mpirun (Open MPI) on CPUs; made by jobgen 0.1.0.
# Run it with: bash FILE. This machine is the allocation.
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
job_id=$(date +%Y%m%d-%H%M%S)-$$
# shellcheck disable=SC2034  # unused where the port is given
job_number=$$
job_submit_dir=$PWD
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
export OMP_NUM_THREADS=1
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need python3
job_need mpirun
python3 -c 'import jobgen.train' || job_die 71 "$(command -v python3) has no jobgen.train: pip install 'jobgen[train]'"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
echo localhost |
  awk -v slots=2 'NF && !seen[$1]++ { print $1 " slots=" slots }' > "$job_dir/hostfile"
awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
mapfile -t job_hosts < "$job_dir/hosts"
job_slots=$(awk -F= '{ n += $2 } END { print n + 0 }' "$job_dir/hostfile")
((${#job_hosts[@]} == 1)) ||
  job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]:0:8}), but 1 were asked for"
((job_slots == 2)) ||
  job_die 70 "the hostfile has $job_slots slots, but 1 x 2 = 2 were asked for"

# ---- the rendezvous -----------------------------------------------------------------------
export MASTER_ADDR=${job_hosts[0]}
# From the job id, so that two jobs on one node differ, and the next one up where somebody listens.
export MASTER_PORT=$((20000 + job_number % 10000))
while (exec 3<> "/dev/tcp/localhost/$MASTER_PORT") 2> /dev/null; do MASTER_PORT=$((MASTER_PORT + 1)); done
export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_WORLD_SIZE=2 JOBGEN_ACCELERATOR=cpu
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
exec python3 -m jobgen.train --task digits
END_OF_RANK

# ---- the launch ---------------------------------------------------------------------------
job_say "1 node x 2 ranks, 2 ranks in all, by mpirun (Open MPI) on CPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
job_status=0
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}
# Open MPI refuses root, which a container's user often is.
((EUID)) || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
case $(mpirun --version 2>&1 || true) in
  *'Open MPI'*) ;;
  *'HYDRA'* | *'Intel'*)
    job_die 71 "$(command -v mpirun) is not Open MPI's: load the right module, or say --mpi" ;;
  *) job_say "warning: $(command -v mpirun) does not say that it is Open MPI's" ;;
esac
# Without input: the script itself may be bash's, and mpirun would read the rest of it.
mpirun -np 2 \
  --hostfile "$job_dir/hostfile" \
  --map-by ppr:2:node --bind-to none \
  -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT \
  bash "$job_dir/rank.sh" < /dev/null || job_status=$?

# ---- the end ------------------------------------------------------------------------------
# A launcher may end with 0 although a rank was killed: the training's own word is needed, too.
if ((job_status == 0)) && ! grep -q '"state": *"finished"' "$job_dir/status.json" 2> /dev/null; then
  job_die 73 "mpirun ended with status 0, but $job_dir/status.json does not say that the training finished"
fi
job_over=yes
exit "$job_status"
