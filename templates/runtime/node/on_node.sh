#!/bin/bash
# on_node.sh WORK [HOST]: what a job does on a node besides the ranks. It is started once a node, and stays for the whole job,
# as a job that is ending cannot start processes on its other nodes. WORK is the folder on-nodes of the attempt.
# shellcheck disable=SC2154  # of settings.sh
set -euo pipefail
work=$1 host=${2:-${SLURMD_NODENAME:-$(hostname)}} part=${3:-}
folder=${BASH_SOURCE[0]%/*}
if [[ -z ${JOBGEN_KEEPER_OF:-} ]]; then
  # In a separate session: a scheduler that ends the job signals the session of its task.
  JOBGEN_KEEPER_OF=$$ setsid bash "${BASH_SOURCE[0]}" "$work" "$host" < /dev/null &
  trap '' TERM INT HUP USR1 USR2 URG
  wait "$!" || true
  exit
fi
if [[ -z $part ]]; then
  # shellcheck source=/dev/null
  . "$folder/env.sh"
  # shellcheck source=/dev/null
  . "$folder/functions.sh"
  ! declare -F job_secrets > /dev/null || job_secrets
  ! declare -F variables > /dev/null || variables
  export JOBGEN_HOST=$host
fi
# shellcheck source=/dev/null
. "$work/settings.sh"
disk=$JOBGEN_LOCAL_DIR state=$work/$host.state log=$work/$host.log

now() { # sets now, in tenths of a second
  now=${EPOCHREALTIME:-$(date +%s.%N)}
  now=${now/,/.}
  now=${now%.*}${now#*.}
  now=${now:0:11}
}

# ---- the parts: each in a process of its own, which has a limit

run_stage() { # NUMBER SOURCE DEST: a DEST that ends in / is the folder into which an archive is unpacked
  local copy=$JOBGEN_STAGE/.staged-$1 target=$JOBGEN_STAGE/$3 source=$work/source-$1
  if [[ $job_stage_by == sbcast ]]; then await_file "$source"; else read_copy "$2"; fi
  await_file "$source"
  if ! is_right "$copy" && [[ $job_stage_by == sbcast ]]; then read_copy "$2"; fi
  is_right "$copy" || { echo "the copy of $2 differs from it"; exit 1; }
  if [[ $3 != */ ]]; then
    mkdir -p "${target%/*}"
    mv "$copy" "$target"
    return
  fi
  mkdir -p "$target"
  case $2 in
    *.zip) if command -v unzip > /dev/null; then unzip -qo "$copy" -d "$target"; else python3 -m zipfile -e "$copy" "$target"; fi ;;
    *.zst | *.tzst) tar -I zstd -xf "$copy" -C "$target" ;;
    *) tar -xf "$copy" -C "$target" ;;
  esac
  rm -f "$copy"
}

await_file() { until [[ -e $1 ]]; do sleep 0.2; done; }  # FILE

read_copy() { # SOURCE
  await_turn
  cp -- "$1" "$copy"
}

is_right() { # FILE: of the size and the SHA-256 of its source
  local size sum
  read -r size sum < "$source"
  [[ -f $1 && $(stat -c %s "$1") == "$size" && $(sha256sum < "$1") == "$sum "* ]]
}

await_turn() { # at most 8 nodes read at a time: the node 8 places before has read
  local before
  before=$(grep -nxF -e "$host" "$work/hosts")
  before=$((${before%%:*} - 8))
  ((before > 0)) || return 0
  before=$(sed -n "${before}p" "$work/hosts")
  until grep -qsE '^(staged|fault|ended)' "$work/$before.state"; do sleep 0.5; done
}

run_seed() {
  mkdir "$disk/caches.new"
  [[ -z ${job_cache_seed:-} ]] || tar -xf "$job_cache_seed" -C "$disk/caches.new" || echo 'the job begins without caches'
  mv "$disk/caches.new" "$disk/caches"
  for pair in "${job_local_caches[@]}"; do mkdir -p "$disk/caches/${pair#*=}"; done
  touch "$disk/.seeded"
}

