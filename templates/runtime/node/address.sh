#!/bin/bash
# address.sh ADDRESS HOST: the address of the rendezvous, which this host must have: ADDRESS is interface:NAME, a name or an IP address.
# It prints the address, or a sentence, with the exit status of the job.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
request=$1 host=$2

fail() { # STATUS SENTENCE
  echo "$2"
  exit "$1"
}

of_interface() { # NAME: IPv4 first. A line is NUMBER: NAME inet|inet6 ADDRESS[/LENGTH] ... scope SCOPE FLAGS
  local name=$1 address
  ip -o link show dev "$name" &> /dev/null ||
    fail 70 "the first host $host has no interface $name, but $(ip -o link show | awk -F '[ :@]+' '{ print $2 }' | paste -sd ' ')"
  address=$(ip -o address show dev "$name" up | awk '
    / scope link | (tentative|dadfailed|deprecated|temporary) / { next }
    { sub("/.*", "", $4) }
    !($3 in first) { first[$3] = $4 }
    END { print "inet" in first ? first["inet"] : first["inet6"] }')
  [[ -n $address ]] || fail 70 "the interface $name of the first host $host is down, or has no address that other hosts can reach"
  echo "$address"
}

of_this_host() { # NAME OR ADDRESS
  local own addresses address
  addresses=$(getent ahosts "$1" | awk '!seen[$1]++ { print $1 }') || true
  [[ -n $addresses ]] || fail 70 "the first host $host cannot resolve $1"
  own=$(ip -o address show | awk '{ sub("/.*", "", $4); print $4 }')
  for address in $addresses; do
    if [[ $address == 127.* ]] || grep -qxF "$address" <<< "$own"; then
      echo "$1"
      return
    fi
  done
  [[ $1 == "$address" ]] || set -- "$1 ($(paste -sd ' ' <<< "$addresses"))"
  fail 70 "$1 is no address of the first host $host, which has $(paste -sd ' ' <<< "$own")"
}

command -v ip > /dev/null || fail 71 "the first host $host has no command ip on PATH, which lists its addresses"
case $request in
  interface:*) of_interface "${request#*:}" ;;
  *) of_this_host "$request" ;;
esac
