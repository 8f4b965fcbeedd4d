# The user's function setup: every command has to succeed, and what it exports gets to every rank.

job_setup() {
  job_file=setup
  trap 'job_setup_failed "$?" "$LINENO"' ERR
  set -E
  # shellcheck disable=SC2016  # job_take expands it
  job_take 'source <(job_body setup)'
  set +E
  trap - ERR
  ((job_taken == 0)) || job_die 71 "setup: ended with status $job_taken: nothing was launched"
}

job_setup_failed() { # STATUS LINE
  local where=setup
  [[ ${BASH_SOURCE[1]:-} != /dev/fd/* ]] || where+=", line $2"
  job_sourcing=
  job_die 71 "$where: ended with status $1: nothing was launched"
}
