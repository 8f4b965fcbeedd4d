# Commands on the other hosts, several at a time.

job_ask_host() { # HOST COMMAND: job_reach_host, for half a minute at most
  timeout 30 bash -c "$(declare -f job_reach_host)"$'\n''job_reach_host "$@"' reach "$@" < /dev/null
}

job_on_hosts() { # LIMIT COMMAND...: run it with the name of each host, in the background, and wait for all
  local limit=$1 host pids=()
  shift
  for host in "${job_hosts[@]}"; do
    # For the oldest: wait -n is new in bash 4.3.
    if ((${#pids[@]} >= limit)); then wait "${pids[${#pids[@]} - limit]}" || true; fi
    "$@" "$host" &
    pids+=($!)
  done
  wait
}
