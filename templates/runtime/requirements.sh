# Commands, files and modules that must exist before anything is started.

job_need() { # COMMAND...
  local name
  for name; do command -v "$name" > /dev/null || job_die 71 "cannot find $name on PATH: add what has it with --venv, --conda or --module"; done
}

job_need_training() {
  python3 -c 'import jobgen.train' || job_die 71 "$(command -v python3) has no jobgen.train: pip install '.[train]' in a checkout of jobgen"
}

job_need_file() { [[ -f $1 ]] || job_die 71 "there is no $1 in $PWD: submit from its directory, or use --workdir"; }

job_need_program() { command -v "$1" > /dev/null || job_die 71 "cannot run $1 in $PWD: write its path, or add what has it with --venv, --conda or --module"; }
