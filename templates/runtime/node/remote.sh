#!/bin/bash
# jobgen-remote HOST COMMAND: run a shell command on a host, in the environment and the directory of this job.
# It stands where mpirun expects ssh, and goes the first way of JOBGEN_AGENTS that is there.

job_remote() { # HOST COMMAND
  local agent words
  # shellcheck disable=SC2016  # expanded on the other side
  words=(/bin/bash -c '. "$0/env.sh" && export JOBGEN_HOST=$1 PATH=$0:$PATH && eval "$2"' "$JOBGEN_RUN_DIR" "$1" "$2")
  export JOBGEN_SENT_BY=$JOBGEN_LOGS  # by which the script knows those that are left
  for agent in $JOBGEN_AGENTS; do
    "job_by_$agent" "$1" "${words[@]}"  # returns only where the command of the agent is not there
  done
  echo "jobgen: no ${JOBGEN_AGENTS// / or } on PATH" >&2
  exit 71
}

job_by_pbs_tmrsh() { # it parses nothing and gives neither environment, directory nor input, but keeps the status
  local path=$JOBGEN_PBS/pbs_tmrsh
  [[ -x $path ]] || path=$(command -v pbs_tmrsh) || return 0
  exec "$path" "$@"
}

job_by_pbsdsh() { # it parses nothing and gives no environment, and its own status says nothing: that comes by a file
  local path=$JOBGEN_PBS/pbsdsh answer=$JOBGEN_RUN_DIR/status-of-$1-$BASHPID status
  [[ -x $path ]] || path=$(command -v pbsdsh) || return 0
  # shellcheck disable=SC2016  # expanded on the other side
  "$path" -h "$1" /bin/bash -c '"$@"; echo $? > "$0"' "$answer" "${@:2}"
  status=$(cat "$answer" 2> /dev/null) || status=255
  rm -f "$answer"
  exit "$status"
}

job_by_srun() {
  command -v srun > /dev/null || return 0
  exec srun --jobid="$JOBGEN_JOB_ID" --nodes=1 --ntasks=1 --nodelist="$1" --cpus-per-task="$JOBGEN_CPUS_PER_NODE" \
    --overlap --export=ALL --mpi=none --input=none "${@:2}"
}

job_by_ssh() { # it joins its words with blanks and has the other side's shell parse them
  command -v ssh > /dev/null || return 0
  local words
  printf -v words '%q ' "${@:2}"
  exec ssh -o BatchMode=yes "$1" "$words"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  while [[ $1 == -* ]]; do shift; done  # options for ssh
  job_remote "$1" "${*:2}"
fi
