#!/usr/bin/env bash
# torque.sh - a server and three nodes of Torque on one Debian machine, for the tests. Torque 6.1 must be installed in /opt/torque,
# with the spool folder /var/spool/torque-lab.
#
#   torque.sh install         the Debian packages that it needs, and the user pbsu, who submits
#   torque.sh up              start it; its clients (qsub, qstat, ...) are in $TORQUE_LAB/bin and run as pbsu
#   torque.sh down            stop it; jobs, queues and logs stay in /var/spool/torque-lab.d
#   torque.sh on HOST CMD...  run CMD as root on tqsrv, tqn1, tqn2 or tqn3
#
# Each node has np=8 and gpus=2 (a number, no devices). No ssh runs between the nodes. The scheduler is Torque's pbs_sched.
# The folder of the cluster is TORQUE_LAB (/tmp/torque); pbsu can write into its folder t. With TORQUE_EXEC=true the login
# shell of a job executes the script ($exec_with_exec); Torque's default is to run it as a child. With TORQUE_GPUS=0 new nodes
# have no GPUs.
set -euo pipefail
umask 022

home=/opt/torque
lab=${TORQUE_LAB:-/tmp/torque}
server=tqsrv nodes=(tqn1 tqn2 tqn3) network=10.88.0
spool=/var/spool/torque-lab
spools=$spool.d # of all hosts; each has its own mounted at $spool
export PATH=$home/bin:$home/sbin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# shellcheck source=tests/cluster/pbs_hosts.sh
. "${BASH_SOURCE[0]%/*}/pbs_hosts.sh"

on() { # HOST COMMAND...
    local holder
    holder=$(<"$spools/$1.holder")
    nsenter --target "$holder" --mount --uts --net --wdns="$PWD" "${@:2}"
}

install() {
    need_installed Torque "$home"
    install_packages libxml2 libssl3 zlib1g libncurses6 iproute2 util-linux procps
    login_path torque-lab.sh 'tqsrv | tqn?' "$home"
}

clients() {
    make_clients "at=(nsenter --target \"\$(<'$spools'/\$host.holder)\" --mount --uts --net --wdns=\"\$PWD\")" \
        qsub qstat qdel qsig qalter qhold qrls qrerun qrun qmove qselect qmgr qchkpt qmsg qorder pbsnodes tracejob momctl
}

is_held() { # HOST: whether its holder lives; the id in the file may be that of another process now
    local pid
    pid=$(cat "$spools/$1.holder" 2>/dev/null) && [[ $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) == 'sleep infinity '* ]]
}

hold() { # HOST: a process keeps its namespaces, in which its spool folder is mounted
    local new=$spools/$1.new
    ! is_held "$1" || return 0
    rm -f "$new"
    # shellcheck disable=SC2016  # expanded inside
    setsid ip netns exec "$1" unshare --mount --uts sh -c \
        'hostname "$0" && mount --bind "$1/$0" "$2" && echo $$ >"$3" && exec sleep infinity' \
        "$1" "$spools" "$spool" "$new" </dev/null &>/dev/null &
    for _ in {1..300}; do
        [[ ! -s $new ]] || break
        sleep .1
    done
    sleep .1
    mv "$new" "$spools/$1.holder"
}

