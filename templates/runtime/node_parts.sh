# Programs that have a part of each node: the devices and cores go to the ranks with their functions.

job_hand_over_part() {
  [[ -n ${job_part_cores:-} ]] || return 0
  declare -p job_part_devices job_part_variable job_part_cores job_cpus_per_node 2> /dev/null || true
  # shellcheck disable=SC2016  # expanded by the ranks
  echo '. "${BASH_SOURCE[0]%/*}/part.sh"'
} >> "$job_dir/functions.sh"
