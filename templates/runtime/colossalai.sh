# colossalai run exports the environment again in a shell, each value in double quotes: escape what the shell would expand.

job_escape_environment() {
  local job_variable job_text
  for job_variable in $(compgen -e); do
    job_text=${!job_variable}
    [[ $job_text == *[\\\"\$\`]* && $job_text != *$'\n'* ]] || continue  # it leaves out values of several lines
    job_text=${job_text//\\/\\\\} job_text=${job_text//\"/\\\"} job_text=${job_text//\$/\\\$} job_text=${job_text//\`/\\\`}
    export "$job_variable=$job_text"
  done
}
