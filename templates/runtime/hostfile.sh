# The hostfile: lines HOST slots=N, each host once, in the order of the scheduler.

job_count_nodes() { # unless the script has their number
  [[ -z ${job_nodes:-} ]] || return 0
  job_nodes=$(job_list_hosts | awk 'NF && !seen[$1]++ { hosts++ } END { print hosts + 0 }')
  job_world_size=${job_world_size:-$((job_nodes * job_ranks_per_node))}
}

job_make_hostfile() {
  if [[ -n ${job_node_groups:-} ]]; then  # as many slots as the host has lines
    job_list_hosts | awk -v share="${job_lines_per_rank:-1}" '
      NF { if (!lines[$1]++) host[++hosts] = $1 }
      END { for (i = 1; i <= hosts; i++) print host[i] " slots=" lines[host[i]] / share }'
  else
    job_list_hosts | awk -v slots="$job_ranks_per_node" 'NF && !seen[$1]++ { print $1 " slots=" slots }'
  fi > "$job_dir/hostfile"
  awk '{ print $1 }' "$job_dir/hostfile" > "$job_dir/hosts"
  mapfile -t job_hosts < "$job_dir/hosts"
  export JOBGEN_HERE=${job_script_host:-${job_hosts[0]:-}}  # the host of this script
  job_check_hostfile
}

job_check_hostfile() {
  local shares
  if [[ -n ${job_node_groups:-} ]]; then
    shares=$(awk -F= '{ print $2 }' "$job_dir/hostfile" | sort -n | uniq -c | awk '{ print $1 "x" $2 }' | paste -sd +)
    [[ $shares == "$job_node_groups" ]] ||
      job_die 70 "the allocation is ${shares:-empty} (nodes x ranks: ${job_hosts[*]+${job_hosts[*]:0:8}}), but $job_node_groups was requested"
  fi
  ((${#job_hosts[@]} == job_nodes)) ||
    job_die 70 "the allocation has ${#job_hosts[@]} hosts (${job_hosts[*]+${job_hosts[*]:0:8}}), but $job_nodes were requested: leave out other options of the submission, or use --nodes submitted"
}
