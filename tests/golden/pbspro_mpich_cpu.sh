#!/bin/bash
# 2 nodes x 4 ranks, 8 ranks in all, by mpirun (MPICH) on CPUs; made by jobgen 0.1.0.
# PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf
# Submit it with: qsub FILE. Of a repeated directive PBS heeds the first.
#PBS -N jobgen
#PBS -S /bin/bash
#PBS -l select=2:ncpus=8:mpiprocs=4
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
export DS_ACCELERATOR=cpu  # also on a node that has devices
export PYTHONUNBUFFERED=1
export OMP_NUM_THREADS=2
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need mpirun
job_program='./simulate'
command -v "$job_program" > /dev/null || job_die 71 "cannot run $job_program in $PWD"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
cat "$job_nodefile" |
  awk -v slots=4 'NF && !seen[$1]++ { print $1 " slots=" slots }' > "$job_dir/hostfile"
awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
mapfile -t job_hosts < "$job_dir/hosts"
job_slots=$(awk -F= '{ n += $2 } END { print n + 0 }' "$job_dir/hostfile")
((${#job_hosts[@]} == 2)) ||
  job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]:0:8}), but 2 were asked for"
((job_slots == 8)) ||
  job_die 70 "the hostfile has $job_slots slots, but 2 x 4 = 8 were asked for"

# ---- the rendezvous -----------------------------------------------------------------------
export MASTER_ADDR=${job_hosts[0]}
# From the job id, so that two jobs on one node differ, and the next one up where somebody listens.
export MASTER_PORT=$((20000 + job_number % 10000))
while (exec 3<> "/dev/tcp/localhost/$MASTER_PORT") 2> /dev/null; do MASTER_PORT=$((MASTER_PORT + 1)); done
export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_WORLD_SIZE=8 JOBGEN_ACCELERATOR=cpu
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
export RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE LOCAL_RANK=$MPI_LOCALRANKID LOCAL_WORLD_SIZE=4
if [[ $WORLD_SIZE != "$JOBGEN_WORLD_SIZE" ]]; then
  echo "jobgen: $(hostname): mpirun started a world of $WORLD_SIZE ranks, not $JOBGEN_WORLD_SIZE: is it another MPI's?" >&2
  exit 70
fi
exec ./simulate input.dat
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
# It parses nothing and gives neither environment, directory nor input, but keeps the status.
if command -v pbs_tmrsh > /dev/null; then
  exec pbs_tmrsh "$job_host" "${job_words[@]}"
fi
# ssh joins its words with blanks and has the other side's shell parse them.
if command -v ssh > /dev/null; then
  exec ssh -o BatchMode=yes "$job_host" "$(printf '%q ' "${job_words[@]}")"
fi
echo "jobgen: no pbs_tmrsh or ssh on PATH" >&2
exit 71
END_OF_REMOTE
chmod +x "$job_dir/jobgen-remote"
job_say "2 nodes x 4 ranks, 8 ranks in all, by mpirun (MPICH) on CPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
job_status=0
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} PYTHONPATH=${PYTHONPATH:-}
export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=jobgen-remote PATH=$job_dir:$PATH
case $(mpirun --version 2>&1 || true) in
  *'HYDRA'*) ;;
  *'Open MPI'* | *'Intel'*)
    job_die 71 "$(command -v mpirun) is not MPICH's: load the right module, or say --mpi" ;;
  *) job_say "warning: $(command -v mpirun) does not say that it is MPICH's" ;;
esac
# Without input: the script itself may be bash's, and mpirun would read the rest of it.
mpirun -n 8 -ppn 4 \
  -f "$job_dir/hosts" \
  -genv PATH "$PATH" -genv LD_LIBRARY_PATH "$LD_LIBRARY_PATH" -genv PYTHONPATH "$PYTHONPATH" -genv MASTER_ADDR "$MASTER_ADDR" -genv MASTER_PORT "$MASTER_PORT" \
  bash "$job_dir/rank.sh" < /dev/null || job_status=$?

# ---- the end ------------------------------------------------------------------------------
job_over=yes
exit "$job_status"
