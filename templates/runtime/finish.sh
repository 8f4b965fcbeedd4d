# The exit trap: the last message, and the user's function after.

job_end() {
  local job_end_status=$? job_what=finished job_remedy=''
  if [[ -n ${job_sourcing:-} ]]; then
    job_say "$job_sourcing has called exit: nothing was launched"
    job_note fault "$job_sourcing has called exit"
    job_end_status=71
  elif [[ -n ${job_preparing:-} && $job_end_status == 1 ]]; then  # as a variable without a value ends it
    job_say 'the environment failed, as said above: nothing was launched'
    job_note fault 'the environment failed: see the log of the job'
    job_end_status=71
  fi
  job_optional job_end_on_nodes "$job_end_status"
  job_optional job_run_after "$job_end_status"
  [[ -n ${job_over:-} ]] || job_what='was ended by a signal'
  ((job_end_status == 0)) || job_what="failed with status $job_end_status"
  ((job_end_status != 130)) || job_what='was interrupted: status 130'
  ((job_end_status != 75)) || job_what='is not finished, but can go on: it ended with status 75'
  [[ $job_end_status != 7[0-5] ]] || job_remedy="; what to do: jobgen help $job_end_status"
  job_note ended "$job_end_status"
  # With status 75, or after a signal, the scheduler may start another attempt, which reads them.
  ((job_end_status == 75 || ${job_signals:-0})) || [[ -z ${job_opened:-} ]] ||
    rm -f "$job_dir"/{,step-*/}{env.sh,environment} || true
  job_say "job ${job_id:-?} $job_what after $SECONDS s${job_output:+; output in $job_output}${job_opened:+; files in $job_dir}$job_remedy"
  exit "$job_end_status"
}

job_finish_with() { # STATUS
  job_over=yes
  exit "$1"
}
