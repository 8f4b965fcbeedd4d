#compdef jobgen
# Completion of jobgen in zsh; printed by: jobgen completion zsh
_jobgen() {
  local line
  local -a described
  for line in "${(@f)$(_JOBGEN_COMPLETE=zsh ${words[1]} "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
      '') ;;
      :files) _files ;;
      :directories) _files -/ ;;
      *=) compadd -S '' -- "$line" ;;
      *$'\t'*) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      *) compadd -- "$line" ;;
    esac
  done
  (( ! $#described )) || _describe -V jobgen described
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _jobgen "$@"; else compdef _jobgen jobgen; fi
