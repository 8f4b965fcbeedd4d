# The devices that remain after --include and --exclude of the deepspeed launcher, host by host.

job_filter() {
  local host keep
  for host in "${job_filter_hosts[@]}"; do
    grep -qxF "$host" "$job_dir/hosts" || job_die 70 "$job_filter_option names $host, but the hosts are ${job_hosts[*]:0:8}"
  done
  [[ $job_filter_option == --include ]] && keep=-xFf || keep=-vxFf
  [[ -z ${job_filter_whole_hosts:-} ]] ||
    mapfile -t job_hosts < <(printf '%s\n' "${job_filter_whole_hosts[@]}" | grep "$keep" - "$job_dir/hosts")
  printf '%s\n' ${job_hosts[@]+"${job_hosts[@]}"} > "$job_dir/hosts"
}
