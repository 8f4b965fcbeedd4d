#!/bin/bash
# 2 nodes x 8 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs; made by jobgen 0.1.0.
# Slurm: https://slurm.schedmd.com/sbatch.html
# Submit it with: sbatch FILE. Of a repeated directive Slurm heeds the last.
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=8
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
set -euo pipefail
unset CDPATH

# Statuses of this script; any other one is the launcher's:
# 70 the allocation is not what was asked for      71 a file, a module or a command is missing
# 72 a directory cannot be used                    73 the launcher said 0 without proof of success
# 74 the preflight found a fault                   75 not finished, but the next attempt can go on
job_say() { printf 'jobgen: %s\n' "$*" >&2 || true; }  # the terminal may be gone
job_die() { # STATUS MESSAGE
  job_say "$2"
  exit "$1"
}
job_note() { # WHAT VALUE: into the attempt's events, with the time
  # No $(date): bash 5.2 cannot read one while a second signal waits for its trap.
  { [[ -z ${job_logs:-} ]] || printf '%(%s)T %s %s\n' -1 "$1" "$2" >> "$job_logs/events"; } 2> /dev/null || true
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
  ((status != 75)) || what='is not finished, but can go on: it ended with status 75'
  job_note ended "$status"
  job_say "job ${job_id:-?} $what after $SECONDS s${job_output:+; output in $job_output}${job_dir:+; files in $job_dir}"
  exit "$status"
}
trap job_end EXIT
job_traps=0 job_signals=0 job_last_signal=''
# shellcheck disable=SC2329  # job_trap calls it
job_signal() { # NAME: one that comes before the program
  job_signals=$((job_signals + 1))
  job_last_signal=$1
  job_note signal "$1"
  ((job_signals == 1)) || job_die 75 "got $1 again: stopping at once"
}
# shellcheck disable=SC2329  # the traps call it
job_trap() { # NAME
  job_traps=$((job_traps + 1))
  if [[ $1 == HUP ]]; then  # twice when a terminal closes: from itself, and from its shell
    local before=${job_hung_up:--9}
    job_hung_up=$SECONDS
    ((SECONDS - before >= 5)) || return 0
  fi
  job_signal "$1"
}
job_listen() {
  local name
  for name in TERM INT HUP USR1 USR2; do
    # shellcheck disable=SC2064  # now: each its own
    trap "job_trap $name" "$name"
  done
  trap : PIPE  # nobody reads the output any more; that is no reason to end
}
job_listen

# ---- the job ------------------------------------------------------------------------------
command -v scontrol > /dev/null || job_die 71 'cannot find scontrol on PATH'
[[ -n ${SLURM_JOB_ID:-} && -n ${SLURM_JOB_NODELIST:-} ]] ||
  job_die 70 'SLURM_JOB_ID and SLURM_JOB_NODELIST are not set: submit this script with sbatch'
job_id=$SLURM_JOB_ID
# shellcheck disable=SC2034  # unused where the port is given
job_number=$SLURM_JOB_ID
job_nodelist=$SLURM_JOB_NODELIST
[[ ${SLURM_TASKS_PER_NODE:-} != *,* ]] || job_die 70 "Slurm gave the hosts different shares ($SLURM_TASKS_PER_NODE tasks), but all are to have 8 ranks"
job_submit_dir=${SLURM_SUBMIT_DIR:-$PWD}
job_field() { # NAME: what Slurm says of this job now
  scontrol show job "$job_id" | tr ' ' '\n' | awk -F= -v name="$1" '$1 == name && !n++ { print $2 }'
}
job_output=$(scontrol show job "$job_id" | awk 'sub(/^ *StdOut=/, "") && !n++') || true  # as sbatch has it
unset SLURM_EXPORT_ENV  # sbatch --export=NONE would go on to the daemons that mpirun starts by srun
job_dir=
if [[ -f $job_submit_dir/submitted-from && -f $job_submit_dir/job.sh ]]; then
  job_dir=$job_submit_dir  # a later attempt
  job_submit_dir=$(< "$job_dir/submitted-from")
