#!/usr/bin/env bash
# minicluster.sh - a Slurm cluster of three nodes on one Debian machine, for the tests.
#
#   minicluster.sh install              install the Debian packages that it is made of, or make MINICLUSTER_SYSTEM
#   minicluster.sh up                   bring the cluster up; nothing to do where it is up already
#   minicluster.sh open                 let users of other machines in: bring login1, login2, gate and laptop up, too
#   minicluster.sh status               list the hosts; exit status 0 when all of them work
#   minicluster.sh exec HOST COMMAND... run COMMAND on HOST in the current directory and environment
#   minicluster.sh kill HOST            take the power of HOST away
#   minicluster.sh revive HOST          give it back to a node
#   minicluster.sh down                 take the cluster down
#
# HOST is head (where jobs are submitted) or node1, node2, node3. Each is a set of namespaces with a host name,
# an IP address, munged, sshd, and slurmctld or slurmd; they share the machine's files. Nodes have 8 cores,
# 4 GPUs and 8 NPUs that are not there. Homes of ordinary users are in /run/home, the folder users of the cluster. "open" adds the
# login nodes login1 and login2, from which jobs are submitted, gate, which has a network and sshd only, and laptop, whose user
# reaches login1, login2 and gate by their addresses, but not head. The laptop does not see the files of the others, and they do
# not see its folder, laptop in that of the cluster. Nothing of it is visible from the machine's network, and the
# machine's /etc, /run and /root are left alone: a copy of /etc with the configuration is mounted over it.
#
# Settings, from the environment:
#   MINICLUSTER_ROOT   the cluster's directory; clusters with different directories do not disturb each other
#   MINICLUSTER_LEASE  a file: the cluster goes down by itself when nobody holds a lock (flock) on it any more
#   MINICLUSTER_SYSTEM a folder with the system of Debian 13, whose programs the hosts run instead of the machine's
#   MINICLUSTER_SHARED more files and folders of the machine that its hosts see, separated by colons
#   MINICLUSTER_ACCOUNTING
#                      if not empty: slurmdbd keeps the jobs, and slurmctld forgets them two seconds after their ends
#   MINICLUSTER_IPV6   if not empty: the hosts have IPv6 addresses only, not even 127.0.0.1
set -euo pipefail

here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
root=${MINICLUSTER_ROOT:-${TMPDIR:-/tmp}/jobgen-minicluster}
lease=${MINICLUSTER_LEASE:-}
system=${MINICLUSTER_SYSTEM:-}

nodes=(node1 node2 node3)
hosts=(head "${nodes[@]}")
guests=(login1 login2 gate laptop) # of "open"
network=10.213.77. network_options=(/24)
[[ -z ${MINICLUSTER_IPV6:-} ]] || network=fd13:77:: network_options=(/64 nodad)
declare -A address=([head]=${network}1 [node1]=${network}11 [node2]=${network}12 [node3]=${network}13
    [login1]=${network}21 [login2]=${network}22 [gate]=${network}31 [laptop]=${network}41)
packages=(environment-modules iproute2 munge openmpi-bin openssh-client openssh-server pdsh slurm-client slurm-wlm-basic-plugins
    slurmctld slurmd util-linux)
accounting_packages=(mariadb-server-core slurmdbd) # of the machine
system_packages=(procps psmisc python3)                   # of MINICLUSTER_SYSTEM
namespaces=(--mount --net --uts --ipc --pid)
system_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
patience=80 # seconds: several clusters start at the same time

die() {
    echo "minicluster: $*" >&2
    exit 1
}

# ------------------------------------------------------------------------------------------ configuration

fill_in() { # TEMPLATE
    sed -e "s|@ROOT@|$root|g" -e "s|10\\.213\\.77\\.|$network|g" "$here/etc/$1"
}

write_configuration() {
    rm -rf "${root:?}"/{db,dev,etc,home,laptop,log,run,ssh,state,users}
    mkdir -p "$root"/{dev,home,laptop,log/jobs,run,ssh,state,users}
    # A copy of the whole folder: a file that is mounted over one of it goes when the machine replaces that one.
    cp -a "$system/etc" "$root/etc"
    rm -rf "$root/etc/slurm"
    mkdir -p "$root"/etc/{slurm,ssh}
    write_slurm_configuration
    write_ssh_configuration
    fill_in hosts >"$root/etc/hosts"
    [[ $network != *:* ]] || write_ipv6
    sed -i 's/^hosts:.*/hosts: files/' "$root/etc/nsswitch.conf"
    # A home of root's own, so that no dot file of the machine's user takes part in a job.
    sed -i "s|^root:.*|root:x:0:0:root:$root/home:/bin/bash|" "$root/etc/passwd"
    (umask 077 && head -c 128 /dev/urandom >"$root/etc/munge.key")
}