remove_stale_locks() { # of daemons that have ended: the ids in them may be those of other processes now
    local host
    for host in "$server" "${nodes[@]}"; do
        [[ -z $(ip netns pids "$host" 2>/dev/null) ]] || return 0
    done
    rm -f "$spools"/*/*_priv/*.lock "$spools"/*.trqauthd
}

make_spool() { # HOST
    local top=$spools/$1 name
    [[ ! -d $top/aux ]] || return 0
    for name in aux mom_logs server_logs sched_logs job_logs checkpoint; do mkdir -m 755 "$top/$name"; done
    mkdir -m 1777 "$top/spool" "$top/undelivered"
    mkdir -m 751 "$top/mom_priv" "$top/mom_priv/jobs"
    mkdir -m 750 "$top/server_priv" "$top/sched_priv" "$top/sched_priv/accounting"
    for name in accounting acl_groups acl_hosts acl_svr acl_users arrays credentials disallowed_types hostlist jobs queues; do
        mkdir -m 750 "$top/server_priv/$name"
    done
    echo "$server" >"$top/server_name"
    echo "PATH=$home/bin:/usr/local/bin:/usr/bin:/bin" >"$top/pbs_environment"
}

configure_node() { # HOST
    # A node that misses the answer of another one to the end of a job waits for it, by default ten minutes.
    # shellcheck disable=SC2016  # words of the configuration
    {
        printf '%s\n' "\$pbsserver $server" '$usecp *:/ /' '$logevent 0xff' '$job_exit_wait_time 30'
        [[ ${TORQUE_EXEC:-} != true ]] || echo '$exec_with_exec true'
    } >"$spools/$1/mom_priv/config"
}

start_trqauthd() { # HOST
    local lock=$spools/$1.trqauthd
    ! { on "$1" test -S "$spool/trqauthd-unix" && is_alive "$lock"; } || return 0
    # shellcheck disable=SC2016  # expanded on the host
    on "$1" sh -c 'trqauthd -F >/dev/null 2>&1 </dev/null & echo $! >"$0"' "$lock"
}

start_server() {
    local top=$spools/$server host
    if [[ ! -e $top/server_priv/serverdb ]]; then
        cp -r "$home/share/sched_priv/." "$top/sched_priv/"
        on "$server" pbs_server -t create -f
        for _ in {1..20}; do
            on "$server" qmgr -c 'list server' &>/dev/null && break
            sleep .5
        done
        prepare_queues
    elif ! is_alive "$top/server_priv/server.lock"; then
        # qmgr leaves the last gpus= out of this file.
        for host in "${nodes[@]}"; do echo "$host np=8 gpus=2"; done >"$top/server_priv/nodes"
        # The jobs of users that the cluster has outlived. qselect of some, with dependencies, ends the server.
        rm -rf "$top"/server_priv/{jobs,arrays}/*
        on "$server" pbs_server
    fi
    is_alive "$top/sched_priv/sched.lock" || on "$server" pbs_sched
}

prepare_queues() { # once
    local host
    # Its nodes report every 45 s; the server calls a node down that it has not heard of for node_check_rate.
    {
        echo 'create queue batch queue_type=execution'
        printf 'set queue batch %s\n' 'enabled = True' 'started = True' 'resources_default.walltime = 01:00:00' 'resources_default.nodes = 1'
        printf 'set server %s\n' 'default_queue = batch' 'scheduling = True' "operators += root@$server" "managers += root@$server" \
            "acl_hosts = $server" 'allow_node_submit = True' 'keep_completed = 300' 'mom_job_sync = True' 'log_events = 511' \
            'node_check_rate = 150' 'tcp_timeout = 30'
        for host in "${nodes[@]}"; do
            printf '%s\n' "set server acl_hosts += $host" "set server submit_hosts += $host" "create node $host np=8"
            [[ ${TORQUE_GPUS:-2} == 0 ]] || echo "set node $host gpus=2"
        done
    } | on "$server" qmgr
}

up() {
    local host
    remove_stale_locks
    connect_hosts
    clients
    for host in "$server" "${nodes[@]}"; do
        mkdir -p "$spool" "$spools/$host"
        make_spool "$host"
        hold "$host"
        start_trqauthd "$host"
    done
    for host in "${nodes[@]}"; do configure_node "$host"; done
    start_server
    for host in "${nodes[@]}"; do is_alive "$spools/$host/mom_priv/mom.lock" || on "$host" pbs_mom; done
    for _ in {1..60}; do
        (($(on "$server" pbsnodes -l free 2>/dev/null | tr -d '\0' | grep -cE '^tqn') < ${#nodes[@]})) || break
        sleep 1
    done
    on "$server" pbsnodes -l all
}

down() {
    local host
    ! is_held "$server" || on "$server" timeout 20 qterm -t quick 2>/dev/null || true
    for host in "${nodes[@]}"; do stop "$spools/$host/mom_priv/mom.lock"; done
    stop "$spools/$server/sched_priv/sched.lock"
    stop "$spools/$server/server_priv/server.lock"
    for host in "${nodes[@]}" "$server"; do
        stop "$spools/$host.trqauthd"
        rm -f "$spools/$host.holder" "$spools/$host.trqauthd"
    done
    remove_hosts
}

run_command "${BASH_SOURCE[0]}" "$@"
