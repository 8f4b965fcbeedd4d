#!/bin/bash
# node.sh [preflight]: started once on each node; it starts the launcher there.
set -euo pipefail
if [[ -n ${JOBGEN_HOST:-} && $JOBGEN_HOST != "$JOBGEN_HERE" && -z ${JOBGEN_PARENT:-} ]]; then
  # In a separate session: a scheduler that ends the job signals the session of its task, and the ranks need
  # time to save. The watcher of the node ends them when this process has ended.
  export JOBGEN_PARENT=$$
  setsid bash "${BASH_SOURCE[0]}" "$@" < /dev/null &
  wait "$!"
  exit
fi
# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/functions.sh"
export NODE_RANK=${NODE_RANK:-${SLURM_NODEID:-0}}
! declare -F job_secrets > /dev/null || job_secrets
if [[ -n ${JOBGEN_VISIBLE:-} ]]; then
  export JOBGEN_DEVICES=${!JOBGEN_VISIBLE:-}
fi
if [[ -n ${JOBGEN_ARRIVAL:-} ]]; then
  (umask "${JOBGEN_UMASK:-077}"; : >> "$JOBGEN_ARRIVAL")
fi
node "$@"
