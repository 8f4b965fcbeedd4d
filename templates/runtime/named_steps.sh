# The hosts and the port of each step with a name, as variables of all steps.

job_export_steps() {
  local step port name at
  for ((step = 1; step <= job_steps; step++)); do
    job_use_step "$step"
    [[ -n ${job_step_name:-} ]] || continue
    name=JOBGEN_STEP_$job_step_name port=${job_ready_port:-} at=${job_first_node:-0}
    [[ -n $port ]] || port=$(job_free_port "$step")
    export "${name}_HOSTS=$(IFS=,; echo "${all[*]:at:job_nodes}")" "${name}_PORT=$port"
  done
}

job_free_port() { # STEP: print a port of its own, the same in each attempt unless it is in use
  local MASTER_PORT=$((20000 + (number + 2003 * $1 + 5003) % 10000))
  while job_port_in_use; do MASTER_PORT=$((20000 + (MASTER_PORT + 3307) % 10000)); done
  echo "$MASTER_PORT"
}
