#!/bin/bash
# each_node.sh [preflight]: start node.sh on every host; the first one is this host.
# The first failure ends the others, and its status is that of this script.
set -euo pipefail
limit=64  # concurrent starts
job_dir=$JOBGEN_RUN_DIR
# shellcheck source=/dev/null
. "$job_dir/remote.sh"
mapfile -t hosts < "$job_dir/hosts"
mapfile -t folders < <(awk -F= '{ print int(first / 400); first += $2 }' "$job_dir/hostfile")
arrivals=()  # files; that of a node exists when the node has started
for number in "${!hosts[@]}"; do
  arrivals+=("$JOBGEN_LOGS/nodes/${folders[number]:-0}/${hosts[number]}.ranks")
done
exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep
pids=()
terminated=
trap terminated=yes TERM  # sent to the whole process group

start() { # NUMBER OF THE NODE [preflight]
  local host=${hosts[$1]} words
  export NODE_RANK=$1 JOBGEN_HOST=$host JOBGEN_ARRIVAL=${arrivals[$1]}
  if [[ $host == "$JOBGEN_HERE" ]]; then
    exec bash "$job_dir/node.sh" "${@:2}"
  fi
  # shellcheck disable=SC2016  # expanded on the other side
  printf -v words 'export NODE_RANK=%q JOBGEN_ARRIVAL=%q; exec bash "$JOBGEN_RUN_DIR/node.sh" %s' "$1" "$JOBGEN_ARRIVAL" "${*:2}"
  job_remote "$host" "$words"
}

wait_for() { # NUMBER: until this node has started or failed, at most 10 s
  local _
  for _ in {1..200}; do
    [[ ! -e ${arrivals[$1]} ]] && kill -0 "${pids[$1]}" 2> /dev/null || return 0
    read -rt 0.05 -u "$clock" || true
  done
}

for number in "${!hosts[@]}"; do
  ((number < limit)) || wait_for "$((number - limit))"
  start "$number" "$@" &
  pids+=($!)
done
first_end() { # wait until all nodes have ended, or one has failed; return its status. wait -n is new in bash 4.3.
  local number
  while ((${#pids[@]})); do
    [[ -z $terminated ]] || return 143
    for number in "${!pids[@]}"; do
      kill -0 "${pids[number]}" 2> /dev/null && continue
      wait "${pids[number]}" || return
      unset "pids[$number]"
    done
    read -rt "$JOBGEN_POLL" -u "$clock" || true
  done
}

first_end && exit
status=$?
echo "jobgen: the launcher of a node ended with status $status; ending the others" >&2
# After TERM torchrun still waits minutes for the lost nodes.
# shellcheck disable=SC2046  # process ids
kill $(jobs -pr) 2> /dev/null || true
for ((end = SECONDS + 10; SECONDS < end; )); do
  [[ -n $(jobs -pr) ]] || exit "$status"
  read -rt 0.1 -u "$clock" || true
done
echo 'stop failed' >> "$JOBGEN_LOGS/control"
# shellcheck disable=SC2046  # process ids
kill -KILL $(jobs -pr) 2> /dev/null || true
exit "$status"
