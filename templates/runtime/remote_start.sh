# Commands on the other hosts, several at a time.

job_ask_host() { # HOST COMMAND: job_reach_host, for half a minute at most
  timeout 30 bash -c "$(declare -f job_reach_host)"$'\n''job_reach_host "$@"' reach "$@" < /dev/null
}

job_on_hosts() { # LIMIT COMMAND...: run it with the name of each host, in the background, and wait for all
  local limit=$1 host running=0
  shift
  for host in "${job_hosts[@]}"; do
    if ((running++ >= limit)); then wait -n || true; fi
    "$@" "$host" &
  done
  wait
}
