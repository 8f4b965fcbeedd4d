# A static list of hosts, without a scheduler. The script runs on the first one, and starts the others by ssh.

job_scheduler() {
  local first=${job_host_list[0]%:*} address here
  here=" localhost 127.0.0.1 ::1 $(hostname) $(hostname -s) $(hostname -f 2> /dev/null || true) $(hostname -I 2> /dev/null || true) "
  address=$(getent hosts "$first" | awk '!n++ { print $1 }') || true
  [[ $here == *" $first "* || $here == *" ${address:-none} "* ]] ||
    job_die 70 "this host is $(hostname): run this script on $first, the first host of the hostfile"
  job_id=$(date +%Y%m%d-%H%M%S)-$$ job_number=$$ job_submit_dir=$PWD
}

job_list_hosts() { # each host as often as it has slots; an IPv6 address has colons, too
  printf '%s\n' "${job_host_list[@]}" | sed 's/\(.*\):/\1 /' | awk '{ for (i = 0; i < $2; i++) print $1 }'
}

job_find_end() { [[ -z ${job_walltime_seconds:-} ]] || job_ends=$((JOBGEN_START_TIME + job_walltime_seconds)); }

job_submit_command() { echo bash; }
