#!/usr/bin/env bash
# site_host.sh ROOT - PID 1 of the host "head", on which tests/support/site_slurm.py starts the Slurm of one site after
# the other: munged, and slurmdbd with a database of its own. It runs in namespaces (mounts, network, host name, PIDs).
set -euo pipefail

root=$1
mkdir -p "$root"/{etc,log,db}
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/munge /run/mysqld /run/slurm
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

database=(mariadbd --no-defaults --user=root --datadir="$root/db" --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0)
{
    printf '%s;\n' 'create database mysql' 'use mysql'
    cat /usr/share/mysql/mysql_system_tables.sql /usr/share/mysql/mysql_system_tables_data.sql
} | "${database[@]}" --bootstrap 2>"$root/log/bootstrap.log"
"${database[@]}" --skip-networking --skip-grant-tables --socket=/run/mysqld/mysqld.sock --pid-file=/run/mysqld/pid \
    >"$root/log/mariadb.log" 2>&1 &
until [[ -S /run/mysqld/mysqld.sock && -S /run/munge/munge.socket.2 ]]; do sleep 0.05; done

cat >/etc/slurm/slurmdbd.conf <<END
AuthType=auth/munge
DbdHost=head
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
LogFile=$root/log/slurmdbd.log
PidFile=/run/slurmdbd.pid
END
chmod 600 /etc/slurm/slurmdbd.conf
slurmdbd -D &
wait
