# bind.sh, sourced by rank.sh: binds this rank to processors.
# It uses its share of the processors of the job on this node, whole cores or adjacent NUMA nodes, or the list
# that the job has for it. Without the processors of a list that its site has, a rank runs unbound.

job_share() { # print the processors of this rank, then their NUMA nodes
  local allowed
  allowed=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
  lscpu --parse=NODE,CORE,CPU | sort -t , -k 1,1n -k 2,2n -k 3,3n |
    awk -F , -v allowed="$allowed" -v kind="$JOBGEN_BIND" -v rank="$job_local" -v ranks="$LOCAL_WORLD_SIZE" '
      BEGIN {
        parts = split(allowed, part, ",")
        for (i = 1; i <= parts; i++) {
          last = split(part[i], ends, "-")
          for (cpu = ends[1]; cpu <= ends[last] + 0; cpu++) may[cpu + 0]
        }
      }
      /^#/ || !($3 in may) { next }
      { key = kind == "numa" ? $1 : $1 "," $2 }
      key != unit || !units { unit = key; units++ }
      { of[units] = of[units] "," $3; node[units] = $1 }
      END {
        first = int(rank * units / ranks)
        last = int((rank + 1) * units / ranks)
        if (kind == "numa" && last == first) last++  # shared with a neighbour
        for (i = first + 1; i <= last; i++) { list = list of[i]; nodes = nodes "," node[i] }
        print substr(list, 2), substr(nodes, 2)
      }'
}

job_bind() { # [preflight]
  local cpus nodes
  if [[ $JOBGEN_BIND == list || $JOBGEN_BIND == site ]]; then
    cpus=${job_cpu_lists[job_local]}
  else
    read -r cpus nodes < <(job_share)
    [[ -n $cpus ]] || job_fail "$LOCAL_WORLD_SIZE ranks do not fit the processors of the job"
  fi
  if [[ $JOBGEN_BIND == site ]]; then
    taskset --cpu-list --pid "$cpus" $$ &> /dev/null || ((RANK)) ||
      echo "jobgen: $job_host: cannot bind rank $RANK to the processors $cpus, which its site lists" >&2
    return 0
  fi
  taskset --cpu-list --pid "$cpus" $$ > /dev/null || job_fail "cannot bind rank $RANK to the processors $cpus"
  [[ $JOBGEN_BIND == numa ]] && numactl --membind="$nodes" true 2> /dev/null || return 0
  export JOBGEN_BOUND=yes JOBGEN_VISIBLE=  # rank.sh starts again, with the memory of these NUMA nodes
  exec numactl --membind="$nodes" bash "$job_dir/rank.sh" "$@"
}

[[ -n ${JOBGEN_BOUND:-} || -z ${JOBGEN_BIND:-} ]] || job_bind "$@"
