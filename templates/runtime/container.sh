# Test of the container before anything is started in it.

job_inside() { bash "$job_dir/container.sh" "$@"; }

job_try_container() {
  [[ $PWD$job_dir != *[:,]* ]] || job_die 72 "a container cannot mount $PWD or $job_dir: use directories without colons and commas"
  (umask "${job_run_dir_umask:-077}"; job_file_container > "$job_dir/container.sh"; umask 077; job_save_functions > "$job_dir/functions.sh")
  job_inside true || job_die 71 "cannot start the container $job_container_runtime with the image $job_container_image: see its message above"
}

# These replace the tests of the host:

job_need_inside() { # COMMAND...
  local name
  # shellcheck disable=SC2016  # expanded in the container
  for name; do
    job_inside sh -c 'command -v "$0" > /dev/null' "$name" || job_die 71 "cannot find $name in the container: use an --image that has it"
  done
}

job_need_training() {
  job_inside python3 -c 'import jobgen.train' || job_die 71 "python3 in the container has no jobgen.train: pip install '.[train]' there, in a checkout of jobgen"
}

job_need_file() { job_inside test -f "$1" || job_die 71 "there is no $1 in the container, in $PWD: --bind its directory"; }

job_need_program() {
  # shellcheck disable=SC2016  # expanded in the container
  job_inside sh -c 'command -v "$0" > /dev/null' "$1" || job_die 71 "cannot run $1 in the container, in $PWD"
}
