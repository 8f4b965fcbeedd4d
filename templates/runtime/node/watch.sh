#!/bin/bash
# watch.sh LAUNCHER NODE RANKS: the watcher of a node, which its first rank starts in a separate session.
# It forwards the requests in the file control. It ends the remaining processes when the launcher (a process id),
# or the process that started it here for the scheduler, has ended. The files of this node begin with NODE.
set -u
trap '' TERM HUP  # schedulers send them to all processes of a job; what ignores them is ended here
launcher=$1 node=$2 ranks=$3 request=''
control=$JOBGEN_LOGS/control
for fd in "/proc/$$"/fd/*; do  # those of the launcher: MPICH waits until its sockets are closed
  fd=${fd##*/}
  ((fd < 3 || fd == 255)) || exec {fd}>&-
done
exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep

# Without awk, which an image may not have.
programs() { # the process ids of the programs that have not ended, except those that other processes have reused
  local what rank value parent _
  local -A pid=()
  while read -r what rank value _; do
    case $what in
      began) pid[$rank]=$value ;;
      ended) unset "pid[$rank]" ;;
    esac
  done < "$node.ranks"
  for value in ${pid[@]+"${pid[@]}"}; do
    parent=$(sed -n 's/^PPid:[[:blank:]]*//p' "/proc/$value/status" 2> /dev/null)
    ! grep -qasF "$JOBGEN_RUN_DIR/rank.sh" "/proc/$parent/cmdline" || echo "$value"
  done
}

remainder() { # the processes of the ranks on this node, and of the launcher that was started here
  local pid
  grep -lszxF -e "JOBGEN_NODE=$node" -e "JOBGEN_PARENT=${JOBGEN_PARENT:--}" /proc/[0-9]*/environ |
    while read -r pid; do pid=${pid//[!0-9]/}; [[ $pid == "$$" ]] || echo "$pid"; done
}

all_have_ended() { (($(grep -c '^ended' "$node.ranks") >= ranks)); }

lives() { # PROCESS: slurmstepd, the parent of the ranks of srun, is root's, who takes no signal from this user
  kill -0 "$1" 2> /dev/null || [[ $(LC_ALL=C kill -0 "$1" 2>&1) == *'not permitted'* ]]
}

alive() { lives "$launcher" && { [[ -z ${JOBGEN_PARENT:-} ]] || lives "$JOBGEN_PARENT"; }; }

stop() { # SIGNAL
  local pids
  mapfile -t pids < <(remainder)
  ((${#pids[@]} == 0)) || kill -s "$1" "${pids[@]}"
} 2> /dev/null

look() { # reads the request in the file into wish; a stop is done at once
  local what
  wish=''
  # The file exists from the start: opening it makes a network file system query the server.
  while read -r what _; do wish=$what; done < "$control"
  [[ $wish != stop ]] || { stop KILL; exit; }
}

saving() { [[ -n $request ]] && ! all_have_ended; }

ends_by_itself() { # a launcher may, after its last process here
  all_have_ended && [[ -n ${JOBGEN_PARENT:-} ]] && kill -0 "$JOBGEN_PARENT" 2> /dev/null
}

remains() { [[ -n $(remainder) ]]; }

wait_while() { # TIMES COMMAND: half a second each time
  local time
  for ((time = 0; time < $1; time++)); do
    look
    "$2" || return 0
    read -rt 0.5 -u "$clock"
  done
}

beat=0
show_life() { # a new number in a file; the script asks a node whose number stays the same
  [[ -n ${JOBGEN_BEAT:-} ]] && ((SECONDS >= beat)) || return 0
  beat=$((SECONDS + JOBGEN_BEAT))
  echo "$beat" > "$node.alive"
} 2> /dev/null

while alive; do
  look
  show_life
  if [[ $wish == save && -z $request ]]; then
    request=save
    mapfile -t pids < <(programs)
    ((${#pids[@]} == 0)) || kill -s "$JOBGEN_SIGNAL" "${pids[@]}" 2> /dev/null
  fi
  read -rt "$JOBGEN_POLL" -u "$clock"
done
rm -f "$node.alive"
wait_while 20 saving
wait_while 40 ends_by_itself
stop TERM
wait_while 6 remains
stop KILL
