# Completion of jobgen in bash, from 4.2 on; printed by: jobgen completion bash
_jobgen() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default ;;
      :directories) compopt -o dirnames ;;
      *=) compopt -o nospace; COMPREPLY+=("$line") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <(_JOBGEN_COMPLETE=bash "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -o nosort -F _jobgen jobgen 2> /dev/null || complete -F _jobgen jobgen # bash before 4.4 sorts
