# HCCL, the collective communication of Ascend NPUs.

job_hccl() {
  # Slow file systems need longer than its 120 s to bring all ranks up; no list of allowed hosts.
  export HCCL_CONNECT_TIMEOUT=${HCCL_CONNECT_TIMEOUT:-1200} HCCL_WHITELIST_DISABLE=${HCCL_WHITELIST_DISABLE:-1}
  # It takes a rank table or environment variables, never both; the variables are ours.
  [[ -z ${RANK_TABLE_FILE:-} ]] || job_say 'warning: RANK_TABLE_FILE is left out; HCCL gets its ranks from the launcher'
  unset RANK_TABLE_FILE
}

job_hccl_ports() {  # HCCL takes 16 ports or more from here on; the range ends below the ports of the rendezvous.
  export HCCL_IF_BASE_PORT=${HCCL_IF_BASE_PORT:-$((10000 + MASTER_PORT % 300 * 32))}
}
