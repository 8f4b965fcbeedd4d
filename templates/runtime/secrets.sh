# Variables whose values the script does not contain: they are in the file environment of the run directory,
# which only the user can read, a NUL after each.

job_need_secrets() { # jobgen submit has written them into the file; by hand, they come with the job
  local name
  job_secrets
  for name in "${job_secret_names[@]}"; do
    [[ -n ${!name+set} ]] || job_die 71 \
      "$name is not set: jobgen submit takes it from your environment; without it, export $name and use $(job_submit_command)${job_pass_option:+ $job_pass_option $name}"
  done
}

job_keep_secrets() { # for the next attempts of a job that was submitted by hand
  job_secret_file=$job_parent/environment
  job_need_secrets
  [[ -e $job_secret_file ]] || (umask 077; job_replace "$job_secret_file" job_print_secrets)
}

job_print_secrets() {
  local name
  for name in "${job_secret_names[@]}"; do printf '%s=%s\0' "$name" "${!name}"; done
}

job_secrets() { # export them; on the nodes, too
  local pair
  export "${job_secret_names[@]}"
  [[ -r ${job_secret_file:-} ]] || return 0
  while IFS= read -rd '' pair; do
    [[ ! $pair =~ ^[A-Za-z_][A-Za-z0-9_]*= || " ${job_secret_names[*]} " != *" ${pair%%=*} "* ]] || export "${pair?}"
  done < "$job_secret_file"
}
