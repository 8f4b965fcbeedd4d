#!/bin/bash
# node.sh [preflight]: started once on each node; it starts the launcher there.
set -euo pipefail
# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/functions.sh"
export NODE_RANK=${NODE_RANK:-${SLURM_NODEID:-0}}
if [[ -n ${JOBGEN_VISIBLE:-} ]]; then
  export JOBGEN_DEVICES=${!JOBGEN_VISIBLE:-}
fi
if [[ -n ${JOBGEN_ARRIVAL:-} ]]; then
  : >> "$JOBGEN_ARRIVAL"
fi
node "$@"
