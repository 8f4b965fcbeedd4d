# Variables with secrets: those that the script names, and those in the environment of the job that look like one.
# Their values are in the file environment of the run directory, which only the user can read, a NUL after each.

[[ -n ${job_secret_names[*]-} ]] || job_secret_names=()

job_need_secrets() { # jobgen submit has written them into the file; by hand, they come with the job
  local name
  job_secrets
  for name in ${job_secret_names[@]+"${job_secret_names[@]}"}; do
    [[ -n ${!name+set} ]] || job_die 71 \
      "$name is not set: jobgen submit takes it from your environment; without it, export $name and use $(job_submit_command)${job_pass_option:+ $job_pass_option $name}"
  done
}

job_keep_secrets() { # for the next attempts of a job that was submitted by hand
  job_secret_file=$job_parent/environment
  job_need_secrets
  [[ -z ${job_secret_names[*]-} || -e $job_secret_file ]] || (umask 077; job_replace "$job_secret_file" job_print_secrets)
  job_recall_secrets
}

job_recall_secrets() { # those of the attempt before that this one has not got from the scheduler
  local pair name
  [[ -r $job_dir/environment ]] || return 0
  while IFS= read -rd '' pair; do
    name=${pair%%=*}
    [[ $pair =~ ^[A-Za-z_][A-Za-z0-9_]*= && -z ${!name+set} ]] || continue
    ! job_looks_secret "$name" "${pair#*=}" || export "${pair?}"
  done < "$job_dir/environment"
}

job_hide_secrets() { # what looks like a secret in this environment is for the file, not for env.sh
  local job_variable
  for job_variable in $(compgen -e); do
    [[ " ${job_secret_names[*]-} " != *" $job_variable "* ]] || continue
    ! job_looks_secret "$job_variable" "${!job_variable}" || job_secret_names+=("$job_variable")
  done
  export JOBGEN_SECRETS="${job_secret_names[*]-}"
  job_secret_file=$job_dir/environment
  [[ -z $JOBGEN_SECRETS ]] || (umask 077; job_replace "$job_secret_file" job_print_secrets)
}

job_looks_secret() { # NAME VALUE: what jobgen/secrets.py masks; more than that does no harm
  local status=1 key='(api|access|private|secret|auth|account|signing|encryption|wandb)[_-]?key'
  local names="(token|secret|password|passwd|passphrase|credential|signature|[_-]pwd|(^|[^a-z-])pass|(db|sql|user|smtp|ssh)pass|$key)s?"
  local forms="hf_|gh[opusr]_|github_pat_|glpat-|sk-[[:alnum:]_-]{20}|xox[a-z]-|aiza|(akia|asia)[a-z0-9]{16}|eyj[[:alnum:]_-]+[.]|dckr_pat_|pypi-|npg_"
  local texts="://[^/@[:space:]]*:[^/[:space:]]+@|://[^/:@[:space:]]{20,}@|bearer [^[:space:]]{8}|authorization:|[?&]sig=|private key-----| login +"
  case $1 in
    JOBGEN_* | PATH | HOME | PWD | OLDPWD | *LIBRARY_PATH | PYTHONPATH | LS_COLORS | SLURM* | PMI* | PBS_*) return 1 ;;
  esac
  shopt -s nocasematch
  ! [[ $1 =~ ($names|[a-z0-9]_(key|pat|auth))$ || $2 =~ (^|[^[:alnum:]])($forms) || $2 =~ $texts || $2 =~ ${names}[\"\']?[=:,\ ] ]] || status=0
  shopt -u nocasematch
  return "$status"
}

job_print_secrets() {
  local job_variable
  for job_variable in "${job_secret_names[@]}"; do printf '%s=%s\0' "$job_variable" "${!job_variable}"; done
}

job_secrets() { # export them; on the nodes, too
  local pair
  [[ -n ${job_secret_names[*]-} ]] || return 0
  export "${job_secret_names[@]}"
  [[ -r ${job_secret_file:-} ]] || return 0
  while IFS= read -rd '' pair; do
    [[ ! $pair =~ ^[A-Za-z_][A-Za-z0-9_]*= || " ${job_secret_names[*]} " != *" ${pair%%=*} "* ]] || export "${pair?}"
  done < "$job_secret_file"
}
