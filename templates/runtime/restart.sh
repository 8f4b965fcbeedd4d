# Restart in place: after a rank has failed or a node is lost, the ranks start again in the same allocation, as the
# next attempt of the run.

job_restart_count=0 job_failure_before='' job_silent_hosts=()

job_restart_in_place() { # sets job_status to that of the last attempt in this allocation
  while ((job_status)) && ! job_is_ending && job_may_restart && job_restart; do job_run_unless_ending; done
}

job_is_ending() { ((job_signals)) || job_save_requested || [[ -e $job_dir/cancelled || $job_status == 124 && -n ${job_launcher_timeout:-} ]]; }

job_may_restart() {
  local reason='' saved saves last=$job_failure_before
  saved=$(cat "$job_dir/saved-step" 2> /dev/null) || true
  saves=$saved${job_runs_training_module:-}  # a program of the user need not write the file
  job_failure_before=$job_status
  if ((job_restart_count)) && [[ -n $saves && $saved == "$job_saved_before" ]] && ! job_defined job_judge_at_limit; then
    reason="this attempt saved no step beyond ${saved:-the first}"
  elif [[ -z $saves && $job_status == "$last" ]] && ((job_status < 128 && job_status != 75 && ${#job_silent_hosts[@]} == 0)); then
    reason="the program failed with status $job_status again, and writes no file saved-step"
  fi
  if [[ -n $reason ]]; then
    job_say "not restarted in place: $reason"
    return 1
  fi
  ((job_restart_count < job_max_restarts)) || reason="none of $job_max_restarts restarts is left"
  job_has_time || reason="the wall time is nearly over"
  [[ -z $reason ]] || job_leave_to_queue "$reason"
}

job_has_time() { # to start, and to make a step before the deadline
  local least=${job_grace_seconds:-60}
  ((least > 60)) || least=60
  [[ -z ${JOBGEN_DEADLINE:-} ]] || (($(date +%s) + least < JOBGEN_DEADLINE))
}

job_leave_to_queue() { # REASON: return 1
  job_say "not restarted in place: $1"
  [[ -z ${job_max_requeues:-} ]] || job_status=75
  return 1
}

job_restart() { # return 1 if the job ends, or too few hosts are left
  job_say "restart $((job_restart_count + 1)) of $job_max_restarts: ending what is left on ${job_hosts[*]:0:8}"
  for job_file in "$job_logs"/{,step-*/}control; do  # for the watchers of the nodes
    [[ ! -f $job_file ]] || echo 'stop restart' >> "$job_file"
  done
  job_end_attempt
  job_leave_bad_hosts || { job_leave_to_queue "$job_fault"; return 1; }
  if job_is_ending; then
    job_status=75
    return 1
  fi
  job_begin_restart
  job_restart_preflight || { job_status=74; job_leave_to_queue "$job_fault"; return 1; }
  job_say "restart $job_restart_count of $job_max_restarts, attempt $job_attempt: ${job_hosts[*]:0:8}$(job_starts_itself || echo "; rendezvous at $(job_endpoint)")"
  job_optional job_arm_deadline
}

job_end_attempt() { # sets job_bad_hosts to those that do not answer, or where processes do not end
  local -x JOBGEN_LOGS=$job_logs/restart  # which the commands for the other hosts inherit
  job_hosts+=(${job_spare_hosts[@]+"${job_spare_hosts[@]}"}) job_spare_hosts=()
  mkdir "$JOBGEN_LOGS"
  # In a file, because a login shell may not read a command of several lines.
  printf '%s\n' "logs=$(job_quote "$job_logs")" "$(declare -f job_end_processes)" job_end_processes > "$JOBGEN_LOGS/end.sh"
  job_end_words="bash $(job_quote "$JOBGEN_LOGS/end.sh")"
  if [[ -n ${job_host_access:-} ]]; then job_on_hosts 64 job_end_on_host; else job_end_on_host "$JOBGEN_HERE"; fi
  find "$JOBGEN_LOGS" -name '*.bad' -exec cat {} + > "$JOBGEN_LOGS/all"
  mapfile -t job_bad_hosts < <(cut -f 1 "$JOBGEN_LOGS/all")
  ((${#job_bad_hosts[@]} == 0)) || cat "$JOBGEN_LOGS/all" >> "$job_dir/bad-hosts"
  rm -rf "$JOBGEN_LOGS"
  job_bad_hosts+=(${job_silent_hosts[@]+"${job_silent_hosts[@]}"})
}

job_end_on_host() { # HOST: the reach test, which also ends the processes of the attempt
  local status=0 fault='does not answer'
  [[ " ${job_silent_hosts[*]-} " != *" $1 "* ]] || return 0
  if [[ $1 == "$JOBGEN_HERE" ]]; then
    bash -c "$job_end_words" < /dev/null || status=$?
  else
    job_ask_host "$1" "$job_end_words" || status=$?
  fi &> /dev/null
  ((status != 8)) || fault='processes of the attempt before do not end'
  ((status != 9)) || fault="cannot write temporary files in ${TMPDIR:-/tmp}"
  ((status == 0)) || printf '%s\t%s\n' "$1" "$fault" > "$JOBGEN_LOGS/$1.bad"
}

# shellcheck disable=SC2154  # its variables are set beside it
job_end_processes() { # of the attempt logs on this host: those that the runtime has started there, and their children
  local file files pids signal
  for signal in TERM 0 0 KILL 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 stop; do
    pids=()
    mapfile -t files < <(grep -lszF "JOBGEN_LOGS=$logs" /proc/[0-9]*/environ)
    for file in ${files[@]+"${files[@]}"}; do
      file=${file%/environ}
      if grep -qsz -e '^JOBGEN_NODE=' -e '^JOBGEN_PARENT=' "$file/environ" || grep -qsaE "/(rank|watch|node|telemetry)[.]sh" "$file/cmdline"; then
        pids+=("${file#/proc/}")
      fi
    done
    if ((${#pids[@]} == 0)); then
      { file=$(mktemp) && echo x > "$file" && rm -f "$file"; } || exit 9
      return 0
    fi
    [[ $signal != stop ]] || exit 8
    kill -s "$signal" "${pids[@]}" 2> /dev/null || true
    sleep 0.5
  done
}

job_leave_bad_hosts() { # return 1 if too few are left, with the reason in job_fault
  local host
  ((${#job_bad_hosts[@]})) || { job_optional job_use_needed_hosts; return 0; }
  for host in "${job_bad_hosts[@]}"; do  # nothing waits for what these do beside the ranks
    [[ -z ${job_node_work:-} ]] || echo 'fault does not answer' >> "$job_node_work/$host.state"
  done
  if job_defined job_leave_hosts; then
    job_leave_hosts 'lost, or not usable any more' || return
    job_use_needed_hosts
  else
    job_fault="${job_bad_hosts[*]:0:8} is lost, and the job has no other nodes: --spare-nodes and --min-nodes allow it to go on"
    return 1
  fi
}

job_begin_restart() { # the next attempt, with a rendezvous of its own
  local before=$job_logs
  job_restart_count=$((job_restart_count + 1)) job_number=$((job_number + 3001))
  job_begin_attempt
  job_note restart "$job_restart_count"
  [[ -z ${JOBGEN_DEADLINE:-} ]] || job_note deadline "$JOBGEN_DEADLINE"
  job_logs=$before job_note ended "$job_status"  # now: a run whose last attempt has ended is over
  [[ ! -e $job_dir/cancelled ]] || job_control save cancel
  export SLURM_OVERLAP=1  # Slurm ends a step of a lost node, which holds the cores of the others, only when it has noticed the loss
  job_export
  job_starts_itself || job_rendezvous
  job_optional job_find_address || job_say "$job_fault"
  job_handover
  job_optional job_prepare_pdsh
}

job_restart_preflight() { # return 1 if too few hosts are left, with the reason in job_fault
  # With steps the launch is that of a step.
  [[ -n ${job_preflight_mode:-} && -z ${job_steps:-} ]] && { [[ $job_preflight_mode == always ]] || job_has_training; } || return 0
  job_optional job_arm_deadline
  if job_defined job_choose_hosts; then
    job_choose_hosts
  else
    job_preflight || { job_fault="the preflight failed with status $job_status; bad hosts: ${job_bad_hosts[*]:-none is named}"; return 1; }
  fi
}
