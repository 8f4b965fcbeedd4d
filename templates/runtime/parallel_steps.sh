# Steps at the same time: each on nodes of its own, in a subshell with a run directory of its own, step-N.

job_run_parallel_steps() { # FIRST LAST: sets job_status to that of the first of them that failed
  local step host=0 status=0 main=
  local -A pids=()
  (($1 == 1)) || job_optional job_arm_deadline
  for ((step = $1; step <= $2; step++)); do
    "step_$step"
    if ! job_finished_before; then
      job_run_parallel_step "$host" &
      pids[$step]=$!
      main=${main:-$step}
    fi
    host=$((host + job_nodes))
  done
  [[ -n $main ]] || return 0
  job_launcher=${pids[$main]}  # a signal has ranks to ask
  for ((step = $1; step <= $2; step++)); do
    [[ -n ${pids[$step]:-} ]] || continue
    job_wait "${pids[$step]}"
    job_end_step
    ((job_status == 0 || status != 0 && status != 75)) || status=$job_status main=$step
  done
  job_status=$status job_launcher=
  # shellcheck disable=SC2046  # process ids
  kill $(jobs -pr) 2> /dev/null || true
  step=$main
  job_show_step
  cp "$logs/step-$step/statuses" "$logs" 2> /dev/null || true
}

job_run_parallel_step() { # FIRST HOST: it exits with the status of the step
  trap : TERM INT HUP USR1 USR2 URG  # the script asks the ranks of all steps
  job_dir=$job_dir/step-$step
  mkdir -p "$job_dir"
  job_prepare_step "$1"
  job_run_and_judge
  exit "$job_status"
}

job_heed_control() { # the script has no launcher to stop
  until grep -qs '^stop' "$job_logs/control"; do
    sleep 1 &
    wait "$!"
  done
  job_stop
}
