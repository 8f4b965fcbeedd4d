# The user's functions early_setup and setup: every command must succeed, unless it says set +e. Their exported variables
# are set in every rank, and the directory that they change to is that of the program.

job_setup() { # FUNCTION, by default setup
  job_file=${1:-setup}
  trap 'job_setup_failed "$?" "$LINENO"' ERR
  set -E
  # shellcheck disable=SC2016  # job_eval expands it
  job_eval 'set -eo pipefail; source <(job_body "$job_file"); job_here=$PWD' ${job_arguments[@]+"${job_arguments[@]}"}
  set +E
  trap - ERR
}

job_setup_failed() { # STATUS LINE
  local where=$job_sourcing
  [[ $- == *e* ]] || return 0  # after set +e
  [[ ${BASH_SOURCE[1]:-} != /dev/fd/* ]] || where+=", line $2"
  job_sourcing=
  job_die 71 "$where: exited with status $1: nothing was launched"
}
