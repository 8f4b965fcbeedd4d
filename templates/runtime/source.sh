# Sourced scripts. Most are not written for set -eu, and they may change more than the environment.

job_source() { # FILE ARGUMENT...
  [[ -f $1 && -r $1 ]] || job_die 71 "cannot read $1, a file to source: it must exist on the compute nodes"
  job_file=$1
  # shellcheck disable=SC2016  # job_eval expands it
  job_eval 'source "$job_file"' "${@:2}"
  ((job_eval_status == 0)) || job_say "warning: $1 returned status $job_eval_status"
}

job_eval() { # CODE: run it, keep the options, functions, traps and directory of this script, and set job_eval_status to its status
  job_declarations=
  job_functions=$(job_part_functions) || true
  job_eval_code "$@"
  [[ $(job_part_functions) == "$job_functions" ]] || {
    unset -f "${job_part[@]}"
    eval "$job_functions"
  }
  # Variables that declare made local to that function are for the whole script. In bash 4.2 declare -g would set the local ones.
  eval "$job_declarations"
}

job_part=(after before container launch node overrides program rank requirements variables)  # which the code may have, too
job_part_functions() { declare -f "${job_part[@]}"; }

job_eval_code() {
  job_here=$PWD job_sourcing=$job_file job_code=$1
  shift  # a sourced script without arguments sees those of its caller
  set +eu +o pipefail
  eval "$job_code"
  job_eval_status=$?
  set -euo pipefail +fkx
  shopt -u failglob
  unset IFS
  while read -r job_word; do  # bash 5 puts "declare -x " before the name
    [[ ! $job_word =~ ^(declare\ -[A-Za-z-]+\ )?([A-Za-z_][A-Za-z0-9_]*)(=|$) ]] ||
      job_declarations+=$(declare -p "${BASH_REMATCH[2]}" | sed '1s/^declare /declare -g /')$'\n'
  done < <(local)
  # Those without a value, which bash 4.3 and 4.4 leave out of that list.
  job_declarations+=$(declare -p | sed -n "s/^declare \(-[aAix-]*\) \([A-Za-z_][A-Za-z0-9_]*\)\(='()'\)\{0,1\}$/declare -g \1 \2 2> \/dev\/null || true/p")$'\n'
  trap job_end EXIT
  job_listen
  job_sourcing=
  [[ $PWD == "$job_here" ]] || cd "$job_here"  # cd - goes where the code left
}
