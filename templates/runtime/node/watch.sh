#!/bin/bash
# watch.sh LAUNCHER NODE RANKS: the watcher of a node, which its first rank starts in a session of its own.
# It passes on what the file control asks for, and ends what is left when the launcher, a process id, is gone,
# or the process that started it here for the scheduler. NODE begins the names of the files of this node.
set -u
launcher=$1 node=$2 ranks=$3 asked=''
control=$JOBGEN_LOGS/control

programs() { # the process ids of the programs that began and have not ended, less those that others have by now
  local pid parent
  for pid in $(begun); do
    parent=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status" 2> /dev/null) || continue
    ! grep -qasF "$JOBGEN_RUN_DIR/rank.sh" "/proc/$parent/cmdline" || echo "$pid"
  done
}

begun() {
  awk '$1 == "began" { pid[$2] = $3 } $1 == "ended" { delete pid[$2] } END { for (rank in pid) print pid[rank] }' "$node.ranks"
}

left() { # the processes of the ranks on this node, and of the launcher that was started here
  grep -lszxF -e "JOBGEN_NODE=$node" -e "JOBGEN_PARENT=${JOBGEN_PARENT:--}" /proc/[0-9]*/environ |
    awk -F/ -v self="$$" '$3 != self { print $3 }'
}

all_have_ended() { (($(grep -c '^ended' "$node.ranks") >= ranks)); }

alive() { kill -0 "$launcher" && { [[ -z ${JOBGEN_PARENT:-} ]] || kill -0 "$JOBGEN_PARENT"; }; } 2> /dev/null

stop() { # SIGNAL
  local pids
  mapfile -t pids < <(left)
  ((${#pids[@]} == 0)) || kill -s "$1" "${pids[@]}"
} 2> /dev/null

while alive; do
  wish=''
  # The file is there from the start: opening it makes a network file system look at the server.
  while read -r what _; do wish=$what; done < "$control"
  if [[ $wish == stop ]]; then
    stop KILL
    exit
  fi
  if [[ $wish == save && -z $asked ]]; then
    asked=yes
    mapfile -t pids < <(programs)
    ((${#pids[@]} == 0)) || kill -s "$JOBGEN_SIGNAL" "${pids[@]}" 2> /dev/null
  fi
  ! all_have_ended || exit
  sleep "$JOBGEN_POLL"
done
for _ in {1..20}; do  # the ranks may be saving
  [[ -n $asked ]] && ! all_have_ended && sleep 0.5
done
stop TERM
sleep 3
stop KILL
