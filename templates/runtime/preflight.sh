# The preflight: the same launcher first starts a check on every rank (docs/survival.md).

job_preflight() { # return 1 after a failure, with the bad hosts in job_bad_hosts
  rm -rf "$job_dir/preflight"
  mkdir "$job_dir/preflight"
  job_run preflight
  job_bad_hosts=()
  ((job_status)) || [[ ! -f $job_dir/preflight/result.json ]] || return 0
  ! job_save_requested || return 0  # it ends before the program
  [[ -s $job_dir/preflight/bad-hosts ]] || job_probe_hosts
  [[ -s $job_dir/preflight/bad-hosts ]] || job_find_silent
  mapfile -t job_bad_hosts < <(cut -f 1 "$job_dir/preflight/bad-hosts" 2> /dev/null)
  if ((${#job_bad_hosts[@]})); then
    sed 's/^/jobgen: /; s/\t/: /; 20q' "$job_dir/preflight/bad-hosts" >&2  # srun can lose what the ranks print last
    cat "$job_dir/preflight/bad-hosts" >> "$job_dir/bad-hosts"
  fi
  return 1
}

job_find_silent() { # the hosts that did not report
  local host
  for host in "${job_hosts[@]}"; do
    compgen -G "$job_dir/preflight/nodes/*/$host.json" > /dev/null || job_bad_hosts+=("$host")
  done
  ((${#job_bad_hosts[@]} < ${#job_hosts[@]})) || job_die 74 "the preflight ended with status $job_status before any host reported"
  ((${#job_bad_hosts[@]} == 0)) || printf '%s\tdid not report\n' "${job_bad_hosts[@]}" > "$job_dir/preflight/bad-hosts"
}

job_probe_hosts() { # test each host alone, if the launcher failed or ended all ranks at the first failure
  [[ -n ${job_host_access:-} && ! ${job_container_runtime:-} =~ ^(pyxis|edf)$ ]] || return 0
  local folder
  folder=$(job_quote "$job_dir")
  job_probe="set -e; . $folder/env.sh;"
  if job_defined container; then
    job_probe+=" exec bash $folder/container.sh"
  elif job_defined node; then
    job_probe+=" command -v $job_launcher_name > /dev/null || { echo '$job_launcher_name: command not found'; exit 71; }; exec"
  fi
  job_probe+=" python3 -c 'import jobgen.train, torch.distributed'"
  job_on_hosts 64 job_probe_host
  (cd "$job_dir/preflight/probes" && find . -name '*.bad' -exec cat {} +) | sort > "$job_dir/preflight/bad-hosts"
}

job_probe_host() { # HOST: its messages go to a file, because pbs_tmrsh writes to the output of the job
  local file
  file=$job_dir/preflight/probes/$((RANDOM % 100))
  mkdir -p "$file"
  file+=/$1
  job_ask_host "$1" "($job_probe) > $(job_quote "$file") 2>&1" &> "$file.caller" && rm -f "$file" "$file.caller" && return 0
  printf '%s\t%s\n' "$1" "$(cat "$file" "$file.caller" 2> /dev/null |
    awk '!/^(srun|slurmstepd)/ { last = $0 } END { print last ? last : "does not answer" }')" > "$file.bad"
}

job_preflight_or_end() {
  if [[ $job_preflight_mode == if_there ]] && ! job_has_training; then
    job_say 'no preflight: python3 has no jobgen.train with torch'
  elif job_defined job_choose_hosts; then
    job_choose_hosts || job_die 74 "$job_fault"
  else
    job_preflight || job_die 74 "the preflight failed with status $job_status; bad hosts: ${job_bad_hosts[*]:-none is named}"
  fi
}

job_has_training() {
  local inside=()
  ! job_defined container || inside=(bash "$job_dir/container.sh")
  ${inside[@]+"${inside[@]}"} python3 -c \
    'import sys, importlib.util as u, jobgen.train; sys.exit(not u.find_spec("torch"))' 2> /dev/null
}