fi
cd "$job_submit_dir" || job_die 72 "cannot enter $job_submit_dir"
# Everything that belongs to this job alone is in a directory of its own.
[[ -n $job_dir ]] || job_dir=runs/jobgen-${job_id//[^A-Za-z0-9._-]/_}
[[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir"
[[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir"
rm -f "$job_dir/status.json" "$job_dir/cancelled"

# Each attempt of the job has its own logs in it: the second comes after a requeue, or by hand.
job_attempt=1
while [[ -e $job_dir/attempt-$job_attempt ]]; do job_attempt=$((job_attempt + 1)); done
job_logs=$job_dir/attempt-$job_attempt
mkdir "$job_logs" || job_die 72 "cannot make the directory $job_logs"
job_note began "$job_id"
[[ -z ${job_output:-} ]] || job_note output "$job_output"
if [[ -f ${BASH_SOURCE[0]:-} && ! ${BASH_SOURCE[0]} -ef $job_dir/job.sh ]]; then
  cp "${BASH_SOURCE[0]}" "$job_dir/job.sh"  # submitted from there, it goes on in there
fi
printf '%s\n' "$job_submit_dir" > "$job_dir/submitted-from"
printf '%s\n' "$job_id" > "$job_dir/job-id"

# ---- the environment ----------------------------------------------------------------------
export PYTHONUNBUFFERED=1
export OMP_NUM_THREADS=2
job_need() { command -v "$1" > /dev/null || job_die 71 "cannot find $1 on PATH"; }
job_need srun
# What runs a command in the container, with the environment and the directory that it is called with.
[[ $PWD$job_dir != *[:,]* ]] || job_die 72 "a container can be given neither $PWD nor $job_dir: choose directories without colons and commas"
cat > "$job_dir/container.sh" <<'END_OF_CONTAINER'
#!/bin/bash
# container.sh COMMAND...: in the container
set -euo pipefail
job_dir=${BASH_SOURCE[0]%/*}
# Of the host alone:
unset LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH CPATH PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX CUDA_HOME CUDA_PATH ROCM_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME
export PYTHONNOUSERSITE=1  # also its packages in the home directory
exec srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=16 --mpi=none --export=ALL \
  --container-image='nvcr.io#nvidia/pytorch:25.01-py3' --container-workdir="$PWD" --container-mounts="$job_dir:$job_dir,$PWD:$PWD",/data:/data "$@"
END_OF_CONTAINER
job_inside() { bash "$job_dir/container.sh" "$@"; }
job_inside true || job_die 71 "cannot start the container pyxis with the image "'nvcr.io#nvidia/pytorch:25.01-py3'
# shellcheck disable=SC2016  # expanded in the container
job_has() { job_inside sh -c 'command -v "$0" > /dev/null' "$1"; }
job_has python3 || job_die 71 'cannot find python3 in the container'
job_has torchrun || job_die 71 'cannot find torchrun in the container'
job_inside python3 -c 'import jobgen.train' || job_die 71 "python3 in the container has no jobgen.train: pip install 'jobgen[train]' there"

# ---- the hosts ----------------------------------------------------------------------------
# Each host once, in the scheduler's order, however often it lists it: HOST slots=N.
{ scontrol show hostnames "$job_nodelist" || job_say "scontrol cannot list the hosts of $job_nodelist"; } |
  awk -v slots=8 'NF && !seen[$1]++ { print $1 " slots=" slots }' > "$job_dir/hostfile"
awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
mapfile -t job_hosts < "$job_dir/hosts"
job_slots=$(awk -F= '{ n += $2 } END { print n + 0 }' "$job_dir/hostfile")
((${#job_hosts[@]} == 2)) ||
  job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]:0:8}), but 2 were asked for"
((job_slots == 16)) ||
  job_die 70 "the hostfile has $job_slots slots, but 2 x 8 = 16 were asked for"

# ---- the rendezvous -----------------------------------------------------------------------
export MASTER_ADDR=${job_hosts[0]}
# From the job id, so that two jobs on one node differ, and the next one up where somebody listens.
export MASTER_PORT=$((20000 + job_number % 10000))
while (exec 3<> "/dev/tcp/localhost/$MASTER_PORT") 2> /dev/null; do MASTER_PORT=$((MASTER_PORT + 1)); done
export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_WORLD_SIZE=16 JOBGEN_ACCELERATOR=cuda
export JOBGEN_ATTEMPT=$job_attempt
JOBGEN_START_TIME=$(($(date +%s) - SECONDS))
export JOBGEN_START_TIME
# When the job must have begun to save: 120 s before its time is over.
job_ends=$(date -d "$(job_field EndTime)" +%s 2> /dev/null) || job_ends=
job_deadline=${job_ends:+$((job_ends - 120))}
[[ -z $job_deadline ]] || export JOBGEN_DEADLINE=$job_deadline
[[ -z $job_deadline ]] || job_note deadline "$job_deadline"

# ---- the program --------------------------------------------------------------------------
# The environment as it is now, for the other nodes: less what belongs to this node or this shell.
job_save_environment() {
  printf 'cd %q\n' "$PWD"
  for job_name in $(compgen -e); do
    case $job_name in
      SLURM* | PMI* | OMPI_COMM_* | *_VISIBLE_DEVICES | ZE_AFFINITY_MASK | GPU_DEVICE_ORDINAL | TMPDIR | HOSTNAME | HOST | DISPLAY | SSH_* | XDG_*) ;;
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
# rank.sh [preflight]
set -euo pipefail
if [[ ${1:-} == preflight ]]; then exec python3 -m jobgen.train preflight; fi
# Launchers change the status of a rank, or lose it: here are its own, its log and its process.
job_log=$JOBGEN_RUN_DIR/attempt-$JOBGEN_ATTEMPT/rank-${RANK:-unknown}
trap '' TERM INT HUP USR1 USR2 PIPE  # they are for the program, but launchers send them to this shell, too
set +e
exec {job_out}> >(tee -a "$job_log.log")
job_tee=$!
{ (
  trap - TERM INT HUP USR1 USR2 PIPE
  echo "$BASHPID $(hostname)" > "$job_log.pid"
  [[ ! -e ${job_log%/*}/asked ]] || exit 75  # to leave, before it began
  exec python3 -m jobgen.train
) < /dev/null >&"$job_out" 2>&1 {job_out}>&-; job_status=$?; } 2> /dev/null  # where bash says how it ended
((job_status != 128 + $(kill -l USR1))) || job_status=75  # asked to leave before it could listen
echo "${job_log##*-} $job_status $(date +%s.%N) $(hostname)" > "$job_log.status"
exec {job_out}>&-
for _ in {1..100}; do  # not for ever: what the program left running may hold its output open
  kill -0 "$job_tee" 2> /dev/null || break
  sleep 0.1
done
kill -KILL "$job_tee" 2> /dev/null
exit "$job_status"
END_OF_RANK

# ---- the launch ---------------------------------------------------------------------------
# What every node runs.
cat > "$job_dir/node.sh" <<'END_OF_NODE'
#!/bin/bash
# node.sh NODE_RANK [preflight]
set -euo pipefail
exec torchrun --nnodes=2 --nproc-per-node=8 --node-rank="${1:-$SLURM_NODEID}" \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \
  --no-python bash "$JOBGEN_RUN_DIR/rank.sh" "${@:2}"
END_OF_NODE
# One task a node, with all cores of the job there; --cpus-per-task again, as srun does not take it
# from the job on Slurm 22.05 to 23.02.
job_launch() {
  unset LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH CPATH PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX CUDA_HOME CUDA_PATH ROCM_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME
  exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=16 \
    --kill-on-bad-exit=1 --export=ALL --mpi=none \
    --container-image='nvcr.io#nvidia/pytorch:25.01-py3' --container-workdir="$PWD" --container-mounts="$job_dir:$job_dir,$PWD:$PWD",/data:/data bash "$job_dir/node.sh" '' "$@"
}
job_status=0 job_launcher='' job_helpers=()
# shellcheck disable=SC2329  # the traps call it
job_later() { # SECONDS COMMAND...: run it then, unless the launcher ends before
  (
    trap 'kill "$!"; exit' TERM
    sleep "$1" &
    wait "$!"
    "${@:2}"
  ) &> /dev/null &
  job_helpers+=($!)
}
# shellcheck disable=SC2329  # run in the background
job_stop() { # end the launcher, and what it left running
  kill -TERM "$job_launcher"
  sleep 10 &
  wait "$!"
  job_forward KILL || true
  kill -KILL -- "-$job_launcher"
}
# shellcheck disable=SC2329  # run in the background
job_guard() { # a launcher may wait for the ranks of a node that is gone long after the others have failed
  until grep -qsv '^[^ ]* 0 ' "$job_logs"/rank-*.status; do
    sleep 10 &
    wait "$!"
  done
  sleep 30 &
  wait "$!"
  job_stop
}
# A signal for this script is passed on to the program of every rank as USR1, once; a second one stops all.
# shellcheck disable=SC2329  # the traps call it
job_forward() { # SIGNAL
  srun --nodes="${#job_hosts[@]}" --ntasks="${#job_hosts[@]}" --ntasks-per-node=1 --nodelist="$(IFS=,; echo "${job_hosts[*]}")" \
    --overlap --mpi=none bash "$job_dir/signal.sh" "$1" "$job_logs"
}
# torchrun itself would end on it, so it goes to the programs, whose processes rank.sh notes.
cat > "$job_dir/signal.sh" <<'END_OF_SIGNAL'
#!/bin/bash
# signal.sh NAME DIRECTORY
for job_file in "$2"/rank-*.pid; do
  [[ -e $job_file ]] || continue  # it finds asked
  read -r job_pid job_host < "$job_file" || continue
  [[ $job_host != "$(hostname)" || -e ${job_file%.pid}.status ]] || kill -s "$1" "$job_pid"
done
END_OF_SIGNAL
# shellcheck disable=SC2329  # job_trap calls it
job_signal() { # NAME
  job_signals=$((job_signals + 1))
  job_last_signal=$1
  job_note signal "$1"
  : > "$job_logs/asked" || true  # for the ranks that have not begun
  [[ -n $job_launcher ]] || return 0
  if ((job_signals == 1)); then
    job_say "got $1: asking every rank to save and leave; a second signal stops at once"
    job_forward USR1 &
  else
    job_say "got $1 again: stopping at once"
    job_later 0 job_stop
  fi
}
job_listen  # again: what was sourced may have traps of its own

job_run() { # [preflight]: run the launcher; its status is left in job_status
  set -m  # in a process group of its own: Ctrl-C is for this script alone
  job_launch "$@" < /dev/null &  # without input, which may be the rest of this script
  job_launcher=$!
  set +m
  if [[ -n ${1:-} ]]; then
    job_later 120 job_stop
  else
    job_later 0 job_guard
  fi
  local traps=-1
  # A trap ends the wait, not the launcher; bash may end the next wait, too, after two signals at once.
  while ((traps != job_traps)) || kill -0 "$job_launcher" 2> /dev/null; do
    traps=$job_traps
    wait "$job_launcher" && job_status=0 || job_status=$?
  done
  if ((job_signals > 1)); then  # a launcher may end before its ranks do
    job_forward KILL
    kill -KILL -- "-$job_launcher"
  fi &> /dev/null || true
  job_launcher=
  ((${#job_helpers[@]} == 0)) || kill "${job_helpers[@]}" 2> /dev/null || true
  job_helpers=()
}
# The same launcher on the same hosts, before hours are spent. The bad hosts are left in job_bad.
job_preflight() {
  rm -rf "$job_dir/preflight"
  mkdir "$job_dir/preflight"
  job_run preflight
  job_bad=()
  ((job_status)) || [[ ! -f $job_dir/preflight/result.json ]] || return 0
  ((job_signals == 0)) || return 0  # it ends before the program
  local host
  if [[ ! -s $job_dir/preflight/bad-hosts ]]; then
    for host in "${job_hosts[@]}"; do
      compgen -G "$job_dir/preflight/$host-*.json" > /dev/null || job_bad+=("$host")
    done
    ((${#job_bad[@]} < ${#job_hosts[@]})) || job_die 74 "the preflight ended with status $job_status before any host had a word"
    ((${#job_bad[@]} == 0)) || printf '%s\tleft no word\n' "${job_bad[@]}" > "$job_dir/preflight/bad-hosts"
  fi
  if [[ -s $job_dir/preflight/bad-hosts ]]; then
    mapfile -t job_bad < <(cut -f 1 "$job_dir/preflight/bad-hosts")
    cat "$job_dir/preflight/bad-hosts" >> "$job_dir/bad-hosts"
  fi
  return 1
}
job_preflight || job_die 74 "the preflight failed with status $job_status; bad: ${job_bad[*]:-no single host}"
job_say "2 nodes x 8 ranks, 16 ranks in all, by torchrun on NVIDIA GPUs: ${job_hosts[*]:0:8}; rendezvous at $MASTER_ADDR:$MASTER_PORT; files in $job_dir"
# shellcheck disable=SC2329  # run in the background
job_ask() { # unless somebody has: a second signal would stop the ranks while they save
  [[ -e $job_logs/asked ]] || kill -USR1 "$$"
}
job_now=$(date +%s)
[[ -z $job_deadline ]] || job_later "$((job_deadline > job_now ? job_deadline - job_now : 0))" job_ask
if ((job_signals)); then
  job_say "got $job_last_signal before the program began"
  job_status=75
else
  job_run
fi

# ---- the end ------------------------------------------------------------------------------
# The launcher's status alone proves nothing: every rank's own word is needed, too.
((job_signals != 1)) || compgen -G "$job_logs/rank-*.pid" > /dev/null || job_status=75  # asked to leave before any began
job_silent=()
for ((job_rank = 0; job_rank < JOBGEN_WORLD_SIZE; job_rank++)); do
  if [[ -s $job_logs/rank-$job_rank.status ]]; then cat "$job_logs/rank-$job_rank.status"; else job_silent+=("$job_rank"); fi
done > "$job_logs/statuses"
job_first=$(LC_ALL=C sort -k 3,3n "$job_logs/statuses" | awk '$2 != 0 && !n++')
if [[ -n $job_first ]]; then
  read -r job_rank job_status _ job_host <<< "$job_first"
  if ((job_status != 75)); then
    job_say "rank $job_rank on $job_host failed first, with status $job_status; the end of $job_logs/rank-$job_rank.log:"
    tail -n 20 "$job_logs/rank-$job_rank.log" >&2 || true
  fi
fi
if ((${#job_silent[@]})) && ((job_status != 75)); then
  ((job_status)) || job_die 73 "torchrun ended with status 0, but rank ${job_silent[*]:0:8} left no status"
  job_say "rank ${job_silent[*]:0:8} left no status: killed by the launcher, or gone with its node"
  for job_host in "${job_hosts[@]}"; do
    ! grep -q " $job_host\$" "$job_logs/statuses" || continue
    if ! timeout 30 srun --overlap --nodes=1 --ntasks=1 --nodelist="$job_host" --mpi=none bash -c true < /dev/null &> /dev/null; then
      job_say "$job_host does not answer"
      printf '%s\tdoes not answer\n' "$job_host" >> "$job_dir/bad-hosts"
      job_status=75
    fi
  done
fi
if ((job_status == 0)) && ! grep -q '"state": *"finished"' "$job_dir/status.json" 2> /dev/null; then
  job_die 73 "torchrun ended with status 0, but $job_dir/status.json does not say that the training finished"
fi
if ((job_status == 75)); then
  job_say "not finished; to go on: cd ${job_dir@Q} && sbatch job.sh"
fi
job_over=yes
exit "$job_status"
