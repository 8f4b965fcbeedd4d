# Spare nodes: the job continues without the bad hosts of the preflight.

job_choose_hosts() {
  local good fault
  job_use_hosts "${job_hosts[@]}"
  until job_check_hosts; do
    ((${#job_bad_hosts[@]})) || job_die 74 "the preflight ended with status $job_status and names no host"
    mapfile -t good < <(printf '%s\n' "${job_hosts[@]}" | grep -vxFf <(printf '%s\n' "${job_bad_hosts[@]}"))
    job_say "excluding ${job_bad_hosts[*]}: $fault"
    ((${#good[@]} >= job_needed_nodes)) ||
      job_die 74 "only ${#good[@]} hosts are left, but $job_needed_nodes are needed"
    job_use_hosts "${good[@]}"
  done
  job_use_hosts "${job_hosts[@]:0:job_needed_nodes}"
  job_optional job_find_address  # of the same host
}

job_check_hosts() { # return 1 after a fault, with the bad hosts in job_bad_hosts
  fault='the preflight failed there'
  if job_defined job_find_address && ! job_find_address; then
    job_bad_hosts=("${job_hosts[0]}") fault=$job_fault
    printf '%s\t%s\n' "${job_hosts[0]}" "$fault" >> "$job_dir/bad-hosts"
    return 1
  fi
  job_preflight
}

job_use_hosts() { # HOST...: these take part
  job_hosts=("$@")
  printf '%s\n' "$@" > "$job_dir/hosts"
  printf "%s slots=$job_ranks_per_node\n" "$@" > "$job_dir/hostfile"
  export MASTER_ADDR=$1 JOBGEN_WORLD_SIZE=$(($# * job_ranks_per_node))
  (umask 077; job_save_environment > "$job_dir/env.sh")
}
