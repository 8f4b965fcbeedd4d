# The steps for which others wait: a file, a port or a line of output shows that they are ready.

job_looked_at=()

job_look_for_ready() { # of the step, once a second
  job_use_step "$step"
  [[ -n ${job_ready_seconds:-} && -z ${ready[$step]:-} && ${job_looked_at[$step]:-} != "$SECONDS" ]] || return 0
  job_looked_at[step]=$SECONDS
  if job_is_ready; then
    ready[step]=yes
    job_note step-ready "$step"
    job_say "$(job_step_title) is ready after $((SECONDS - began[step])) s"
  elif ((SECONDS - began[step] > job_ready_seconds)); then
    job_say "$(job_step_title) is not ready after $job_ready_seconds s, its limit: $(job_ready_sign)"
    job_status=124 ready[step]=late
    job_ask_to_end "$step"
    job_fail_step
  fi
}

job_is_ready() {
  local port host=${all[${job_first_node:-0}]}
  if [[ -n ${job_ready_file:-} ]]; then  # of this attempt
    [[ -e $job_ready_file && ! $logs/step-$step/control -nt $job_ready_file ]]
  elif [[ -n ${job_ready_line:-} ]]; then
    grep -rqsF --include='*.log' -e "$job_ready_line" "$logs/step-$step/nodes"
  else
    port=JOBGEN_STEP_${job_step_name}_PORT
    # shellcheck disable=SC2016  # expanded in the other shell
    timeout 5 bash -c 'exec 3<> "/dev/tcp/$0/$1"' "$host" "${!port}" &> /dev/null
  fi
}

job_ready_sign() { # print what is missing
  local port=JOBGEN_STEP_${job_step_name:-}_PORT
  if [[ -n ${job_ready_file:-} ]]; then
    echo "there is no new file $job_ready_file"
  elif [[ -n ${job_ready_line:-} ]]; then
    echo "no line of its output has $job_ready_line"
  else
    echo "nothing listens at port ${!port} of ${all[${job_first_node:-0}]}"
  fi
}

job_end_before_ready() { # a step that has ended, although others wait for it
  job_use_step "$step"
  [[ -n ${job_ready_seconds:-} && -z ${ready[$step]:-} ]] && ! job_save_requested || return 0
  if ((job_status == 0)) && job_is_ready; then
    ready[step]=yes
    return
  fi
  job_say "$(job_step_title) has ended with status $job_status before it was ready: $(job_ready_sign)"
  ((job_status)) || job_status=73
}
