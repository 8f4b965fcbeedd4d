# The user's function setup: every command has to succeed, and what it exports gets to every rank.

job_setup() {
  job_file=setup
  trap 'job_setup_failed "$?" "$LINENO"' ERR
  set -E
  job_take "$(job_body setup)"
  set +E
  trap - ERR
  ((job_taken == 0)) || job_die 71 "setup: ended with status $job_taken: nothing was launched"
}

job_setup_failed() { # STATUS LINE
  job_sourcing=
  job_die 71 "setup, line $2: ended with status $1: nothing was launched"
}
