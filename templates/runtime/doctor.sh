# jobgen doctor: the environment of the job, without the job. Errors that would end the job are recorded, and
# the environment of the program is written to a file, with a NUL after each variable.

job_main() {
  job_die() { printf '%s\0' "$2" >> "$JOBGEN_DOCTOR/deaths"; }
  job_end() { :; }
  trap - EXIT TERM INT HUP USR1 USR2 URG PIPE
  job_listen() { :; }
  job_dir=$JOBGEN_DOCTOR
  job_optional overrides
  [[ -z ${job_workdir:-} ]] || cd "$job_workdir" || job_die 72 "cannot enter $job_workdir"
  job_optional job_need_secrets
  environment
  pwd > "$JOBGEN_DOCTOR/directory"
  command -p env -0 > "$JOBGEN_DOCTOR/environment"
}

{ job_arguments=("$@"); job_main; }
