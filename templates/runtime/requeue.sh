# Requeue: up to job_max_requeues times, and only if the attempt saved a later step than the one before.

job_find_reason_to_stop() { # in job_stop_reason
  local saved
  job_stop_reason=
  job_start=$((job_attempt - $(cat "$job_dir"/attempt-*/events 2> /dev/null | grep -c '^[0-9]* restart ' || true)))
  ((job_start <= job_max_requeues)) || job_stop_reason="this was attempt $job_start, of $job_max_requeues + 1"
  saved=$(cat "$job_dir/saved-step" 2> /dev/null) || true
  # This is required neither with --requeue-on limit, nor of a user's program that never writes saved-step.
  if ((job_start > 1)) && ! job_defined job_judge_at_limit && [[ $saved == "$job_saved_before" && -n ${job_runs_training_module:-}$saved ]]; then
    job_stop_reason="this attempt saved no step beyond ${saved:-the first}"
  fi
  [[ ! -e $job_dir/cancelled ]] || job_stop_reason='it was cancelled'
}

job_go_on() {
  job_find_reason_to_stop
  if job_submit_again; then
    job_say "not finished: attempt $job_start of $((job_max_requeues + 1)); $job_next"
    job_finish_with 75
  fi
  job_say "not $job_again_word: $job_stop_reason"
}
