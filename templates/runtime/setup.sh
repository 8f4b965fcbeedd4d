# The user's function setup: every command must succeed, and its exported variables are set in every rank.

job_setup() {
  job_file=setup
  trap 'job_setup_failed "$?" "$LINENO"' ERR
  set -E
  # shellcheck disable=SC2016  # job_take expands it
  job_take 'source <(job_body setup)'
  set +E
  trap - ERR
  ((job_taken == 0)) || job_die 71 "setup: exited with status $job_taken: nothing was launched"
}

job_setup_failed() { # STATUS LINE
  local where=setup
  [[ ${BASH_SOURCE[1]:-} != /dev/fd/* ]] || where+=", line $2"
  job_sourcing=
  job_die 71 "$where: exited with status $1: nothing was launched"
}
