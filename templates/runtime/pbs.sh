# PBS: OpenPBS, PBS Pro and Torque.

job_pass_option=-v  # of qsub, which hands no variable on by itself

job_scheduler() {
  [[ -n ${PBS_JOBID:-} ]] || job_die 70 'PBS_JOBID is not set: submit this script with qsub'
  [[ -r ${PBS_NODEFILE:-} ]] || job_die 70 "cannot read the list of hosts: PBS_NODEFILE is '${PBS_NODEFILE:-}'"
  job_id=$PBS_JOBID job_number=${PBS_JOBID%%[!0-9]*}
  job_index=${PBS_ARRAY_INDEX:-${PBS_ARRAYID:-}}
  job_number=$((10#${job_number:-0} + 1009 * ${job_index:-0}))  # the tasks of an array share the number
  if [[ -n ${job_is_array:-} ]]; then
    [[ -n $job_index ]] || job_die 70 'PBS_ARRAY_INDEX is not set: this script is for the tasks of an array'
    job_array_id=${PBS_JOBID/\[*\]/}
  fi
  job_find_pbs
  job_submit_dir=${PBS_O_WORKDIR:-$PWD}  # PBS starts a job in the home directory
  job_output=$(job_attribute Output_Path)
  job_output=${job_output#*:} job_output=${job_output//^array_index^/$job_index}
  [[ -n ${job_node_groups:-} ]] || job_check_shares
}

job_find_pbs() { # its commands: a profile may have removed them from PATH, or put those of another scheduler first
  local home=${PBS_EXEC:-}
  [[ -n $home ]] || home=$(sed -n 's/^PBS_EXEC=//p' "${PBS_CONF_FILE:-/etc/pbs.conf}" 2> /dev/null) || true
  export JOBGEN_PBS=$home/bin
  [[ -n $home && -x $JOBGEN_PBS/qsub ]] || JOBGEN_PBS=$(dirname "$(command -v qsub || echo /none/qsub)")
  job_record=$("$JOBGEN_PBS/qstat" -f "$PBS_JOBID" 2> /dev/null | awk '/^\t/ { printf "%s", substr($0, 2); next } { printf "%s%s", nl, $0; nl = "\n" }') || true
}

job_attribute() { sed -n "s/^ *$1 = //p" <<< "$job_record"; }  # NAME: of this job, in PBS

job_check_shares() {
  local lines
  lines=$(awk 'NF { lines[$1]++ } END { for (host in lines) print lines[host] }' "$PBS_NODEFILE" | sort -nu | paste -sd ' ')
  [[ $lines != *' '* ]] ||
    job_die 70 "uneven allocation: the hosts have $lines lines in $PBS_NODEFILE, expected $job_ranks_per_node ranks on each node: --exclusive requests whole nodes"
}

job_list_hosts() { cat "$PBS_NODEFILE"; }

job_find_end() {
  local limit part seconds=0
  limit=$(job_attribute Resource_List.walltime)
  for part in ${limit//:/ }; do seconds=$((60 * seconds + 10#$part)); done
  ((seconds)) || seconds=${PBS_WALLTIME:-${job_walltime_seconds:-0}}
  ((seconds)) || return 0
  job_ends=$((JOBGEN_START_TIME + seconds))
}

job_submit_command() { # PBS Pro refuses an array of one task, but accepts a step beyond the end of the range
  if [[ -z ${job_is_array:-} ]]; then
    echo qsub
  elif [[ -n ${PBS_ARRAYID:-} ]]; then
    echo "qsub -t $job_index"
  else
    echo "qsub -J $job_index-$((job_index + 1)):2"
  fi
}