run_save() { # with what other jobs have saved in the meantime; the file is whole at any time
  local size
  new=$job_cache_store.$BASHPID
  [[ -n $(find "$disk/caches" -type f -newer "$disk/.seeded" -print -quit) ]] || return 0
  size=$(du -sm "$disk/caches")
  ((${size%%[!0-9]*} <= 2048)) || { echo "the caches have ${size%%[!0-9]*} MiB, and are saved up to 2048"; exit 1; }
  mkdir -p "${job_cache_store%/*}"
  exec {lock}> "$job_cache_store.lock"
  flock -w 60 "$lock" || echo 'no lock'
  [[ ! -s $job_cache_store ]] || tar -xf "$job_cache_store" -C "$disk/caches" --skip-old-files
  trap 'rm -f "$new"' EXIT
  tar -cf "$new" -C "$disk/caches" .
  mv -f "$new" "$job_cache_store"
}

run_hook() { # NAME: a function of the job
  exec env JOBGEN_ON_NODE="$work/$host" bash -euo pipefail -c "umask $job_umask"$'\n'"$(declare -f "$1")"$'\n'"$1 \"\$@\"" "$1" ${job_arguments[@]+"${job_arguments[@]}"}
}

if [[ -n $part ]]; then
  "run_$part" "${@:4}"
  exit
fi

# ---- the node

umask "${JOBGEN_UMASK:-077}"
exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep
trap : INT HUP USR1 USR2 URG PIPE  # not '': what is started here handles them
end_at=  # tenths
trap 'now; end_at=${end_at:-$((now + 3 * job_kill_wait))}' TERM

note() { printf '%s\n' "$*" >> "$state"; }

pause() { read -rt "$1" -u "$clock" || true; }

must_end() { # whether the job ends: the script has requested it, or has ended, or does not request it in a third of the time after a signal
  local line last=''
  { while read -r line; do last=$line; done < "$work/control"; } 2> /dev/null || true
  if [[ $last == end* ]]; then
    request=$last
  else
    now
    if [[ -z $end_at ]] || ((now < end_at)); then kill -0 "$JOBGEN_KEEPER_OF" 2> /dev/null && return 1; fi
    request="end 143 $((job_kill_wait / 3))"
    [[ $host != "$JOBGEN_HERE" ]] || echo "$request" >> "$work/control"  # for the nodes that do not notice it
  fi
}

limited() { # SECONDS PART [WORD]...: its status; 124 after the limit, 143 if the job ends before
  local pid status=0 until pauses=0
  now
  until=$((now + 10 * $1))
  offset=$(stat -c %s "$log" 2> /dev/null) || offset=0
  JOBGEN_KEEPER_OF=$$ setsid bash "${BASH_SOURCE[0]}" "$work" "$host" "${@:2}" < /dev/null >> "$log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2> /dev/null; do
    now
    if ((now >= until)); then status=124; elif [[ -n $begins ]] && must_end; then status=143; fi
    if ((status)); then
      kill -TERM -- "-$pid" 2> /dev/null || true
      for _ in 1 2 3 4 5 6 7 8; do pause 0.1; kill -0 -- "-$pid" 2> /dev/null || break; done
      kill -KILL -- "-$pid" 2> /dev/null || true
      break
    fi
    if ((++pauses > 20)); then pause 0.5; else pause 0.05; fi
  done
  ((status)) || wait "$pid" 2> /dev/null || status=$?
  return "$status"
}

last_line() { tail -c +$((offset + 1)) "$log" 2> /dev/null | tr -d '\000-\010\013-\037' | awk 'NF { last = $0 } END { print substr(last, 1, 200) }'; }

failed() { # STATUS LIMIT WHAT: a sentence
  local text
  text=$(last_line)
  case $1 in
    124) printf '%s did not end in %s s, and was ended%s' "$3" "$2" "${text:+: $text}" ;;
    143) printf '%s was ended with the job' "$3" ;;
    *) printf '%s exited with status %s%s' "$3" "$1" "${text:+: $text}" ;;
  esac
}

