#!/bin/bash
# watch.sh LAUNCHER NODE RANKS: the watcher of a node, which its first rank starts in a session of its own.
# It passes on what the file control asks for, and ends what is left when the launcher, a process id, is gone.
# NODE begins the names of the files of this node; RANKS is how many ranks it has, 0 where nobody knows.
set -u
launcher=$1 node=$2 ranks=$3 asked=''
control=$JOBGEN_RUN_DIR/attempt-$JOBGEN_ATTEMPT/control

programs() { # the process ids of the programs that began and have not ended
  awk '$1 == "began" { pid[$2] = $3 } $1 == "ended" { delete pid[$2] } END { for (rank in pid) print pid[rank] }' "$node.ranks"
}

left() { # the processes of the job on this node, whatever started them
  grep -lszxF "JOBGEN_NODE=$node" /proc/[0-9]*/environ | awk -F/ -v self="$$" '$3 != self { print $3 }'
}

all_have_ended() { ((ranks)) && (($(grep -c '^ended' "$node.ranks") >= ranks)); }

stop() { # SIGNAL
  local pids
  mapfile -t pids < <(left)
  ((${#pids[@]} == 0)) || kill -s "$1" "${pids[@]}"
} 2> /dev/null

while kill -0 "$launcher" 2> /dev/null; do
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
stop TERM
sleep 3
stop KILL
