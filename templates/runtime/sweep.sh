# Sweeps: the options of this task, by its index.

job_sweep_begins() { # POINTS
  job_point=() job_point_json=''
  ((job_index < $1)) || job_die 70 "the sweep has no point $job_index, only 0 to $(($1 - 1))"
}

job_sweep_value() { # KEY text|number|switch OPTION VALUE
  local name=${1//-/_}
  export "JOBGEN_SWEEP_$name=$4"
  case $2 in
    switch) [[ $4 == false ]] || job_point+=("$3") ;;
    *) if [[ $4 == -* ]]; then job_point+=("$3=$4"); else job_point+=("$3" "$4"); fi ;;
  esac
  if [[ $2 == text ]]; then set -- "$1" "$2" "$3" "$(job_json "$4")"; fi
  job_point_json+="${job_point_json:+,}"$'\n'"  \"$1\": $4"
}

job_sweep_ends() {
  job_say "point $job_index: $(job_quote ${job_point[@]+"${job_point[@]}"})"
  printf '{%s\n}\n' "$job_point_json" > "$job_dir/sweep.json"
}

job_json() { # TEXT, in the quotes of JSON
  local text=$1 back=\\ quote='"' code character
  text=${text//"$back"/"$back$back"}
  text=${text//"$quote"/"$back$quote"}
  for code in {1..31}; do
    printf -v code '%02x' "$code"
    printf -v character '%b' "\\x$code"
    text=${text//"$character"/"${back}u00$code"}
  done
  printf '%s' "$quote$text$quote"
}
