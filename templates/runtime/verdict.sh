# The verdict: the status of the launcher is not enough, every rank must record its own.

job_judge() { # sets job_status to the status of the job
  local launcher=$job_status rank host status='' _
  job_silent_hosts=()
  for _ in {1..5}; do  # a launcher may exit before the ranks have written their last line
    job_read_ends
    ((job_silent_count)) || break
    sleep 0.5
  done
  read -r rank status _ host < <(LC_ALL=C sort -k 3,3n "$job_logs/statuses" | awk '$2 != 0 && !n++') || true
  job_status=${status:-$launcher}
  if job_save_requested && ((job_start_count == 0)); then
    job_status=75
  elif ((launcher == 124 && job_status != 75)) && [[ -n ${job_launcher_timeout:-} ]]; then
    job_status=124
    job_say "stopped by timeout after $job_launcher_timeout, the wall time"
  elif [[ $status == 143 ]] && job_save_requested; then
    job_say "rank $rank on $host was ended by TERM before it could save"
  elif job_save_requested && [[ $status == "$((128 + $(kill -l "$job_save_signal")))" ]]; then
    job_say "rank $rank on $host was ended by $job_save_signal, the request to save, which its program does not handle"
  elif [[ -n $status && $status != 75 ]]; then
    job_say "rank $rank on $host failed first, with status $status; the end of its log:"
    job_show_log "$rank" "$host"
  elif [[ -z $status ]] && ((launcher > 128 && job_silent_count == 0)) && ! job_save_requested; then
    job_status=0
    job_say "$job_launcher_name was ended by a signal after every rank had ended with status 0"
  fi
  ((job_silent_count == 0 || job_status == 75)) || job_judge_silent
  [[ $job_last_signal != INT ]] || ((job_status <= 128)) || job_status=130  # the user has ended it
  [[ -z ${job_runs_training_module:-} || $job_status != 0 ]] || grep -q '"state": *"finished"' "$job_dir/status.json" 2> /dev/null ||
    job_die 73 "$job_launcher_name ended with status 0, but $job_dir/status.json does not say that the training finished"
}

job_read_ends() { # of every rank its last line, RANK STATUS SECONDS HOST, into the file statuses
  local ranks=$job_logs/statuses.new
  find "$job_logs/nodes" -name '*.ranks' -exec cat {} + | out=$ranks awk -v world="$JOBGEN_WORLD_SIZE" '
    $1 == "began" { starts++ }
    $1 == "ended" { line[$2] = $2 " " $3 " " $4 " " $5 }
    END {
      out = ENVIRON["out"]  # -v would read backslashes in it
      printf "" > out
      for (rank = 0; rank < world; rank++)
        if (rank in line) print line[rank] > out
        else if (silent++ < 8) first = first " " rank
      print starts + 0, silent + 0 first
    }' > "$job_logs/counts"
  read -r job_start_count job_silent_count job_silent_ranks < "$job_logs/counts"
  rm "$job_logs/counts"
  mv "$ranks" "$job_logs/statuses"
}

job_all_finished() { # every rank has recorded status 0; the files of all nodes are read only after rank 0 has
  grep -qs '^ended 0 0 ' "$job_logs"/nodes/0/*.ranks || return
  find "$job_logs/nodes" -name '*.ranks' -exec cat {} + | awk -v world="$JOBGEN_WORLD_SIZE" '
    $1 == "ended" { status[$2] = $3 }
    END {
      for (rank in status) finished += status[rank] == 0
      exit (finished < world)
    }'
}

job_show_log() { # RANK HOST: the last lines of a rank
  local file
  for file in "$job_logs"/nodes/*/rank-"$1".log "$job_logs"/nodes/*/"$2".log; do
    [[ -f $file ]] || continue
    case $file in
      */rank-*) tail -n 20 "$file" ;;
      *) sed -n "s/^$1: //p" "$file" | tail -n 20 ;;
    esac >&2 || true
    return
  done
}

job_judge_silent() { # ranks that recorded no status: killed by the launcher, or lost with their node
  local bad
  if ((job_start_count)); then
    job_say "rank $job_silent_ranks recorded no status: killed by the launcher, or lost with its node"
  else
    job_say "no rank began: $job_launcher_name ended with status $job_status before; its own messages are above"
  fi
  # A job that is ending cannot reach other hosts: this is no fault of the host.
  if ! job_save_requested && ((job_signals == 0)); then
    if [[ -n ${job_host_access:-} ]]; then job_on_hosts 64 job_check_silent_host; else job_check_silent_host "$JOBGEN_HERE"; fi
    mapfile -t bad < <(find "$job_logs/nodes" -name '*.silent' -exec cat {} +)
    find "$job_logs/nodes" -name '*.silent' -delete
    if ((${#bad[@]})); then
      job_silent_hosts=("${bad[@]}")
      job_say "${bad[*]:0:8} does not answer"
      printf '%s\tdoes not answer\n' "${bad[@]}" >> "$job_dir/bad-hosts"
      ((job_status)) || job_status=1
      [[ -z ${job_runs_training_module:-}${job_max_requeues:-} ]] || job_status=75
    fi
  fi
  ((job_status)) || job_die 73 "$job_launcher_name ended with status 0, but rank $job_silent_ranks recorded no status"
}

job_check_silent_host() { # HOST
  local status=0 try
  ! grep -q " $1\$" "$job_logs/statuses" || return 0
  [[ ! -e $job_logs/nodes/0/$1.silent ]] || return 0
  # shellcheck disable=SC2016  # expanded there
  try='file=$(mktemp) && echo x > "$file" && rm -f "$file" || { rm -f "${file:-}"; exit 9; }'
  if [[ $1 == "$JOBGEN_HERE" ]]; then bash -c "$try" || status=$?; else job_ask_host "$1" "$try" || status=$?; fi &> /dev/null
  case $status in
    0) ;;
    9) job_say "cannot write temporary files on $1: its ${TMPDIR:-/tmp} is full or read-only" ;;
    *) printf '%s\n' "$1" > "$job_logs/nodes/0/$1.silent" ;;
  esac
}
