#!/usr/bin/env bash
# site_host.sh ROOT - PID 1 of the host "head", on which tests/support/site_slurm.py starts the Slurm of one site after
# the other: munged, and slurmdbd with a database of its own. It runs in namespaces (mounts, network, host name, PIDs).
set -euo pipefail

# shellcheck source=tests/cluster/accounting.sh
source "${BASH_SOURCE[0]%/*}/accounting.sh"

root=$1
mkdir -p "$root"/{etc,log}
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/munge /run/slurm
printf '127.0.0.1 localhost\n10.213.79.1 head\n' >"$root/etc/hosts"
sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf >"$root/etc/nsswitch.conf"
for file in hosts nsswitch.conf; do mount --bind "$root/etc/$file" "/etc/$file"; done
mkdir -p "$root/etc/slurm"
mount --bind "$root/etc/slurm" /etc/slurm
hostname head
ip link set lo up
# Names are not resolved where no interface but lo has an address.
ip link add eth0 type bridge
ip address add 10.213.79.1/24 dev eth0
ip link set eth0 up

(umask 077 && head -c 128 /dev/urandom >"$root/etc/munge.key")
munged --foreground --key-file="$root/etc/munge.key" --seed-file=/run/munge/seed --socket=/run/munge/munge.socket.2 \
    --pid-file=/run/munge/munged.pid --log-file="$root/log/munged.log" &

until [[ -S /run/munge/munge.socket.2 ]]; do sleep 0.05; done
start_accounting "$root"
wait
