# The hosts that take part: the job goes on without bad hosts, with spare ones, or with fewer.

job_spare_hosts=()

job_choose_hosts() { # by the preflight; return 1 if too few are left, with the reason in job_fault
  local fault
  job_use_hosts "${job_hosts[@]}" ${job_spare_hosts[@]+"${job_spare_hosts[@]}"}
  until job_check_hosts; do
    if ((${#job_bad_hosts[@]} == 0)); then
      job_fault="the preflight ended with status $job_status and names no host"
      return 1
    fi
    job_leave_hosts "$fault" || return
    job_use_hosts "${job_hosts[@]}"
  done
  job_use_needed_hosts
  job_optional job_find_address  # of the same host
}

job_leave_hosts() { # REASON: leave out those in job_bad_hosts; return 1 if too few are left, with the reason in job_fault
  local least=${job_min_nodes:-$job_needed_nodes}
  mapfile -t job_hosts < <(printf '%s\n' "${job_hosts[@]}" | grep -vxFf <(printf '%s\n' "${job_bad_hosts[@]}"))
  job_say "excluding ${job_bad_hosts[*]}: $1"
  job_fault="only ${#job_hosts[@]} hosts are left, but $least are needed"
  ((${#job_hosts[@]} >= least))
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

job_use_needed_hosts() { # of job_hosts; the others are spare
  job_spare_hosts=("${job_hosts[@]:job_needed_nodes}")
  job_use_hosts "${job_hosts[@]:0:job_needed_nodes}"
}

job_use_hosts() { # HOST...: these take part
  job_hosts=("$@") job_world_size=$(($# * job_ranks_per_node))
  printf '%s\n' "$@" > "$job_dir/hosts"
  printf "%s slots=$job_ranks_per_node\n" "$@" > "$job_dir/hostfile"
  export MASTER_ADDR=$1 JOBGEN_WORLD_SIZE=$job_world_size
  (umask 077; job_save_environment > "$job_dir/env.sh")
}
