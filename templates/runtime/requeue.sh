# Requeue: up to job_requeue times, and only if the attempt saved a later step than the one before.

job_find_reason_to_stop() { # in job_why_not
  local saved
  job_why_not=
  ((job_attempt <= job_requeue)) || job_why_not="this was attempt $job_attempt, of $job_requeue + 1"
  saved=$(cat "$job_dir/saved-step" 2> /dev/null) || true
  # This is required neither with --requeue-on limit, nor of a user's program that never writes saved-step.
  if ((job_attempt > 1)) && ! job_defined job_judge_at_limit && [[ $saved == "$job_saved_before" && -n ${job_training:-}$saved ]]; then
    job_why_not="this attempt saved no step beyond ${saved:-the first}"
  fi
  [[ ! -e $job_dir/cancelled ]] || job_why_not='it was cancelled'
}

job_go_on() {
  job_find_reason_to_stop
  if job_submit_again; then
    job_say "not finished: attempt $job_attempt of $((job_requeue + 1)); $job_next"
    job_finish_with 75
  fi
  job_say "not $job_again_word: $job_why_not"
}
