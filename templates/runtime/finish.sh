# The exit trap: the last message, and the user's function after.

job_end() {
  local status=$? what=finished remedy=''
  if [[ -n ${job_sourcing:-} ]]; then
    job_say "$job_sourcing has called exit: nothing was launched"
    job_note fault "$job_sourcing has called exit"
    status=71
  fi
  job_optional job_end_on_nodes "$status"
  job_optional job_run_after "$status"
  [[ -n ${job_over:-} ]] || what='was ended by a signal'
  ((status == 0)) || what="failed with status $status"
  ((status != 130)) || what='was interrupted: status 130'
  ((status != 75)) || what='is not finished, but can go on: it ended with status 75'
  [[ $status != 7[0-5] ]] || remedy="; what to do: jobgen help $status"
  job_note ended "$status"
  # With status 75, or after a signal, the scheduler may start another attempt, which reads them.
  ((status == 75 || ${job_signals:-0})) || [[ -z ${job_opened:-} ]] ||
    rm -f "$job_dir"/{,step-*/}{env.sh,environment} || true
  job_say "job ${job_id:-?} $what after $SECONDS s${job_output:+; output in $job_output}${job_opened:+; files in $job_dir}$remedy"
  exit "$status"
}

job_finish_with() { # STATUS
  job_over=yes
  exit "$1"
}
