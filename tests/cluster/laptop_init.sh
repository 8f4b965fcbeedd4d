#!/usr/bin/env bash
# laptop_init.sh ROOT ADDRESS PLACES - PID 1 of the laptop of the cluster; minicluster.sh starts it.
#
# Of the files in /home, /tmp, /var/tmp and ROOT the laptop sees its own folder, ROOT/laptop, the checkout and PLACES (separated by
# colons), at their paths. /home/me is the home of its user, root; who runs a command there mounts a folder at it.
# The laptop loses one packet in twenty to and from LOSSY, a second address of login1. The file ROOT/laptop/loses-packets is there if it can.
set -euo pipefail

root=$1 address=$2
IFS=: read -ra places <<<"$root/laptop:${BASH_SOURCE[0]%/tests/*}:$3"
network=${address%.*}
lossy=$network.29

copy_mount() { # FROM TO: the file or folder FROM, seen at TO
    [[ ! -e $2 ]] || return 0
    mkdir -p "${2%/*}"
    if [[ -d $1 ]]; then mkdir "$2"; else : >"$2"; fi
    mount --rbind "$1" "$2"
}

hide_the_machine() {
    local folder number
    mount -t tmpfs -o mode=755 tmpfs /run
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    for number in "${!places[@]}"; do
        [[ ! -e ${places[number]} ]] || copy_mount "${places[number]}" "/run/places/$number"
    done
    for folder in /home /tmp /var/tmp "$root"; do
        mkdir -p "$folder"
        mount -t tmpfs -o mode=1777 tmpfs "$folder"
    done
    for number in "${!places[@]}"; do
        [[ ! -e /run/places/$number ]] || copy_mount "/run/places/$number" "${places[number]}"
    done
    mkdir /home/me
}

configure() {
    cp -a /etc /run/etc
    sed -i 's|^root:.*|root:x:0:0:root:/home/me:/bin/bash|' /run/etc/passwd
    printf '%s\n' '127.0.0.1 localhost' "$network.21 login1" "$network.22 login2" "$network.31 gate" >/run/etc/hosts
    sed -i 's/^hosts:.*/hosts: files/' /run/etc/nsswitch.conf
    mount --bind /run/etc /etc
    hostname laptop
    ip link set lo up
}

lose_packets() {
    iptables -A INPUT -s "$lossy" -m statistic --mode random --probability 0.05 -j DROP
    iptables -A OUTPUT -d "$lossy" -m statistic --mode random --probability 0.05 -j DROP
}

is_up=$root/run/network-is-up
exec 3<"$root/run" # the folder is hidden in a moment
hide_the_machine
configure
until test -e "/proc/self/fd/3/${is_up##*/}"; do sleep 0.02; done
exec 3<&-
ip route add unreachable "$network.1"
lose_packets && : >"$root/laptop/loses-packets"
: >/run/is-ready
sleep infinity &
wait
