#!/usr/bin/env bash
# install.sh - as root: the Debian packages that tests need: those of the test clusters, of a laptop, shells, containers and a browser.
set -euo pipefail

clusters=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/cluster
"$clusters/minicluster.sh" install
[[ ! -e /opt/pbs/sbin/pbs_mom ]] || "$clusters/openpbs.sh" install
[[ ! -e /opt/torque/sbin/pbs_mom ]] || "$clusters/torque.sh" install
missing=()
for name in busybox debootstrap fish iptables ksh podman rsync runc tcsh zsh; do command -v "$name" >/dev/null || missing+=("$name"); done
if ((${#missing[@]})); then
    apt-cache show "${missing[@]}" >/dev/null 2>&1 || apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
fi
# Slurm 24.11, in a system of its own: a minute, the first time.
system=${JOBGEN_SLURM_24_11:-/var/cache/jobgen/slurm-24.11}
MINICLUSTER_SYSTEM=$system "$clusters/minicluster.sh" install ||
    echo "install.sh: there is no Slurm 24.11: its tests are skipped" >&2
browser=chromium-headless-shell # Ubuntu has none: there the tests that open it are skipped
if ! command -v "$browser" >/dev/null; then
    apt-cache show "$browser" >/dev/null 2>&1 || apt-get update -q
    ! apt-cache show "$browser" >/dev/null 2>&1 ||
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$browser"
fi
