# colossalai run exports the environment again in a shell, each value in double quotes: escape what the shell would expand.

job_escape_environment() {
  local name value
  for name in $(compgen -e); do
    value=${!name}
    [[ $value == *[\\\"\$\`]* && $value != *$'\n'* ]] || continue  # it leaves out values of several lines
    value=${value//\\/\\\\} value=${value//\"/\\\"} value=${value//\$/\\\$} value=${value//\`/\\\`}
    export "$name=$value"
  done
}
