# Signals: the first one asks the ranks to save and exit, the next one stops them at once.
# Both are written to the file control of the attempt, which a watcher on every node reads (node/watch.sh):
# a job that is ending cannot start processes on its other nodes.

job_signals=0 job_traps=0 job_last_signal='' job_signalled_at=-9 job_launcher=''

job_listen() {
  local name
  # PBS also signals its login shell, which all of these except URG kill.
  for name in TERM INT HUP USR1 USR2 URG; do
    # shellcheck disable=SC2064  # now: each its own
    trap "job_trap $name" "$name"
  done
  trap : PIPE  # a closed output must not end the job
}

job_trap() { # NAME
  local pause=2
  job_traps=$((job_traps + 1))
  # One qsig arrives several times within milliseconds. HUP comes from a closing terminal and from its shell.
  [[ $1 != HUP ]] || pause=5
  ((SECONDS - job_signalled_at >= pause)) || return 0
  job_signalled_at=$SECONDS
  job_signals=$((job_signals + 1))
  job_last_signal=$1
  job_note signal "$1"
  if ((job_signals == 1)); then
    [[ -z $job_launcher ]] || job_say "got $1: asking every rank to save and exit; a second signal stops at once"
    job_control save "$1"
  else
    job_say "got $1 again: stopping at once"
    if [[ -z $job_launcher ]]; then
      job_sourcing=  # no sourced script has called exit
      exit 75
    fi
    job_control stop "$1"
    job_later 0 job_stop
  fi
}

job_control() { # save|stop REASON: ask the ranks of this attempt
  { [[ -z ${job_logs:-} ]] || printf '%s %s\n' "$1" "$2" >> "$job_logs/control"; } 2> /dev/null || true
}

job_save_requested() { grep -qs '^save' "$job_logs/control"; }

job_save_reason() { # the reason of the first request
  local what why=''
  read -r what why < "$job_logs/control" || true
  printf '%s' "${why:-$what}"
}

job_later() { # SECONDS COMMAND...: run it then, unless the launcher ends before
  (
    trap 'kill "$!" 2> /dev/null; exit' TERM
    sleep "$1" &
    wait "$!"
    "${@:2}"
  ) > /dev/null &
}
