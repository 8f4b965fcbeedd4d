# The values that the words of the program and its container name: those of this shell, before the ranks start.

declare -A job_value=()

job_read_program_variables() { job_read_values "${job_program_variables[@]}"; }

job_read_values() { # NAME...; without local variables, which would hide those of the user
  job_words=("$@")
  set -- ${job_arguments[@]+"${job_arguments[@]}"}
  for job_word in "${job_words[@]}"; do
    [[ -n ${!job_word+set} ]] || job_die 71 "the words of the job contain \$$job_word, which is not set; the script has $# arguments: nothing was launched"
    job_value[$job_word]=${!job_word}
  done
}
