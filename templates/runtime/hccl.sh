# HCCL, the collective communication of Ascend NPUs.

job_hccl() {
  # With slow file systems, all ranks need more than its 120 s to start; no list of allowed hosts.
  export HCCL_CONNECT_TIMEOUT=${HCCL_CONNECT_TIMEOUT:-1200} HCCL_WHITELIST_DISABLE=${HCCL_WHITELIST_DISABLE:-1}
  # It accepts a rank table or environment variables, not both; this script sets the variables.
  [[ -z ${RANK_TABLE_FILE:-} ]] || job_say 'warning: RANK_TABLE_FILE is ignored; HCCL gets its ranks from the launcher'
  unset RANK_TABLE_FILE
  # It uses IPv4 unless this says otherwise; /proc/net/route has a line for each network of IPv4.
  if ! awk 'NR > 1 && $1 != "lo" { found = 1 } END { exit !found }' /proc/net/route &&
    awk '$4 == "00" && $6 != "lo" { found = 1 } END { exit !found }' /proc/net/if_inet6; then
    export HCCL_SOCKET_FAMILY=${HCCL_SOCKET_FAMILY:-AF_INET6}
  fi 2> /dev/null
}

job_hccl_ports() {  # HCCL uses 16 or more ports from here; the range ends below the ports of the rendezvous.
  export HCCL_IF_BASE_PORT=${HCCL_IF_BASE_PORT:-$((10000 + ${MASTER_PORT:-$job_number} % 300 * 32))}
}
