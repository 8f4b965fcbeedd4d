#!/usr/bin/env bash
# host_init.sh ROOT HOST ADDRESS - PID 1 of one host of the cluster; minicluster.sh starts it.
#
# It runs in namespaces of its own (mounts, network, host name, PIDs): its mounts are seen by this host only,
# and when it dies the kernel kills every process of the host, jobs included.
set -euo pipefail

# shellcheck source=tests/cluster/accounting.sh
source "${BASH_SOURCE[0]%/*}/accounting.sh"

root=$1 host=$2 address=$3

hide_the_machine() {
    mount -t tmpfs -o mode=755 tmpfs /run
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    mkdir /run/sshd /run/munge /run/slurmd /run/lock
    chmod 1777 /run/lock
    mkdir /run/home
    mount --bind "$root/users" /run/home # ordinary users cannot enter the folders above $root
    mount -t tmpfs -o size=4k tmpfs "$root/laptop"
    [[ $host == head || $host == node* ]] || hide_the_tests
    mount --bind "$root/etc" /etc
    hostname "$host"
    ip link set lo up
    [[ $address != *:* ]] || ip address del 127.0.0.1/8 dev lo
}

hide_the_tests() { # where users log in; of /tmp the folder of the cluster stays
    mkdir /run/cluster
    mount --rbind "$root" /run/cluster
    mount -t tmpfs -o mode=1777 tmpfs /tmp
    mkdir -p "$root"
    mount --rbind /run/cluster "$root"
    mount -t tmpfs -o size=4k tmpfs "${BASH_SOURCE[0]%/tests/*}"
}

count_processes_from_afar() { # Open MPI names directories in /tmp, which the hosts share, by nothing but a PID
    echo "$((RANDOM * RANDOM % ($(</proc/sys/kernel/pid_max) / 2)))" >/proc/sys/kernel/ns_last_pid
}

wait_for() { # TEST-OPERATOR FILE
    until test "$1" "$2"; do sleep 0.02; done
}

start_daemons() {
    [[ $host == gate ]] || start_slurm
    local addresses=(-o ListenAddress="$address")
    if [[ $host == login1 ]]; then # at which the laptop loses packets
        ip address add "${address%.*}.29/24" dev eth0
        addresses+=(-o ListenAddress="${address%.*}.29")
    fi
    # sshd insists on its absolute path.
    "$(command -v sshd)" -D -e -f "$root/etc/sshd_config" "${addresses[@]}" &
}

start_slurm() {
    munged --foreground --key-file="$root/etc/munge.key" --seed-file=/run/munge/seed \
        --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/munged.pid \
        --log-file="$root/log/munged.$host.log" &
    wait_for -S /run/munge/munge.socket.2
    if [[ $host == node* ]]; then
        slurmd -D &
    elif [[ $host == head ]]; then
        ! grep -q '^AccountingStorageHost=' /etc/slurm/slurm.conf || make_accounts
        slurmctld -D -i &
    fi
}

make_accounts() { # the account "physics", which also has the QoS "short" of at most an hour; root's own is another one
    start_accounting "$root"
    until sacctmgr -n show qos &>/dev/null; do sleep 0.05; done
    sacctmgr -i >"$root/log/sacctmgr.log" <<END
add cluster minicluster
add qos short MaxWall=60 flags=DenyOnLimit
add account physics
add user root account=physics
modify user root set qos=normal,short
quit
END
}

hide_the_machine
count_processes_from_afar
wait_for -e "$root/run/network-is-up"
start_daemons
# bash reaps the orphans of this host, too. It ends when the last daemon has ended.
wait
