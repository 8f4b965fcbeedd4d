# The handover: what the nodes and ranks read from the run directory.

job_save_environment() { # except variables of this node or this shell
  local job_variable  # with a prefix: a local variable hides that of the user
  printf 'cd %q\n' "$PWD"
  for job_variable in $(compgen -e); do
    [[ " ${job_secret_names[*]-} " != *" $job_variable "* ]] || continue
    case $job_variable in
      SLURM* | PMI* | OMPI_COMM_* | *_VISIBLE_DEVICES | ZE_AFFINITY_MASK | GPU_DEVICE_ORDINAL | TMPDIR | HOSTNAME | HOST | DISPLAY | SSH_* | XDG_*) ;;
      RANK | LOCAL_RANK | WORLD_SIZE | LOCAL_WORLD_SIZE | NODE_RANK | GROUP_RANK | PBS_NODENUM | PBS_TASKNUM | PBS_VNODENUM) ;;
      JOBGEN_HOST | BASH* | SHELLOPTS | SHLVL | PWD | OLDPWD | UID | EUID | PPID | _) ;;
      *) printf 'export %s=%q\n' "$job_variable" "${!job_variable}" ;;
    esac
  done
}

job_save_functions() { # the functions of the job that run on the nodes
  local name
  for name in variables job_secrets rank program node job_escape_environment container; do declare -f "$name" || true; done
  for name in job_secret_names job_secret_file job_accelerator job_point job_value job_cpu_lists job_container_binds job_container_variables job_container_variable_prefix; do
    declare -p "$name" 2> /dev/null || true
  done
}

job_handover() {
  job_hide_secrets
  (umask 077; job_save_environment > "$job_dir/env.sh"; job_save_functions > "$job_dir/functions.sh")
  for job_word in $(compgen -A function job_file_); do
    "$job_word" > "$job_dir/${job_word#job_file_}.sh"
  done
  if [[ -f $job_dir/remote.sh ]]; then  # under the name of a command: mpirun runs it instead of ssh
    cp "$job_dir/remote.sh" "$job_dir/jobgen-remote"
    chmod +x "$job_dir/jobgen-remote"
  fi
  job_make_log_folders
}

job_make_log_folders() {  # of 400 ranks each, which limits their entries
  local last=$(((JOBGEN_WORLD_SIZE - 1) / 400))
  mkdir "$job_logs/nodes" && (cd "$job_logs/nodes" && seq 0 "$last" | xargs mkdir -p)
}
