# The deadline: the latest time to begin a save, job_grace_seconds seconds before the end of the wall time. There is none if
# the job has no limit.

job_set_deadline() {
  job_ends=
  job_find_end
  [[ -n $job_ends ]] || return 0
  [[ -z ${job_grace_at_most_a_tenth:-} ]] || ((10 * job_grace_seconds <= job_ends - JOBGEN_START_TIME)) ||
    job_grace_seconds=$(((job_ends - JOBGEN_START_TIME) / 10))
  export JOBGEN_DEADLINE=$((job_ends - job_grace_seconds))
  job_note deadline "$JOBGEN_DEADLINE"
}

job_arm_deadline() { # only if the program handles the signal, or the scheduler does not send it
  local now
  now=$(date +%s)
  [[ -z ${JOBGEN_DEADLINE:-} || -z ${job_sends_signal_itself:-} ]] || job_later "$((JOBGEN_DEADLINE > now ? JOBGEN_DEADLINE - now : 0))" job_deadline
}

job_deadline() {
  job_save_requested && return
  job_say 'the wall time is nearly over: asking every rank to save and exit'
  job_control save deadline
  job_optional job_end_at_limit
}
