# The number of nodes is that of the allocation.

job_count_nodes() {
  job_nodes=$(job_list_hosts | awk 'NF && !seen[$1]++ { hosts++ } END { print hosts + 0 }')
  job_world_size=$((job_nodes * job_ranks_per_node))
}
