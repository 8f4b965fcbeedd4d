# A container of Docker or Podman is not a process of the job: it continues to run when its client is killed.

job_end_containers() {
  local words
  ((job_status)) || return 0
  words="$job_container_runtime ps --quiet --filter label=jobgen=$(job_quote "$job_id") | xargs --no-run-if-empty $job_container_runtime kill > /dev/null"
  bash -c "$words" || true
  [[ -z ${job_host_access:-} ]] || job_on_hosts 64 job_end_container_on "$words"
}

job_end_container_on() { # WORDS HOST
  [[ $2 == "${job_hosts[0]}" ]] || job_ask_host "$2" "$1" &> /dev/null
}
