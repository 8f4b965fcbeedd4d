#!/usr/bin/env bash
# enter_system.sh SYSTEM PLACES COMMAND... - run COMMAND in a mount namespace whose / is the folder SYSTEM.
#
# What is not part of a system is the machine's: /dev, /proc, /sys, /tmp, /home, /root, /usr/local and folders of / that
# Debian does not have. So are PLACES, files and folders that are separated by colons.
set -euo pipefail

system=$1
IFS=: read -ra places <<<"$2"

mirror() { # PLACE: the machine's
    [[ -e $1 ]] || return 0
    if [[ -d $1 ]]; then
        mkdir -p "$system$1"
    elif [[ ! -e $system$1 ]]; then # a program that runs cannot be opened for writing
        mkdir -p "$system${1%/*}"
        : >"$system$1"
    fi
    mount --rbind "$1" "$system$1"
}

mount --bind "$system" "$system"
for place in /*; do
    case $place in
        /bin | /boot | /etc | /lib* | /lost+found | /media | /mnt | /run | /sbin | /usr | /var) ;;
        *) [[ ! -d $place ]] || mirror "$place" ;;
    esac
done
for place in /usr/local /var/tmp "${places[@]}"; do mirror "$place"; done
cd "$system"
pivot_root . mnt
umount --lazy mnt
cd /
exec "${@:3}"
