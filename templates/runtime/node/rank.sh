#!/bin/bash
# rank.sh [preflight]: the launcher starts it once for each rank.
# Launchers change or lose the status of a rank: this script records its status, its log and its process.
set -euo pipefail
job_dir=${BASH_SOURCE[0]%/*}
if [[ -z ${JOBGEN_INSIDE:-} ]]; then
  # shellcheck source=/dev/null
  . "$job_dir/env.sh"
fi
# shellcheck source=/dev/null
. "$job_dir/functions.sh"
job_host=${JOBGEN_HOST:-${SLURMD_NODENAME:-$(hostname)}}

job_umask=$(umask)  # of the program
umask "${JOBGEN_UMASK:-077}"

job_fail() {
  echo "jobgen: $job_host: $1" >&2
  exit 70
}

job_restore_devices() { # the deepspeed launcher numbers the devices of a node from 0; the scheduler may allocate others
  local all own i devices=
  [[ -z ${JOBGEN_DEVICES_BY_NODE:-} ]] || JOBGEN_DEVICES=$(sed -n "$((CROSS_RANK + 1))p" "$job_dir/devices")
  [[ -n ${JOBGEN_DEVICES:-} ]] || return 0
  IFS=, read -ra all <<< "$JOBGEN_DEVICES"
  IFS=, read -ra own <<< "${!JOBGEN_VISIBLE}"
  for i in ${own[@]+"${own[@]}"}; do devices+=,${all[i]:?$job_host has only the devices $JOBGEN_DEVICES}; done
  export "$JOBGEN_VISIBLE=${devices#,}"
}

job_number_device() { # LOCAL_RANK must be a device that this rank sees: with some launchers it sees only its own
  local name list seen
  [[ ${JOBGEN_ACCELERATOR:-} != cpu ]] || return 0
  for name in CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ASCEND_RT_VISIBLE_DEVICES ZE_AFFINITY_MASK; do
    [[ -n ${!name:-} ]] || continue
    list=${!name//[!,]/}
    seen=$((${#list} + 1))
    ((LOCAL_RANK < seen)) || LOCAL_RANK=$((LOCAL_RANK % seen))
  done
}

[[ -z ${JOBGEN_VISIBLE:-} ]] || job_restore_devices
! declare -F job_secrets > /dev/null || job_secrets
! declare -F variables > /dev/null || variables
! declare -F rank > /dev/null || rank
[[ -n ${RANK:-} ]] || job_fail "$JOBGEN_LAUNCHER gave this process no rank"
[[ -z ${WORLD_SIZE:-} || $WORLD_SIZE == "$JOBGEN_WORLD_SIZE" ]] ||
  job_fail "$JOBGEN_LAUNCHER started a world of $WORLD_SIZE ranks, not $JOBGEN_WORLD_SIZE: is it that of another MPI?"
LOCAL_WORLD_SIZE=${LOCAL_WORLD_SIZE:-${LOCAL_SIZE:-$JOBGEN_RANKS_PER_NODE}}
job_local=${LOCAL_RANK:-0}
if [[ -f $job_dir/bind.sh ]]; then
  # shellcheck source=/dev/null
  . "$job_dir/bind.sh"
fi
[[ -z ${LOCAL_RANK:-} ]] || job_number_device

if [[ ${1:-} == preflight ]]; then
  [[ -z $JOBGEN_TRAINING ]] || program preflight
  inside=()
  ! declare -F container > /dev/null || [[ -n ${JOBGEN_INSIDE:-} ]] || inside=(bash "$job_dir/container.sh")
  exec ${inside[@]+"${inside[@]}"} python3 -m jobgen.train preflight
fi

job_write() { # began|ended NUMBER [SECONDS]: a line of this rank in the file of its node; SECONDS since 1970, default now
  local now=${3:-${EPOCHREALTIME:-$(date +%s.%N)}}
  printf '%s %s %s %s %s\n' "$1" "$RANK" "$2" "${now/,/.}" "$job_host" >> "$job_node.ranks"
}

job_remainder() { # the processes that the program has left
  local pid
  grep -lszxF "JOBGEN_NODE=$job_node" /proc/[0-9]*/environ | while read -r pid; do
    pid=${pid//[!0-9]/}
    { ((LOCAL_WORLD_SIZE > 1)) && ! grep -qszxF "RANK=$RANK" "/proc/$pid/environ"; } || echo "$pid"
  done
}

job_end_remainder() { # they may hold sockets of MPICH, which waits for them, and outlive a step of Slurm
  local pids signal
  for signal in TERM 0 0 0 0 0 KILL; do
    mapfile -t pids < <(job_remainder)
    ((${#pids[@]})) || return 0
    kill -s "$signal" "${pids[@]}"
    sleep 0.5
  done
} 2> /dev/null

job_logs=$JOBGEN_LOGS
job_node=$job_logs/nodes/$(((RANK - job_local) / 400))/$job_host
if ((job_local == 0)); then
  setsid bash "$job_dir/watch.sh" "$PPID" "$job_node" "$LOCAL_WORLD_SIZE" < /dev/null &> /dev/null &
fi

job_pipe() { # sets job_in and job_out to the ends of a new pipe; the process id of >(...) is known since bash 4.4
  local both
  exec {both}<> <(:)
  exec {job_in}< "/dev/fd/$both" {job_out}> "/dev/fd/$both" {both}>&-
}

# Signals are for the program, but launchers send them to this shell and its helpers, too, which outlive the program.
trap '' TERM INT HUP USR1 USR2 URG PIPE
set +e
case $JOBGEN_RANK_LOGS in
  node)
    job_pipe
    # cut ends the last line
    { stdbuf -oL cut -b1- | stdbuf -oL sed "s/^/$RANK: /" >> "$job_node.log"; } <&"$job_in" {job_in}<&- {job_out}>&- &
    job_children+=($!)
    job_lines=$job_out
    job_log=/dev/fd/$job_lines
    exec {job_in}<&-
    ;;
  rank) job_log=${job_node%/*}/rank-$RANK.log ;;
  failed) job_log=$(mktemp) || job_fail 'cannot make a temporary file' ;;
  none) job_log=/dev/null ;;
esac
job_pipe
tee -a "$job_log" <&"$job_in" {job_in}<&- {job_out}>&- &
job_children+=($!)
exec {job_in}<&-
trap : TERM INT HUP USR1 USR2 URG PIPE  # not '': bash 4.2 could not restore them for the program
[[ -z ${job_lines:-} ]] || exec {job_lines}>&-

{ (
  export JOBGEN_NODE=$job_node  # identifies the processes of this job on this node
  job_write began "$BASHPID"
  [[ ! -s $job_logs/control ]] || exit 75  # asked to exit before it started
  umask "$job_umask"
  program
) < /dev/null >&"$job_out" 2>&1 {job_out}>&-; job_status=$?; } 2> /dev/null  # where bash reports how it ended
job_ended=${EPOCHREALTIME:-$(date +%s.%N)}  # ranks that lose a peer fail soon after it: the times show which failed first
trap '' TERM INT HUP USR1 USR2 URG PIPE
# A signal may arrive before the training module handles it.
[[ -z $JOBGEN_TRAINING ]] || ((job_status != 128 + $(kill -l "$JOBGEN_SIGNAL"))) || job_status=75

exec {job_out}>&-
for i in {1..100}; do  # limited: processes that the program left may keep its output open
  kill -0 "${job_children[@]}" 2> /dev/null || { job_children=(); break; }
  ((i != 10)) || job_end_remainder
  sleep 0.1
done
((${#job_children[@]} == 0)) || kill -KILL "${job_children[@]}" 2> /dev/null
if [[ $JOBGEN_RANK_LOGS == failed ]]; then
  ((job_status == 0 || job_status == 75)) || cat "$job_log" > "${job_node%/*}/rank-$RANK.log"
  rm -f "$job_log"
fi
job_write ended "$job_status" "$job_ended"
# The launcher ends the other ranks when this one exits: their watchers must first ask them to save.
((job_status != 75)) || ! grep -qs '^save' "$job_logs/control" || sleep "$((${JOBGEN_POLL%.*} + 1))"
job_end_remainder
((job_status == 0 || job_status == 75)) || [[ -s $job_logs/failed ]] || echo "$RANK $job_status $job_host" >> "$job_logs/failed"
exit "$job_status"
