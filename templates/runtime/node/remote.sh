#!/bin/bash
# jobgen-remote HOST COMMAND: run a shell command on a host, in the environment and the directory of this job.
# mpirun runs it instead of ssh. It uses the first command of JOBGEN_AGENTS that exists.

job_remote() { # HOST COMMAND
  local agent words
  # Without ~/.bashrc, which bash reads again below sshd and which may set -u.
  # shellcheck disable=SC2016  # expanded on the other side
  words=(/bin/bash --norc -c '. "$0/env.sh" && export JOBGEN_HOST=$1 PATH=$0:$PATH && eval "$2"' "$JOBGEN_RUN_DIR" "$1" "$2")
  export JOBGEN_SENT_BY=$JOBGEN_LOGS  # identifies remaining processes for the script
  for agent in $JOBGEN_AGENTS; do
    "job_by_$agent" "$1" "${words[@]}"  # returns only if the command of the agent does not exist
  done
  echo "jobgen: no ${JOBGEN_AGENTS// / or } on PATH" >&2
  exit 71
}

job_by_pbs_tmrsh() { # it parses nothing and passes no environment, directory or input, but returns the status
  local path=$JOBGEN_PBS/pbs_tmrsh
  [[ -x $path ]] || path=$(command -v pbs_tmrsh) || return 0
  exec "$path" "$@"
}

job_by_pbsdsh() { # it parses nothing, passes no environment, and does not return the status, which is read from a file
  local path=$JOBGEN_PBS/pbsdsh line answer pause lines=()
  [[ -x $path ]] || path=$(command -v pbsdsh) || return 0
  line=$(grep -snxFm 1 -e "$1" "$JOBGEN_RUN_DIR/hosts") || line=0
  answer=$JOBGEN_LOGS/answers/$((${line%%:*} / 400))/$1-$BASHPID
  mkdir -p "${answer%/*}"
  for pause in 1 2 4 8 0; do
    # shellcheck disable=SC2016  # expanded on the other side
    "$path" -h "$1" /bin/bash -c 'echo $$ >> "$0"; "$@"; echo $? >> "$0"' "$answer" "${@:2}" 2> "$answer.errors" || true
    [[ $(< "$answer.errors") == *"tm_init failed"* ]] || break  # a busy daemon; nothing was started
    sleep "$pause"
  done
  cat "$answer.errors" >&2
  rm -f "$answer.errors"
  job_await_answer "$1"
  job_read_answer
  rm -f "$answer" "$answer.alive"
  exit "${lines[1]:-255}"
}

job_read_answer() { # sets lines: the process id, then the status
  lines=()
  { mapfile -t lines < "$answer"; } 2> /dev/null || true
}

job_await_answer() { # HOST: pbsdsh may end before the command, with status 0 or with "Event poll failed"
  local second silent=0
  for ((second = 1; silent < 3; second++)); do
    job_read_answer
    ((${#lines[@]} < 2)) && ! grep -qs '^stop' "$JOBGEN_LOGS/control" || return 0
    sleep 1
    if ((${#lines[@]} == 0)); then
      ((second < 10)) || return 0
    elif ((second < 4 || second % 10 == 0)); then
      rm -f "$answer.alive"
      # shellcheck disable=SC2016  # expanded on the other side
      "$path" -h "$1" /bin/bash -c 'kill -0 "$1" && : > "$0"' "$answer.alive" "${lines[0]}" &> /dev/null || true
      [[ -e $answer.alive ]] || sleep 1  # as it may end before this command
      if [[ -e $answer.alive ]]; then silent=0; else silent=$((silent + 1)); fi
    fi
  done
}

job_by_srun() {
  command -v srun > /dev/null || return 0
  local group=() cpus=$JOBGEN_CPUS_PER_NODE
  [[ -z ${JOBGEN_COMPONENTS:-} ]] || job_find_component "$1"
  unset "${!SLURM_CPUS_PER_TASK@}" "${!SLURM_TRES_PER_TASK@}"  # of a rank: srun warns, since Slurm 23.11
  exec srun --jobid="$JOBGEN_JOB_ID" ${group[@]+"${group[@]}"} --nodes=1 --ntasks=1 --nodelist="$1" --cpus-per-task="$cpus" \
    --overlap --export=ALL --mpi=none --input=none "${@:2}"
}

job_find_component() { # HOST: sets group and cpus to those of its component in a heterogeneous job
  local line part number=0
  line=$(grep -nxFm 1 -e "$1" "$JOBGEN_RUN_DIR/hosts") || return 0
  line=${line%%:*}
  for part in $JOBGEN_COMPONENTS; do
    if ((line <= ${part%%x*})); then
      group=("--het-group=$number") cpus=${part##*x}
      return
    fi
    line=$((line - ${part%%x*})) number=$((number + 1))
  done
}

job_by_ssh() { # it joins its words with blanks, and the remote shell parses them
  command -v ssh > /dev/null || return 0
  local words
  printf -v words '%q ' "${@:2}"
  words=${words//#/\\#}  # begins a comment in csh, also within a word
  exec ssh -o BatchMode=yes -o ServerAliveInterval=20 "$1" "$words"
}

job_for_login_shell() { # COMMAND: sets words to it; Open MPI writes it for the user's login shell, in the syntax of csh if it is one
  local shell
  words=$1
  shell=$(getent passwd "$UID" 2> /dev/null) || true
  shell=${shell##*:}
  [[ ! $shell =~ /(bsd-)?t?csh$ ]] || printf -v words 'exec %q -fc %q' "$shell" "$1"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  while [[ $1 == -* ]]; do shift; done  # options for ssh
  host=$1 words=${*:2}
  [[ $0 != */jobgen-remote ]] || job_for_login_shell "$words"
  job_remote "$host" "$words"
fi
