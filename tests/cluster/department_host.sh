#!/usr/bin/env bash
# department_host.sh ROOT - PID 1 of the host "head", on which tests/support/department_lab.py starts the Slurm of one
# department after the other: munged, a database, and a copy of /etc with the user of the jobs. It runs in namespaces
# (mounts, network, host name, IPC, PIDs).
set -euo pipefail

# shellcheck source=tests/cluster/accounting.sh
source "${BASH_SOURCE[0]%/*}/accounting.sh"

root=$1
mkdir -p "$root"/{log,home}
cp -a /etc "$root/etc"
rm -rf "$root/etc/slurm"
mkdir -p "$root/etc/slurm"
printf '127.0.0.1 localhost\n10.213.81.1 head\n' >"$root/etc/hosts"
sed -i 's/^hosts:.*/hosts: files/' "$root/etc/nsswitch.conf"
sed -i '/^ada:/d' "$root"/etc/{passwd,group}
echo "ada:x:2101:2101:Ada:/home/ada:/bin/bash" >>"$root/etc/passwd"
echo 'ada:x:2101:' >>"$root/etc/group"
chown 2101:2101 "$root/home"
(umask 077 && head -c 128 /dev/urandom >"$root/etc/munge.key")

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/munge /run/slurm /run/dev
# Slurm removes GPUs without files; these are clones of /dev/null.
for number in {0..15}; do
    for name in nvidia davinci; do mknod -m 666 "/run/dev/$name$number" c 1 3; done
done
mount --bind "$root/etc" /etc
mount -t tmpfs -o mode=755 tmpfs /home # other users cannot enter the folders above $root
mkdir /home/ada
mount --bind "$root/home" /home/ada
hostname head
ip link set lo up
# Names are not resolved where no interface but lo has an address.
ip link add eth0 type bridge
ip address add 10.213.81.1/24 dev eth0
ip link set eth0 up

munged --foreground --key-file="$root/etc/munge.key" --seed-file=/run/munge/seed --socket=/run/munge/munge.socket.2 \
    --pid-file=/run/munge/munged.pid --log-file="$root/log/munged.log" &
until [[ -S /run/munge/munge.socket.2 ]]; do sleep 0.05; done
[[ ! -e /usr/sbin/mariadbd ]] || start_database "$root" # only the machine has it
touch "$root/ready"
wait
