# Steps at the same time, each in a subshell with a run directory of its own, step-N. They share nodes, or have their own.

job_run_parallel_steps() { # FIRST LAST: sets job_status to that of the first of them that failed
  local first=$1 last=$2 step status=0 main='' passed=0 stop_at=0 clock
  local processes=() state=() waits=() ends=() began=() ready=()
  (($1 == 1)) || job_optional job_arm_deadline
  job_choose_steps
  ((${#state[@]})) || return 0
  exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep
  while job_start_steps && ((${#processes[@]})); do
    read -rt 0.5 -u "$clock" || true
    job_pass_requests
    for step in "${!processes[@]}"; do job_look_at_step; done
    job_end_idle_steps
  done
  exec {clock}>&-
  job_status=$status job_launcher=
  # shellcheck disable=SC2046  # process ids
  kill $(jobs -pr) 2> /dev/null || true
  step=$main
  [[ -z $step ]] || job_show_step
  cp "$logs/step-$step/statuses" "$logs" 2> /dev/null || true
}

job_choose_steps() { # sets the state of those that run; a step that others wait for runs again with them
  local other
  for ((step = first; step <= last; step++)); do
    job_use_step "$step"
    waits[step]=${job_waits_for[*]-} ends[step]=${job_ends_with:-}
    [[ -n ${ends[$step]} ]] || job_finished_before || state[step]=waiting
  done
  for ((step = first; step <= last; step++)); do
    [[ -z ${ends[$step]} || -z ${state[${ends[$step]}]:-} ]] || state[step]=waiting
  done
  for ((step = last; step >= first; step--)); do
    [[ -n ${state[$step]:-} ]] || continue
    for other in ${waits[$step]}; do state[other]=waiting; done
  done
}

job_start_steps() { # those that have to wait for no other step any more
  local step other
  for ((step = first; step <= last; step++)); do
    [[ ${state[$step]:-} == waiting ]] || continue
    if ((status)) || job_save_requested; then
      state[step]=skipped
      ((status)) || status=75
      continue
    fi
    for other in ${waits[$step]}; do
      [[ -n ${ready[$other]:-} ]] || continue 2
    done
    mkdir "$logs/step-$step"
    : > "$logs/step-$step/control"
    state[step]=running began[step]=$SECONDS
    job_run_parallel_step &
    processes[step]=$!
    job_launcher=$!  # a signal has ranks to ask
    [[ -n $main || -n ${ends[$step]} ]] || main=$step
    job_note_begin
  done
}

job_run_parallel_step() { # it exits with the status of the step
  trap : TERM INT HUP USR1 USR2 URG  # the script asks the ranks of all steps
  job_dir=$job_dir/step-$step
  mkdir -p "$job_dir"
  job_prepare_step
  job_run
  job_report_save
  job_optional job_end_containers
  if grep -qs '^end' "$job_logs/control"; then
    job_end_ranks
    exit 0
  fi
  job_judge
  job_optional job_judge_at_limit
  job_optional job_judge_hang
  exit "$job_status"
}

job_end_ranks() { # of a step that was ended: its launcher may have ended without them
  local pids _
  for _ in {1..5}; do
    job_read_ends
    ((job_silent_count)) || break
    mapfile -t pids < <(grep -lszxF "JOBGEN_LOGS=$job_logs" /proc/[0-9]*/environ | awk -F/ '{ print $3 }')
    kill -TERM "${pids[@]}" 2> /dev/null || true
    sleep 1
  done
  job_control stop ended
}

job_pass_requests() { # those to the job are for each of its steps; a step that ends with another one has nothing to save
  local requests step
  mapfile -t requests < "$logs/control"
  if ((${#requests[@]} > passed)); then
    for step in "${!processes[@]}"; do
      [[ -n ${ends[$step]} && ${requests[*]:passed} != *stop* ]] ||
        printf '%s\n' "${requests[@]:passed}" >> "$logs/step-$step/control"
    done
    passed=${#requests[@]}
  fi
  ((stop_at && SECONDS >= stop_at)) || return 0
  for step in "${!processes[@]}"; do echo 'stop failed' >> "$logs/step-$step/control"; done
  stop_at=0
}

job_look_at_step() {
  if kill -0 "${processes[$step]}" 2> /dev/null; then
    job_optional job_look_for_ready
    return
  fi
  job_wait "${processes[$step]}"
  unset "processes[$step]"
  state[step]=ended
  if grep -qs '^end' "$logs/step-$step/control" || { [[ -n ${ends[$step]} ]] && job_save_requested; }; then
    job_note step-ended "$step stopped"
    job_say "$(job_step_title) was ended after $((SECONDS - began[step])) s"
    return
  fi
  job_optional job_end_before_ready
  job_end_step
  ((job_status == 0)) || job_fail_step
}

job_fail_step() { # the others end, too: those that others end at once
  local other status_before=$status
  if ((status == 0 || status == 75 && job_status != 75)); then status=$job_status main=$step; fi
  ((job_status != 75)) || ! job_save_requested || return 0
  ((status_before == 0 || status_before == 75)) || return 0
  for other in "${!processes[@]}"; do
    [[ $other != "$step" ]] || continue
    if [[ -n ${ends[$other]} ]]; then
      job_ask_to_end "$other"
    else
      job_say "asking every rank of step $other to save and exit, because step $step has ended"
      echo "save step-$step-ended" >> "$logs/step-$other/control"
    fi
  done
  stop_at=$((SECONDS + ${job_grace_seconds:-60}))
}

job_ask_to_end() { # STEP
  grep -qs '^end' "$logs/step-$1/control" || echo "end step-$step" >> "$logs/step-$1/control"
}

job_end_idle_steps() { # those that end with a step that has ended, or with all others
  local step other remain=
  for step in "${!state[@]}"; do
    [[ -n ${ends[$step]} || ${state[$step]} != running && ${state[$step]} != waiting ]] || remain=yes
  done
  for other in "${!processes[@]}"; do
    step=${ends[$other]}
    [[ -z $step ]] || [[ -n $remain && ${state[$step]:-running} == [rw]* ]] || job_ask_to_end "$other"
  done
}

job_heed_control() { # the script has no launcher to stop
  until grep -qs '^stop\|^end' "$job_logs/control"; do
    sleep 1 &
    wait "$!"
  done
  job_stop
}
