# This machine as the allocation.

job_scheduler() {
  job_id=$(date +%Y%m%d-%H%M%S)-$$ job_number=$$ job_submit_dir=$PWD
}

job_list_hosts() { echo localhost; }

job_find_end() { [[ -z ${job_walltime_seconds:-} ]] || job_ends=$((JOBGEN_START_TIME + job_walltime_seconds)); }

job_submit_command() { echo bash; }
