# Another host by ssh.

job_reach_host() { # HOST COMMAND, of bash: the login shell may be another one
  local words
  printf -v words '/bin/bash -c %q' "$2"
  ssh -o BatchMode=yes "$1" "${words//#/\\#}"  # begins a comment in csh, also within a word
}
