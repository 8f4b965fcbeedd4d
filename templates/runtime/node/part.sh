# part.sh, sourced with the functions of the job: limits this process to its part of the node, once.
# Device and core N are the Nth of those that the job has on this node, from 0.

job_part_host=${JOBGEN_HOST:-${SLURMD_NODENAME:-$(hostname)}}

job_part_of_devices() {
  local list number own='' all
  list=${!job_part_variable:-}
  IFS=, read -ra all <<< "$list"
  for number in ${job_part_devices//,/ }; do
    if [[ $number == none ]]; then
      own=,-1  # hides all
    elif [[ -z $list ]]; then
      own+=,$number
    else
      [[ -n ${all[number]:-} ]] || { echo "jobgen: $job_part_host: the job has only the devices $list, not number $number of them" >&2; exit 70; }
      own+=,${all[number]}
    fi
  done
  export "$job_part_variable=${own#,}"
}

job_part_of_cores() { # print the processors; each core of the job is as many processors as the node has for it
  local allowed
  allowed=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
  lscpu --parse=NODE,CORE,CPU | sort -t , -k 1,1n -k 2,2n -k 3,3n |
    awk -F , -v allowed="$allowed" -v own="$job_part_cores" -v cores="$job_cpus_per_node" '
      function numbers(text, set,   part, ends, n, i, one) {
        n = split(text, part, ",")
        for (i = 1; i <= n; i++) {
          split(part[i] "-" part[i], ends, "-")
          for (one = ends[1]; one <= ends[2]; one++) set[one + 0]
        }
      }
      BEGIN { numbers(allowed, may); numbers(own, part_of) }
      !/^#/ && ($3 in may) { cpu[count++] = $3 }
      END {
        if (count < cores) exit
        each = count % cores ? 1 : count / cores
        for (i = 0; i < count; i++) if (int(i / each) in part_of) list = list "," cpu[i]
        print substr(list, 2)
      }'
}

job_take_part() {
  local cpus
  [[ -z ${job_part_variable:-} ]] || job_part_of_devices
  cpus=$(job_part_of_cores 2> /dev/null) || true
  if [[ -z $cpus ]]; then
    ((${LOCAL_RANK:-${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}}} == 0)) || return 0
    echo "jobgen: $job_part_host has fewer than the $job_cpus_per_node processors of the job: its steps are not bound" >&2
  else
    taskset --cpu-list --pid "$cpus" $$ > /dev/null || echo "jobgen: $job_part_host: cannot bind to the processors $cpus" >&2
  fi
}

if [[ -z ${JOBGEN_HAS_PART:-} ]]; then
  job_take_part
  export JOBGEN_HAS_PART=yes
fi
