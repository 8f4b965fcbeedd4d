# The next attempt on PBS: the same script as a new job that waits for the end of this one, because qrerun is
# for operators. It requests the resources of this job, including those of the command line of qsub.

job_again_word='submitted again'

job_submit_again() {
  local options=() start=()
  [[ -n $job_stop_reason || $job_last_signal != TERM ]] || job_stop_reason='it was deleted or preempted'
  [[ -z $job_stop_reason ]] || return 1
  job_stop_reason='qsub on this node does not accept it'
  job_qsub_options
  job_qsub_values
  job_next=$(cd "$job_dir" && env -i ${start[@]+"${start[@]}"} "$JOBGEN_PBS/qsub" "${options[@]}" -W depend=afterany:"${PBS_JOBID%%.*}" job.sh) || return 1
  printf '%s\n' "$job_next" > "$job_dir/job-id"
  job_next="the next one is $job_next"
}

job_qsub_options() { # adds to options
  local pair value name
  for pair in N:Job_Name A:Account_Name P:project p:Priority m:Mail_Points M:Mail_Users; do
    value=$(job_attribute "${pair#*:}")
    [[ -z $value || $value == _pbs_project_default ]] || options+=("-${pair%%:*}" "$value")
  done
  options+=(-q "${PBS_O_QUEUE:-$PBS_QUEUE}")
  for name in umask group_list; do
    value=$(job_attribute "$name")
    [[ -z $value ]] || options+=(-W "$name=$value")
  done
  # PBS makes new paths if it made these from the name and number of the job.
  for pair in o:Output_Path e:Error_Path; do
    value=$(job_attribute "${pair#*:}")
    [[ -z $value || $value == *."${pair%%:*}${PBS_JOBID%%.*}" ]] || options+=("-${pair%%:*}" "$value")
  done
  for pair in j:Join_Path k:Keep_Files; do
    value=$(job_attribute "${pair#*:}")
    [[ -z $value ]] || options+=("-${pair%%:*}" "$value")
  done
  [[ $(job_attribute Rerunable) != False ]] || options+=(-r n)
  [[ -z ${job_arguments[*]-} ]] || options+=(-F "$(job_quote "${job_arguments[@]}")")
  job_qsub_resources
}

job_qsub_resources() { # except those that PBS has computed
  local name value chunks
  chunks=$(job_attribute Resource_List.select)
  while read -r name value; do
    [[ -n $value && $name != nodect && $name != neednodes ]] || continue
    if [[ -n $chunks ]]; then
      [[ $name != nodes && $name != ncpus && $name != mpiprocs && $chunks != *":$name="* ]] || continue
    fi
    options+=(-l "$name=$value")
  done < <(sed -n 's/^ *Resource_List\.\([A-Za-z_][A-Za-z0-9_-]*\) = /\1 /p' <<< "$job_record")
}

job_qsub_values() { # adds to options, and to start the values that this job began with
  local pair names values=() plain=yes
  names=$'\n'$(job_variable_list)$'\n'
  while IFS= read -r -d '' pair; do
    start+=("$pair")
    case ${pair%%=*} in
      JOBGEN_HANG_TIMEOUT | JOBGEN_PREFLIGHT_TIMEOUT) ;;
      PBS_* | JOBGEN_* | *[!A-Za-z0-9_]*) continue ;;
    esac
    [[ $names == *$'\n'"${pair%%=*}"$'\n'* && " ${job_secret_names[*]-} " != *" ${pair%%=*} "* ]] || continue
    values+=("$pair")
    [[ $pair != *[\'\"\\]* ]] || plain=
  done < "/proc/$$/environ"
  if [[ -n $plain ]]; then
    ((${#values[@]} == 0)) || options+=(-v "$(IFS=,; printf '%s' "${values[*]%%=*}")")
    return
  fi
  options+=(-V)  # with -v qsub of OpenPBS refuses quotes, and doubles backslashes
  for pair in "${start[@]}"; do
    case ${pair%%=*} in
      HOME | LANG | LOGNAME | MAIL | PATH | SHELL | TZ | USER | KRB5CCNAME | PBS_CONF_FILE | PBS_DEFAULT | PBS_SERVER) values+=("$pair") ;;
    esac
  done
  start=(${values[@]+"${values[@]}"})
}

job_variable_list() { # the names of the variables that qsub -v or -V gave to this job, and parts of values
  awk 'sub(/^ *Variable_List = /, "") { list = 1; print; next } list && /^    [A-Za-z_.]+ = / { exit } list' <<< "$job_record" |
    tr ',' '\n' | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'
}
