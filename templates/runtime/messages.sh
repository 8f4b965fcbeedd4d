# Messages and notes.
#
# Exit statuses of this script; any other status is that of a rank or of the launcher:
# 70 the allocation or this script is not as expected   71 a file, a module or a command is missing
# 72 a directory cannot be used                         73 the launcher exited 0, success unverified
# 74 the preflight found a fault                        75 not finished, the next attempt can continue

job_say() { printf 'jobgen: %s\n' "$*" >&2 || true; }  # the terminal may be closed

job_die() { # STATUS MESSAGE
  job_say "$2"
  job_note fault "${2//$'\n'/ }"  # for jobgen status
  exit "$1"
}

job_note() { # WHAT VALUE: into the events of the attempt, with the time
  # No $(date): bash 5.2 cannot read one while a second signal waits for its trap.
  { [[ -z ${job_logs:-} ]] || printf '%(%s)T %s %s\n' -1 "$1" "$2" >> "$job_logs/events"; } 2> /dev/null || true
}

job_quote() { # WORD...: print them as words of a shell; ${x@Q} is new in bash 4.4
  local word text='' quote="'\\''"
  for word; do
    if [[ $word == *[[:cntrl:]]* ]]; then printf -v word '%q' "$word"; else word="'${word//\'/$quote}'"; fi
    text+=" $word"
  done
  printf '%s' "${text# }"
}

job_defined() { declare -F "$1" > /dev/null; }  # NAME

job_optional() { ! job_defined "$1" || "$@"; }  # FUNCTION [ARG]...: call a function if this job has it

job_body() { declare -f "$1" | sed '1,2d;$d'; }  # FUNCTION: the commands in it
