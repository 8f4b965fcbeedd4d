# The run directory: all files of this job. Each attempt of the job has its own logs in it.

job_find_directory() {
  job_script=$0 job_dir=
  [[ $job_script == /* ]] || job_script=$PWD/$job_script
  [[ ${job_runtime:-/} == /* ]] || job_runtime=$PWD/$job_runtime
  if [[ -f $job_submit_dir/submitted-from && -f $job_submit_dir/job.sh ]]; then
    job_dir=$job_submit_dir  # a later attempt, or a job of jobgen submit
    job_submit_dir=$(< "$job_dir/submitted-from")
  fi
  cd "$job_submit_dir" || job_die 72 "cannot enter $job_submit_dir: submit from a directory that the compute nodes have"
  [[ -z ${job_workdir:-} ]] || job_enter "$job_workdir"
  local id=${job_array_id:-$job_id}
  [[ -n $job_dir ]] || job_dir=$job_runs_dir/$job_name-${id//[^A-Za-z0-9._-]/_}
  [[ $job_dir == /* ]] || job_dir=$PWD/$job_dir
}

job_enter() { # DIRECTORY: the working directory; one with variables behind early_setup
  [[ -n $1 ]] || job_die 72 "--workdir is empty: its variables have no value"
  local place=$1
  [[ $place == /* ]] || place=$PWD/$place
  cd "$place" || job_die 72 "cannot enter $place: --workdir must exist on the compute nodes"
}

job_open() {
  job_find_directory
  job_parent=$job_dir  # of all tasks of an array; each has a directory in it
  [[ -z ${job_array_id:-} ]] || job_dir=$job_parent/${job_task_folder:-task}-$job_index
  # The processes of the job are found by variables in their environment, one a line.
  [[ $job_dir != *$'\n'* ]] || job_die 72 "the name of a run directory must not contain a line break: $(job_quote "$job_dir")"
  job_umask=$(umask)  # of the user's program
  mkdir -p "${job_parent%/*}/" 2> /dev/null || true
  umask "${job_run_dir_umask:-077}"
  mkdir -p "$job_dir" || job_die 72 "cannot make the run directory $job_dir: choose another place with --runs-dir"
  [[ -w $job_dir ]] || job_die 72 "cannot write into the run directory $job_dir: choose another place with --runs-dir"
  rm -f "$job_dir/cancelled"
  job_begin_attempt
  job_keep "$job_parent"
}

job_begin_attempt() { # the next one, with logs of its own
  rm -f "$job_dir/status.json"
  job_saved_before=$(cat "$job_dir/saved-step" 2> /dev/null) || true
  job_attempt=1
  while [[ -e $job_dir/attempt-$job_attempt ]]; do job_attempt=$((job_attempt + 1)); done
  mkdir "$job_dir/attempt-$job_attempt" || job_die 72 "cannot make the directory $job_dir/attempt-$job_attempt"
  job_logs=$job_dir/attempt-$job_attempt job_opened=yes
  : > "$job_logs/control"
  ((job_signals == 0)) || job_control save "$job_last_signal"
  job_note began "$job_id"
  [[ -z ${job_output:-} ]] || job_note output "$job_output"
}

job_keep() { # DIRECTORY: store the script in it; submitted from there, it continues the job
  if [[ ! -f $1/job.sh || -z ${job_array_id:-} ]]; then  # tasks of an array may start at the same time
    # It may contain secrets.
    [[ ! -f $job_script || $job_script -ef $1/job.sh ]] || (umask 077; job_replace "$1/job.sh" cat "$job_script"; chmod u+x "$1/job.sh")
    [[ ! -f ${job_runtime:-} || $job_runtime -ef $1/${job_runtime##*/} ]] ||
      job_replace "$1/${job_runtime##*/}" cat "$job_runtime"
    job_replace "$1/submitted-from" printf '%s\n' "$job_submit_dir"
  fi
  local id=${job_array_id:-$job_id}
  [[ $(cat "$1/job-id" 2> /dev/null) == "$id;"* ]] ||  # with the cluster, which the job does not know
    job_replace "$1/job-id" printf '%s\n' "$id"
}

job_replace() { # FILE COMMAND...: write the output of the command atomically
  "${@:2}" > "$job_logs/new" && mv "$job_logs/new" "$1"
}
