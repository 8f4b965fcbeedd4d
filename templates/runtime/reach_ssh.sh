# Another host by ssh.

job_reach_host() { ssh -o BatchMode=yes "$1" "$2"; }  # HOST COMMAND
