# A node that has lost power: some launchers and commands of schedulers wait for it for ever. The watcher of each node
# writes a new number into a file of its own every JOBGEN_BEAT seconds.

declare -A job_beat=() job_beat_at=() job_answered_at=()

job_lost_host() { # whether a node is silent and does not answer, while another one writes: the file system works
  local host beat
  job_read_beats
  for host in "${!job_beat[@]}"; do
    ((SECONDS - ${job_beat_at[$host]} > 3 * JOBGEN_BEAT && SECONDS - ${job_answered_at[$host]:-0} > 3 * JOBGEN_BEAT)) || continue
    job_some_node_writes || return 1
    beat=${job_beat[$host]}
    if job_ask_host "$host" true &> /dev/null; then
      job_answered_at[$host]=$SECONDS
      continue
    fi
    job_read_beats
    if [[ ${job_beat[$host]} != "$beat" ]] || ! job_some_node_writes; then continue; fi
    echo "$host" > "$job_logs/nodes/0/$host.silent"  # read by the verdict
    job_say "$host does not answer any more"
    return 0
  done
  return 1
}

job_read_beats() { # sets job_beat to the numbers of the hosts, and job_beat_at to the times at which they changed
  local file host beat
  for file in "$job_logs"/nodes/*/*.alive; do
    { read -r beat < "$file"; } 2> /dev/null || continue
    host=${file##*/} host=${host%.alive}
    [[ ${job_beat[$host]-} != "$beat" ]] || continue
    job_beat[$host]=$beat job_beat_at[$host]=$SECONDS
  done
}

job_some_node_writes() { # or this host, where it has no ranks of the job
  local at
  for at in "${job_beat_at[@]}"; do ((SECONDS - at > 2 * JOBGEN_BEAT)) || return 0; done
  [[ " ${job_hosts[*]} " != *" $JOBGEN_HERE "* ]] && timeout 10 dd if=/dev/null of="$job_logs/alive" conv=fsync &> /dev/null
}
