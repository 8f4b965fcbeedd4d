# The steps of the job, one after another. The function of a step defines its launch and its program.

job_run_steps() {
  local step last all=("${job_hosts[@]}") logs=$job_logs number=$job_number
  job_status=0
  job_optional job_export_steps
  for ((step = 1; step <= job_steps; step = last + 1)); do
    last=$step
    while [[ " ${job_parallel_steps[*]-} " == *" $((last + 1)) "* ]]; do last=$((last + 1)); done
    if ((last > step)); then
      job_run_parallel_steps "$step" "$last"
    elif ! job_finished_before; then
      job_note_begin
      job_prepare_step
      job_show_step
      ((step == 1)) || job_optional job_arm_deadline
      job_run_and_judge
      cp "$job_logs/statuses" "$logs" 2> /dev/null || true  # jobgen status reads those of the last step
      job_end_step
    fi
    job_logs=$logs
    ((job_status == 0)) || return 0
    if ((last < job_steps)) && job_save_requested; then
      job_status=75
      return
    fi
  done
}

job_use_step() { # NUMBER: sets what it has; what only other steps have is unset
  unset job_step_name job_first_node job_waits_for job_ends_with job_ready_{file,port,line,seconds} job_part_{devices,variable,cores}
  "step_$1"
}

job_finished_before() {
  grep -qsx "$step" "$job_dir/steps-done" || return
  job_say "step $step has finished in an earlier attempt"
}

job_prepare_step() { # its hosts, logs and rendezvous
  local at
  unset -f rank program node launch container
  job_use_step "$step"
  at=${job_first_node:-0}  # bash 4.2 takes no braces within ${all[@]:...}
  job_hosts=("${all[@]:at:job_nodes}") job_logs=$logs/step-$step
  job_number=$((number + 2003 * step))  # its port is not that of the jobs submitted next
  [[ -e $job_logs/control ]] || { mkdir "$job_logs" && ln -s ../control "$job_logs/control"; }
  rm -f "$job_dir/status.json"
  printf '%s\n' "${job_hosts[@]}" > "$job_dir/hosts"
  printf "%s slots=$job_ranks_per_node\n" "${job_hosts[@]}" > "$job_dir/hostfile"
  job_export
  job_rendezvous
  job_optional job_hccl_ports
  job_optional job_mpi
  job_optional job_check_mpi
  job_handover
  job_optional job_hand_over_part
  job_optional job_find_address_or_end
  job_say "$(job_step_title), $job_title: ${job_hosts[*]:0:8}; rendezvous at $(job_endpoint)"
}

job_show_step() { # jobgen logs reads its logs
  rm -rf "$logs/nodes"
  ln -s "step-$step/nodes" "$logs/nodes"
}

job_note_begin() {
  job_use_step "$step"
  job_note step-began "$step${job_step_name:+ $job_step_name}"
}

job_end_step() {
  job_logs=$logs job_note step-ended "$step $job_status"
  job_hosts=("${all[@]}")
  if ((job_status)); then
    job_say "$(job_step_title) ended with status $job_status"
  else
    echo "$step" >> "$job_dir/steps-done"
  fi
}

job_step_title() { # print its number, and its name
  job_use_step "$step"
  echo "step $step of $job_steps${job_step_name:+, $job_step_name}"
}
