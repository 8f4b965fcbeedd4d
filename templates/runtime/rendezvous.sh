# The variables of the job for the user's code and the program (docs/survival.md), and the rendezvous of the ranks.

job_rendezvous() {
  export MASTER_ADDR=${job_hosts[0]} MASTER_PORT=${job_master_port:-}
  if [[ -z $MASTER_PORT ]]; then
    # From the job id, so that two jobs on one node differ. If it is in use: no port of the jobs submitted next.
    MASTER_PORT=$((20000 + job_number % 10000))
    while job_port_in_use; do MASTER_PORT=$((20000 + (MASTER_PORT + 3307) % 10000)); done
  fi
}

job_port_in_use() { # something on this host listens there (state 0A), at any address: the rendezvous listens at all
  local port
  printf -v port %04X "$MASTER_PORT"
  grep -qs "[0-9A-F]:$port [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6
}

job_endpoint() { # print ADDRESS:PORT; that of IPv6 is in brackets
  if [[ $MASTER_ADDR == *:* ]]; then echo "[$MASTER_ADDR]:$MASTER_PORT"; else echo "$MASTER_ADDR:$MASTER_PORT"; fi
}

job_export() { # before the user's code
  export JOBGEN_JOB_ID=$job_id JOBGEN_RUN_DIR=$job_dir JOBGEN_ATTEMPT=$job_attempt JOBGEN_LOGS=$job_logs JOBGEN_WORLD_SIZE=$job_world_size
  export JOBGEN_ACCELERATOR=$job_accelerator JOBGEN_LAUNCHER=$job_launcher_name JOBGEN_SIGNAL=$job_save_signal
  export JOBGEN_RANK_LOGS=$job_rank_logs JOBGEN_TRAINING=${job_runs_training_module:-}
  export JOBGEN_POLL=0.5  # s between two reads of the file control; longer with many nodes
  ((job_nodes < 1000)) || JOBGEN_POLL=$((job_nodes / 1000))
  export JOBGEN_BEAT=  # s between two signs of life of a node among others; longer with many nodes
  ((job_nodes == 1 && ${job_pack_nodes:-1} == 1)) || JOBGEN_BEAT=$((job_nodes < 1000 ? 10 : job_nodes / 100))
  export JOBGEN_AGENTS=${job_remote_commands:-} JOBGEN_CPUS_PER_NODE=$job_cpus_per_node JOBGEN_RANKS_PER_NODE=$job_ranks_per_node
  export JOBGEN_BIND=${job_cpu_bind:-} JOBGEN_VISIBLE=${job_device_variable:-} JOBGEN_DEVICES_BY_NODE=${job_lists_devices_of_nodes:-}
  JOBGEN_UMASK=$(umask)  # of the files in the run directory
  export JOBGEN_UMASK
  [[ -z ${job_index:-} ]] || export JOBGEN_TASK=$job_index
  [[ -z ${job_hang_timeout:-} ]] || export JOBGEN_HANG_TIMEOUT=$job_hang_timeout JOBGEN_PROGRESS=$job_logs/progress
  JOBGEN_START_TIME=$(($(date +%s) - SECONDS))
  export JOBGEN_START_TIME
}