begin() { # what precedes the ranks
  local text number=0 line status
  if [[ -e $disk ]]; then
    note "fault $disk exists already: --local-dir must be a folder that the nodes do not share"
    return
  fi
  text=$(LC_ALL=C mkdir "$disk" 2>&1 && LC_ALL=C mkdir "$JOBGEN_STAGE" 2>&1) || { note "fault ${text#mkdir: }"; return 0; }
  made=yes
  note folder
  for line in ${job_stage[@]+"${job_stage[@]}"}; do
    status=0
    LC_ALL=C limited "$job_node_limit" stage "$number" "${line%:*}" "${line##*:}" || status=$?
    ((status == 0)) || { note "fault $(failed "$status" "$job_node_limit" "staging of ${line%:*}")"; return 0; }
    number=$((number + 1))
  done
  ((number == 0)) || note staged
  if [[ -n ${job_local_caches[*]-} ]]; then
    limited "$job_node_limit" seed || { note "fault $(failed "$?" "$job_node_limit" 'seeding of the caches')"; return 0; }
  fi
  due=yes
  if declare -F on_each_node > /dev/null; then
    limited "$job_node_limit" hook on_each_node || { note "fault $(failed "$?" "$job_node_limit" on_each_node)"; return 0; }
  fi
  note ready
}

remainder() { # VARIABLE: the processes with it in their environment
  grep -lszxF "$1" /proc/[0-9]*/environ | tr -dc '0-9\n'
}

end_remainder() { # VARIABLE
  local signal pids
  for signal in TERM 0 0 0 0 KILL; do
    mapfile -t pids < <(remainder "$1")
    ((${#pids[@]})) || return 0
    kill -s "$signal" "${pids[@]}" || true
    pause 0.2
  done
} 2> /dev/null

end() { # STATUS LIMIT: what follows the ranks
  local status=$1 limit=$2
  if [[ -n $due ]] && declare -F after_on_each_node > /dev/null; then
    JOBGEN_STATUS=$status limited "$limit" hook after_on_each_node || note "warning $(failed "$?" "$limit" after_on_each_node)"
  fi
  end_remainder "JOBGEN_ON_NODE=$work/$host"  # what the commands have left
  if [[ $status == 0 && $host == "$JOBGEN_HERE" && -n ${job_cache_store:-} && -d $disk/caches ]]; then
    limited "$limit" save || note "warning $(failed "$?" "$limit" 'saving of the caches')"
  fi
  cd /
  if [[ -n $made ]]; then
    rm -rf "$disk" 2> /dev/null || { chmod -R u+rwX "$disk" && rm -rf "$disk"; } 2> /dev/null || note "warning cannot remove $disk"
  fi
  note ended
  [[ $host != "$JOBGEN_HERE" ]] || end_callers
}

end_callers() { # what has started this on the other nodes: pbsdsh of Torque may not end by itself
  local waits=0
  until [[ -e $work/over ]]; do
    kill -0 "$JOBGEN_KEEPER_OF" 2> /dev/null || { ((++waits < 10 * job_kill_wait)) && ! all_ended; } || break
    pause 0.1
  done
  end_remainder "JOBGEN_LOGS=$work"
}

all_ended() {
  local host
  while read -r host; do
    grep -qsE '^(ended|fault does not answer)' "$work/$host.state" || return
  done < "$work/hosts"
}

begins=yes due='' made='' request=''
note began
begin
if [[ -z $request ]] && grep -q '^fault' "$state"; then
  [[ -z $end_at ]] || job_node_limit=$((job_kill_wait / 3))
  request="end 74 $job_node_limit"
fi
until [[ -n $request ]] || must_end; do pause "$JOBGEN_POLL"; done
begins=
read -r _ status limit <<< "$request"
end "$status" "$((limit > 0 ? limit : 1))"
