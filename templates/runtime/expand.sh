# The values that the words of the program name: those of this shell, before the ranks start.

declare -A job_value=()

job_read_program_variables() { # without local variables, which would hide those of the user
  set -- ${job_arguments[@]+"${job_arguments[@]}"}
  for job_word in "${job_program_variables[@]}"; do
    [[ -n ${!job_word+set} ]] || job_die 71 "the program's words contain \$$job_word, which is not set; the script has $# arguments: nothing was launched"
    job_value[$job_word]=${!job_word}
  done
}