write_slurm_configuration() {
    local i
    for i in {0..3}; do mknod -m 666 "$root/dev/gpu$i" c 1 3; done
    for i in {0..7}; do mknod -m 666 "$root/dev/npu$i" c 1 3; done
    fill_in gres.conf.in >"$root/etc/slurm/gres.conf"
    fill_in slurm.conf.in >"$root/etc/slurm/slurm.conf"
    [[ -z ${MINICLUSTER_ACCOUNTING:-} ]] || write_accounting
    # Slurm from 23.11 on otherwise writes to /sys/fs/cgroup; 22.05 does not know the word.
    [[ -z $system ]] || echo CgroupPlugin=disabled >"$root/etc/slurm/cgroup.conf"
}

write_ipv6() { # Slurm reads a colon before a number as that of a port: /etc/hosts has the addresses
    sed -i 's/ NodeAddr=[^ ]*//; s/^\(SlurmctldHost=head\).*/\1/' "$root/etc/slurm/slurm.conf"
    echo 'CommunicationParameters=EnableIPv6,DisableIPv4' >>"$root/etc/slurm/slurm.conf"
    sed -i 's/^127.0.0.1/::1/' "$root/etc/hosts"
}

write_accounting() {
    sed -i 's/^MinJobAge=.*/MinJobAge=2/' "$root/etc/slurm/slurm.conf"
    cat >>"$root/etc/slurm/slurm.conf" <<END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=head
AccountingStorageEnforce=associations,limits,qos
END
}

write_ssh_configuration() {
    ssh-keygen -q -t ed25519 -N '' -C minicluster -f "$root/ssh/user_key"
    ssh-keygen -q -t ed25519 -N '' -C minicluster -f "$root/ssh/host_key"
    cp "$root/ssh/user_key.pub" "$root/etc/ssh/authorized_keys"
    echo "head,node*,login*,gate,$network* $(cut -d' ' -f1,2 "$root/ssh/host_key.pub")" >"$root/ssh/known_hosts"
    fill_in ssh_config.in >"$root/etc/ssh/ssh_config"
    fill_in sshd_config.in >"$root/etc/sshd_config"
}

# ---------------------------------------------------------------------------------------------- processes
# A PID may be used again by a stranger, so it is recorded with the time at which its process started.

start_time() { # PID; fails when there is no such process, or only its zombie
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra stat <<<"${stat##*) }" # the name in front may hold blanks
    [[ ${stat[0]} != [ZX] ]] && echo "${stat[19]}"
}

record() { # NAME PID
    local started
    started=$(start_time "$2") || die "$1 died at once: $(cat "$root/log/$1.log")"
    echo "$2 $started" >"$root/run/$1.pid"
}

pid_of() { # NAME; fails when it does not live
    local pid started
    read -r pid started 2>/dev/null <"$root/run/$1.pid" || return 1
    [[ $(start_time "$pid") == "$started" ]] && echo "$pid"
}

kill_process() { # NAME
    local pid
    pid=$(pid_of "$1") || return 0
    kill -KILL "$pid"
    while pid_of "$1" >/dev/null; do sleep 0.02; done
}

# ---------------------------------------------------------------------------------------------- the hosts

start_host() { # HOST
    local parent pid='' enter=() init=(host_init.sh "$root" "$1" "${address[$1]}")
    [[ $1 != laptop ]] || init=(laptop_init.sh "$root" "${address[$1]}" "${MINICLUSTER_SHARED:-}")
    [[ -z $system || $1 == laptop ]] || enter=("$BASH" "$here/enter_system.sh" "$system" "$root:$here:${MINICLUSTER_SHARED:-}")
    setsid env -i PATH="$system_path" HOME="$root/home" LANG=C.UTF-8 \
        unshare "${namespaces[@]}" --fork --kill-child --mount-proc \
        ${enter[@]+"${enter[@]}"} /bin/bash "$here/${init[0]}" "${init[@]:1}" \
        </dev/null >"$root/log/$1.log" 2>&1 9>&- &
    parent=$!
    # unshare's only child is PID 1 of the host.
    until [[ -n $pid ]]; do
        start_time "$parent" >/dev/null || die "cannot make namespaces: $(cat "$root/log/$1.log")"
        read -r pid 2>/dev/null <"/proc/$parent/task/$parent/children" || true # has no newline
        sleep 0.01
    done
    record "$1" "$pid"
}

