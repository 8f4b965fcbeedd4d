#!/usr/bin/env bash
# site_pbs_host.sh ROOT NAME - PID 1 of a machine with an OpenPBS or a Torque of its own (NAME is openpbs or torque), on which
# tests/support/site_pbs_lab.py and department_pbs.py give the nodes other shapes. It runs in namespaces (mounts, network,
# host name, IPC, PIDs): nothing else sees it.
set -euo pipefail

root=$1 name=$2
declare -A var=([openpbs]=/opt/pbs/var [torque]=/var/spool/torque-lab.d)
export OPENPBS_LAB=$root/lab TORQUE_LAB=$root/lab TORQUE_GPUS=0
mkdir -p "$root"/{var,netns,lab} /etc/netns "${var[$name]}"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns /run/root /run/scripts
[[ $name != openpbs ]] || install -d -o postgres -g postgres /run/postgresql
mount --bind "$root" /run/root
mount --bind "${BASH_SOURCE[0]%/*}" /run/scripts  # they may be in /tmp
mount -t tmpfs -o mode=1777 tmpfs /tmp  # the sockets of the data service
mount -t tmpfs -o mode=1777 tmpfs /var/tmp  # the socket of the qsub that stays for a minute for the user's next one
mkdir -p "$root"
mount --bind /run/root "$root"
mount --bind "$root/netns" /etc/netns
mount --bind "$root/var" "${var[$name]}"
ip link set lo up
"/run/scripts/$name.sh" up >"$root/up.log" 2>&1
touch "$root/ready"
sleep infinity &
wait
