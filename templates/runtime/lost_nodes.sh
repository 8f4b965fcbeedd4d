# A node that has lost power: some launchers and commands of schedulers wait for it for ever. The watcher of each node
# writes a new number into a file of its own every JOBGEN_BEAT seconds.

declare -A job_beat=() job_beat_at=()

job_lost_node() { # whether a node has been silent for four beats and does not answer
  local file host beat
  for file in "$job_logs"/nodes/*/*.alive; do
    { read -r beat < "$file"; } 2> /dev/null || continue
    host=${file##*/} host=${host%.alive}
    if [[ ${job_beat[$host]-} != "$beat" ]]; then
      job_beat[$host]=$beat job_beat_at[$host]=$SECONDS
    elif ((SECONDS - ${job_beat_at[$host]} > 4 * JOBGEN_BEAT)); then
      job_beat_at[$host]=$SECONDS  # if it answers, it has four more beats
      job_ask_host "$host" true &> /dev/null && continue
      echo "$host" > "$job_logs/nodes/0/$host.silent"  # read by the verdict
      job_say "$host does not answer any more"
      return 0
    fi
  done
  return 1
}
