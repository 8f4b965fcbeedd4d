# The user's functions before and after: once each, before and after the ranks, in a separate shell.

job_run_before() {
  ! job_defined after || job_after_status=due
  ! job_save_requested || return 0
  job_run_separately before || job_die 71 "before: exited with status $?: nothing was launched"
  job_optional requirements
}

job_run_after() { # STATUS: that of the job, which does not change
  [[ -n ${job_after_status:-} ]] || return 0
  job_after_status=
  JOBGEN_STATUS=$1 job_run_separately after || job_say "warning: after: exited with status $?"
}

job_run_separately() { # FUNCTION
  job_defined "$1" || return 0
  local job_code
  job_code=$(declare -f "$1")$'\n'"$1 \"\$@\""
  [[ $job_code != *expand_aliases* ]] || job_code=$(job_body "$1")  # a function has no aliases of its own
  bash -euo pipefail -c "umask ${job_umask:-$(umask)}"$'\n'"$job_code" "$1" ${job_arguments[@]+"${job_arguments[@]}"} < /dev/null
}
