# The next attempt on Slurm: a requeue of the job, without its bad hosts.

job_again_word=requeued

job_submit_again() {
  local bad
  if [[ -z $job_stop_reason && $(job_field JobState) == CANCELLED* ]]; then job_stop_reason='it was cancelled'; fi
  [[ -z $job_stop_reason ]] || return 1
  bad=$({ job_field ExcNodeList | grep -vxF '(null)'; cut -f 1 "$job_dir/bad-hosts"; } 2> /dev/null | sort -u | paste -sd ,) || true
  trap '' TERM  # a requeue soon ends this script and its processes
  job_stop_reason='Slurm refused'
  scontrol requeue "$job_id" || return 1
  [[ ! -s $job_dir/bad-hosts ]] || scontrol update JobId="$job_id" ExcNodeList="$bad" || job_say "scontrol cannot exclude $bad from the next attempt"
  job_next=requeued
}
