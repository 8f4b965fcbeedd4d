# Another host by jobgen-remote.

job_reach_host() { bash "$JOBGEN_RUN_DIR/remote.sh" "$@"; }  # HOST COMMAND
