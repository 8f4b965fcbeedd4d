# Run of the launcher, which the function launch of the job starts.

job_run() { # [preflight]: sets job_status to the status of the launcher
  job_optional job_await_controller
  # In a separate session: PBS signals every process of the job's session, which would kill mpirun.
  # Without input, which may be the rest of this script.
  setsid bash -c "umask ${job_umask:-$(umask)}; set -euo pipefail"$'\n'"$(declare -f launch)"$'\n''launch "$@"' launch "$@" < /dev/null &
  job_launcher=$!
  job_end_with_script &
  if [[ -n ${1:-} ]]; then
    job_later "${job_preflight_seconds:-60}" job_stop
  elif [[ ${job_hosts[*]} != "$JOBGEN_HERE" ]]; then  # not this host alone
    job_later 0 job_end_stragglers
  fi
  ! job_defined job_heed_control || job_later 0 job_heed_control
  [[ -n ${1:-} ]] || ! job_defined job_watch_progress || job_later 0 job_watch_progress
  job_wait "$job_launcher"
  job_end_leftovers
  rm -rf "$job_logs/answers" 2> /dev/null || true  # of remote commands, which may still end
  job_launcher=
  # shellcheck disable=SC2046  # process ids of helpers that still run: other ids may have been reused
  kill $(jobs -pr) 2> /dev/null || true
}

job_wait() { # PROCESS: sets job_status to its status
  local traps=-1
  # A trap ends the wait, not the process; bash may end the next wait, too, after two signals at once.
  while ((traps != job_traps)) || kill -0 "$1" 2> /dev/null; do
    traps=$job_traps
    wait "$1" && job_status=0 || job_status=$?
  done
}

job_end_with_script() { # ends the processes on this host when the script is killed
  # shellcheck disable=SC2016  # expanded in the other shell
  exec setsid bash -c '
    remainder() { grep -lszxF "JOBGEN_LOGS=$3" /proc/[0-9]*/environ | awk -F/ -v self="$$" "\$3 != self { print \$3 }"; }
    exec {clock}<> <(:)  # without input: read waits without a process, unlike sleep
    while kill -0 "$1" && kill -0 "$2"; do read -rt 1 -u "$clock"; done
    ! kill -0 "$1" || exit
    for i in {1..10}; do [[ -s $3/control ]] && kill -0 "$2" && sleep 1; done  # the ranks may be saving
    kill -TERM $(remainder "$@") && sleep 3 && kill -KILL $(remainder "$@")
  ' guard "$$" "$job_launcher" "$job_logs" < /dev/null &> /dev/null
}

job_end_leftovers() { # its session, and the commands for other hosts, which may have separate sessions
  local pids _
  for _ in 1 2 3; do  # one may have started another in the meantime
    mapfile -t pids < <({
      # PID (NAME) STATE PARENT GROUP SESSION. Containers often have no pkill. sed would give up at a process that has just ended.
      grep -ls ") [A-Za-z] [0-9]* [0-9]* $job_launcher " /proc/[0-9]*/stat || true
      grep -lszxF "JOBGEN_SENT_BY=$job_logs" /proc/[0-9]*/environ
    } | awk -F/ '{ print $3 }')
    ((${#pids[@]})) || return 0
    kill -KILL "${pids[@]}" 2> /dev/null || true
  done
}

job_stop() { # end the launcher and its remaining processes
  kill -TERM -- "-$job_launcher" 2> /dev/null
  sleep 10 &
  wait "$!"
  job_control stop timeout
  kill -KILL -- "-$job_launcher" 2> /dev/null
}

job_end_stragglers() { # a launcher may wait long for the ranks of a lost node, or not end after its last rank
  until [[ -s $job_logs/failed ]] || job_all_finished; do
    if job_defined job_lost_host && job_lost_host; then
      job_stop
      return
    fi
    sleep 5 &
    wait "$!"
  done
  sleep 30 &
  wait "$!"
  job_stop
}
