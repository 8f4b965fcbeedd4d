#!/usr/bin/env bash
# install.sh [packages] [slurm-new] - as root, what tests need; without a word, all of it:
#
#   packages   the Debian packages of the test clusters, of a laptop, shells, containers and a browser
#   slurm-new  Slurm 24.11, in a system of its own: a minute, the first time
set -euo pipefail

clusters=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/cluster

install_packages() {
    "$clusters/minicluster.sh" install
    [[ ! -e /opt/pbs/sbin/pbs_mom ]] || "$clusters/openpbs.sh" install
    [[ ! -e /opt/torque/sbin/pbs_mom ]] || "$clusters/torque.sh" install
    local missing=() name browser=chromium-headless-shell # Ubuntu has none: there the tests that open it are skipped
    for name in busybox debootstrap fish iptables ksh podman rsync runc tcsh zsh; do command -v "$name" >/dev/null || missing+=("$name"); done
    if ((${#missing[@]})); then
        apt-cache show "${missing[@]}" >/dev/null 2>&1 || apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
    fi
    if ! command -v "$browser" >/dev/null; then
        apt-cache show "$browser" >/dev/null 2>&1 || apt-get update -q
        ! apt-cache show "$browser" >/dev/null 2>&1 ||
            DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$browser"
    fi
}

install_slurm-new() { # debootstrap is of the packages
    local system=${JOBGEN_SLURM_24_11:-/var/cache/jobgen/slurm-24.11}
    MINICLUSTER_SYSTEM=$system "$clusters/minicluster.sh" install ||
        echo "install.sh: there is no Slurm 24.11: its tests are skipped" >&2
}

(($#)) || set -- packages slurm-new
for part in "$@"; do "install_$part"; done