connect_hosts() { # a bridge in the head, and a cable from each node to it
    local head node
    head=$(pid_of head)
    nsenter -t "$head" -n ip link add br0 type bridge
    nsenter -t "$head" -n ip address add "${address[head]}${network_options[0]}" dev br0 "${network_options[@]:1}"
    nsenter -t "$head" -n ip link set br0 up
    for node in "${nodes[@]}"; do connect "$node"; done
    : >"$root/run/network-is-up"
}

connect() { # NODE
    local head pid
    head=$(pid_of head)
    pid=$(pid_of "$1")
    nsenter -t "$head" -n ip link add "to-$1" type veth peer name eth0 netns "$pid"
    nsenter -t "$head" -n ip link set "to-$1" master br0 up
    nsenter -t "$pid" -n ip address add "${address[$1]}${network_options[0]}" dev eth0 "${network_options[@]:1}"
    nsenter -t "$pid" -n ip link set eth0 up
}

inside() { # HOST COMMAND...
    local pid
    pid=$(pid_of "$1") || die "$1 is not up"
    nsenter -t "$pid" "${namespaces[@]}" -- "${@:2}"
}

all_hosts_work() {
    local host ready
    for host in "${hosts[@]}"; do
        pid_of "$host" >/dev/null || return 1
        inside head bash -c "exec 3<>/dev/tcp/$host/22" 2>/dev/null || return 1
    done
    ready=$(inside head sinfo --noheader --Node --partition=gpu --states=idle,alloc,mix,comp --format=%N 2>/dev/null)
    [[ $(wc -w <<<"$ready") -eq ${#nodes[@]} ]]
}

stop_everything() {
    local host
    # The watcher of the lease becomes "down" itself.
    [[ $(pid_of lease) == "$$" ]] || kill_process lease
    for host in "${hosts[@]}" "${guests[@]}"; do kill_process "$host"; done
    rm -rf "${root:?}/run"
}

# Waits until the lock on the lease can be had, that is, until the last holder has released it or died.
watch_lease() {
    # shellcheck disable=SC2016 # the inner shell expands it
    setsid bash -c 'flock "$1" true && exec env MINICLUSTER_ROOT="$2" "$3" down' \
        bash "$lease" "$root" "$here/minicluster.sh" </dev/null >/dev/null 2>&1 9>&- &
    record lease "$!"
}

# ---------------------------------------------------------------------------------------------- commands

check_settings() {
    [[ $system =~ ^(/[A-Za-z0-9/._+-]+)?$ ]] || die "MINICLUSTER_SYSTEM must be an absolute path of plain characters: '$system'"
    [[ $root =~ ^/[A-Za-z0-9/._+-]+$ ]] || die "MINICLUSTER_ROOT must be an absolute path of plain characters: '$root'"
}

lock() {
    mkdir -p "$root"
    exec 9>"$root/lock"
    flock 9
}

command_install() {
    if [[ -n $system ]]; then install_system; else install_packages; fi
}

install_packages() {
    local package missing=()
    for package in "${packages[@]}" "${accounting_packages[@]}"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    [[ $EUID -eq 0 ]] || die "not root, and not installed: ${missing[*]}"
    # Fresh containers have no package lists.
    apt-cache show "${missing[@]}" >/dev/null 2>&1 || apt-get update -q
    # RUNLEVEL keeps the packages from starting their services.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "${missing[@]}"
}

install_system() { # it appears when it is complete
    local new=$system.new mirror wanted="${packages[*]} ${system_packages[*]}"
    [[ $(cat "$system/packages" 2>/dev/null) != "$wanted" ]] || return 0
    [[ ! -e $system || -e $system/packages ]] || die "$system is in the way"
    [[ $EUID -eq 0 ]] || die "only root can make $system"
    mkdir -p "${system%/*}"
    exec 9>"$system.lock"
    flock 9
    [[ $(cat "$system/packages" 2>/dev/null) != "$wanted" ]] || return 0
    rm -rf "${new:?}"
    # shellcheck disable=SC2016  # apt's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1) # that of this machine
    debootstrap --variant=minbase trixie "$new" "$mirror" >"$system.log" ||
        die "debootstrap cannot make $system: $(tail -n 1 "$system.log")"
    printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d" # no package starts its services
    chmod 755 "$new/usr/sbin/policy-rc.d"
    DEBIAN_FRONTEND=noninteractive chroot "$new" apt-get install -q -y --no-install-recommends \
        "${packages[@]}" "${system_packages[@]}" >>"$system.log" 2>&1 || die "apt-get fails in $new: see $system.log"
    rm -rf "$new"/var/cache/apt/archives/*.deb "$new"/var/lib/apt/lists/*
    echo "$wanted" >"$new/packages"
    rm -rf "$system"
    mv "$new" "$system"
}

command_up() {
    local host program begin=$SECONDS
    [[ $EUID -eq 0 ]] || die "only root can make namespaces and devices"
    for program in unshare nsenter ip ssh-keygen; do
        PATH=$PATH:$system_path command -v "$program" >/dev/null || die "$program is missing: run '$0 install'"
    done
    for program in munged slurmctld slurmd sshd; do
        [[ -x $system/usr/sbin/$program ]] || die "$program is missing: run '$0 install'"
    done
    lock
    if all_hosts_work 2>/dev/null; then return; fi
    stop_everything
    write_configuration
    for host in "${hosts[@]}"; do start_host "$host"; done
    connect_hosts
    until all_hosts_work; do
        if ((SECONDS - begin > patience)); then
            tail -n 20 "$root"/log/*.log >&2
            stop_everything
            die "not up after $patience seconds; the logs are in $root/log"
        fi
        sleep 0.05
    done
    [[ -z $lease ]] || watch_lease
}

command_open() {
    local host begin=$SECONDS
    [[ -z ${MINICLUSTER_IPV6:-} ]] || die "open: the laptop has IPv4 only"
    lock
    all_hosts_work 2>/dev/null || die "open: the cluster is not up"
    if guests_work; then return; fi
    for host in "${guests[@]}"; do
        kill_process "$host"
        add_host "$host"
    done
    until guests_work; do
        ((SECONDS - begin < patience)) || die "open: not up after $patience seconds; the logs are in $root/log"
        sleep 0.05
    done
}

guests_work() {
    local host
    pid_of laptop >/dev/null && inside laptop test -e /run/is-ready || return 1
    for host in "${guests[@]}"; do
        [[ $host == laptop ]] || inside laptop bash -c "exec 3<>/dev/tcp/${address[$host]}/22" 2>/dev/null || return 1
    done
}

command_down() {
    [[ -d $root ]] || return 0
    lock
    stop_everything
}

command_status() {
    local host
    for host in "${hosts[@]}"; do
        echo "$host ${address[$host]} $(pid_of "$host" || echo down)"
    done
    all_hosts_work 2>/dev/null
}

command_exec() { # HOST COMMAND...
    (($# >= 2)) || die "exec: HOST and COMMAND are needed"
    local pid
    pid=$(pid_of "$1") || die "$1 is not up"
    # nsenter leaves the directory behind when it changes the mounts. The command dies with nsenter.
    exec nsenter -t "$pid" "${namespaces[@]}" --wdns="$PWD" -- setpriv --pdeathsig KILL "${@:2}"
}

command_kill() { # HOST
    [[ -n ${address[${1:-none}]:-} ]] || die "kill: no such host: '${1:-}'"
    kill_process "$1"
}

add_host() { # HOST, to the network that is up
    # The name is free again when the kernel has removed the network of the dead host.
    while inside head ip link show "to-$1" >/dev/null 2>&1; do sleep 0.05; done
    rm -f "$root/run/network-is-up" # the host waits for it
    start_host "$1"
    connect "$1"
    : >"$root/run/network-is-up"
}

command_revive() { # NODE
    local host
    lock
    add_host "$1"
    for host in "${hosts[@]}"; do inside "$host" ip neighbour flush all; done # its card is another one now
}

check_settings
case ${1:-} in
    install | up | open | down | status | exec | kill | revive) "command_$1" "${@:2}" ;;
    *)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
