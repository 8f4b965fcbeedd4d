# shellcheck shell=bash
# pbs_hosts.sh - what openpbs.sh and torque.sh share: a server and three nodes in network namespaces, and the user of the jobs.
# The caller sets server, nodes, network (the first three numbers of the addresses), lab and home (of the installation).
# shellcheck disable=SC2154  # the variables of the caller

user=pbsu # the owner of the jobs; users with other login shells are pbs-SHELL

address() { # HOST
    if [[ $1 == "$server" ]]; then echo "$network.1"; else echo "$network.1${1//[!0-9]/}"; fi
}

is_alive() { # FILE with a process id, which Torque fills up with NULs and blanks
    local pid
    pid=$({ tr -d ' \0\n' <"$1"; } 2>/dev/null) && [[ -n $pid ]] && kill -0 "$pid" 2>/dev/null
}

need_installed() { # TITLE FOLDER
    [[ -x $2/sbin/pbs_mom ]] || {
        echo "${0##*/}: $1 is not installed in $2" >&2
        exit 69
    }
}

install_packages() { # NAME...: Debian's packages, and the users
    local missing=() name shell
    for name; do dpkg -s "$name" &>/dev/null || missing+=("$name"); done
    if ((${#missing[@]})); then
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
    fi
    id "$user" &>/dev/null || useradd --create-home --shell /bin/bash "$user"
    for name in tcsh ksh zsh fish; do
        shell=$(command -v "$name") || continue
        id "pbs-$name" &>/dev/null || useradd --create-home --shell "$shell" "pbs-$name"
    done
}

login_path() { # FILE PATTERN FOLDER: the PATH of login shells, which run the jobs, on the hosts that match the pattern
    # shellcheck disable=SC2016  # expanded in the login shell
    printf 'case $(uname -n) in %s) PATH=%s/bin:%s/sbin:$PATH ;; esac\n' "$2" "$3" "$3" >"/etc/profile.d/$1"
}

connect_hosts() { # a bridge on the server, and a cable from each node to it
    local host other
    for host in "$server" "${nodes[@]}"; do
        mkdir -p "/etc/netns/$host"
        {
            echo '127.0.0.1 localhost'
            for other in "$server" "${nodes[@]}"; do echo "$(address "$other") $other"; done
        } >"/etc/netns/$host/hosts"
        ip netns add "$host" 2>/dev/null || true
        ip -n "$host" link set lo up
    done
    if ! ip -n "$server" link show br0 &>/dev/null; then
        ip -n "$server" link add br0 type bridge
        ip -n "$server" addr add "$(address "$server")/24" dev br0
        ip -n "$server" link set br0 up
    fi
    for host in "${nodes[@]}"; do
        ip -n "$host" link show eth0 &>/dev/null && continue
        ip -n "$server" link add "v-$host" type veth peer name eth0 netns "$host"
        ip -n "$server" link set "v-$host" master br0 up
        ip -n "$host" addr add "$(address "$host")/24" dev eth0
        ip -n "$host" link set eth0 up
    done
}

make_clients() { # CODE COMMAND...: in $lab/bin, each through the file enter there; CODE sets at to the words that enter the host
    local name
    mkdir -p "$lab/bin" "$lab/t"
    cat >"$lab/bin/enter" <<X
#!/bin/bash
# enter CMD...: run it on the server as $user (PBS_AS=USER: as another one; PBS_HOST=HOST: on that node); it keeps directory, environment, input
export PATH=$home/bin:$home/sbin:\$PATH
host=\${PBS_HOST:-$server} name=\${PBS_AS:-$user}
$1
[[ \$name != root ]] || exec "\${at[@]}" "\$@"
export HOME=/home/\$name USER=\$name LOGNAME=\$name
exec "\${at[@]}" setpriv --reuid "\$name" --regid "\$name" --init-groups -- "\$@"
X
    shift
    for name; do
        printf '#!/bin/bash\nexec "%s/bin/enter" %s "$@"\n' "$lab" "$name" >"$lab/bin/$name"
    done
    chmod 755 "$lab" "$lab/bin" "$lab"/bin/*
    chown "$user:" "$lab/t"
}

stop() { # FILE with a process id
    local pid
    is_alive "$1" || return 0
    pid=$(tr -d ' \0\n' <"$1")
    kill -TERM "$pid" 2>/dev/null || return 0
    for _ in {1..20}; do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep .25
    done
    kill -KILL "$pid" 2>/dev/null || true
}

remove_hosts() {
    local host pid
    for host in "${nodes[@]}" "$server"; do
        for pid in $(ip netns pids "$host" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
        ip netns del "$host" 2>/dev/null || true
    done
}

run_command() { # FILE [COMMAND [ARGUMENT]...]: the function of this name; without one, print the head of the file
    case ${2:-} in
        install | up | down | on) "${@:2}" ;;
        *)
            sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$1"
            exit 2
            ;;
    esac
}
