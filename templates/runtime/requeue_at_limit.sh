# Requeue at the time limit: the program is ended, and the job is put back whatever the status.

job_end_at_limit() { # after the deadline, early enough that the job can be put back
  sleep "$((job_grace_seconds / 2))" &
  wait "$!"
  job_say 'the wall time is nearly over, and the program has not ended: stopping it'
  job_control stop limit
}

job_judge_at_limit() {
  ((job_status == 0)) || ! job_save_requested || case $(job_save_reason) in deadline | "$job_save_signal") job_status=75 ;; esac
}
