#!/usr/bin/env bash
# openpbs.sh - a server and three nodes of OpenPBS on one Debian machine, for the tests. OpenPBS 23.06 must be installed in /opt/pbs.
#
#   openpbs.sh install         the Debian packages that it needs, and the user pbsu, who submits
#   openpbs.sh up              start it; its clients (qsub, qstat, ...) are in $OPENPBS_LAB/bin and run as pbsu
#   openpbs.sh down            stop it
#   openpbs.sh on HOST CMD...  run CMD as root on pbssrv, pbsn1, pbsn2 or pbsn3
#
# Each node has 8 ncpus and 2 ngpus (a number, no devices). No ssh runs between the nodes. The folder of the cluster is
# OPENPBS_LAB (/tmp/openpbs); pbsu can write into its folder t.
set -euo pipefail
umask 022

home=/opt/pbs
lab=${OPENPBS_LAB:-/tmp/openpbs}
version=23.06.06
server=pbssrv nodes=(pbsn1 pbsn2 pbsn3) network=10.77.0
export PATH=$home/bin:$home/sbin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# shellcheck source=tests/cluster/pbs_hosts.sh
. "${BASH_SOURCE[0]%/*}/pbs_hosts.sh"

spool() { echo "$home/var/$1"; } # HOST

on() { # HOST COMMAND...
    # shellcheck disable=SC2016  # expanded on the host
    ip netns exec "$1" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$@"
}

install() {
    need_installed OpenPBS "$home"
    install_packages postgresql libcjson1 libhwloc15 libical3 libedit2 libpq5 libpython3.11 libtcl8.6 libtk8.6 libxft2 libxss1 \
        iproute2 util-linux procps
    chmod 4755 "$home/sbin/pbs_iff" "$home/sbin/pbs_rcp"
    [[ -e /etc/pbs.conf ]] || echo '# each network namespace has one of its own' >/etc/pbs.conf
    login_path openpbs-lab.sh 'pbssrv | pbsn?' "$home"
}

clients() {
    # shellcheck disable=SC2016  # expanded in the file
    make_clients 'at=(ip netns exec "$host" unshare --uts sh -c '\''hostname "$0"; exec "$@"'\'' "$host")' \
        qsub qstat qdel qsig qalter qhold qrls qrerun qrun qmove qselect qmgr pbsnodes pbs_rsub pbs_rstat pbs_rdel tracejob
}

configure() { # HOST
    local is_server=0 is_node=1
    [[ $1 != "$server" ]] || is_server=1 is_node=0
    mkdir -p "$home/var"
    printf '%s\n' "PBS_EXEC=$home" "PBS_HOME=$(spool "$1")" "PBS_SERVER=$server" "PBS_START_SERVER=$is_server" \
        "PBS_START_SCHED=$is_server" "PBS_START_COMM=$is_server" "PBS_START_MOM=$is_node" PBS_CORE_LIMIT=unlimited \
        PBS_SCP=/usr/bin/scp >"/etc/netns/$1/pbs.conf"
}

prepare_node() { # HOST
    [[ ! -d $(spool "$1")/mom_priv ]] || return 0
    on "$1" "$home/libexec/pbs_postinstall" execution "$version" "$home" "$(spool "$1")" '' sameconf
    mkdir -p "$lab/momtmp/$1"
    chmod 1777 "$lab/momtmp/$1"
    # shellcheck disable=SC2016  # words of the configuration
    printf '%s\n' "\$clienthost $server" '$usecp *:/ /' "\$tmpdir $lab/momtmp/$1" '$logevent 0xffffffff' \
        >"$(spool "$1")/mom_priv/config"
    echo "$version" >"$(spool "$1")/pbs_version"
}

prepare_queues() { # once, when the server answers for the first time
    local host top
    top=$(spool "$server")
    for _ in {1..20}; do
        on "$server" qstat -B &>/dev/null && break
        sleep 1
    done
    {
        printf 'set server %s\n' 'flatuid = True' 'acl_roots = root' 'job_history_enable = True' 'log_events = 2047'
        echo 'create resource ngpus type=long, flag=nh'
        for host in "${nodes[@]}"; do
            printf '%s\n' "create node $host" "set node $host resources_available.ncpus=8" "set node $host resources_available.ngpus=2"
        done
    } | on "$server" qmgr
    sed -i 's/^resources: "\(.*\)"/resources: "\1, ngpus"/' "$top/sched_priv/sched_config"
    kill -HUP "$(<"$top/sched_priv/sched.lock")"
}

delete_jobs() { # of users that the cluster has outlived
    local job
    for _ in {1..20}; do
        on "$server" qstat -B &>/dev/null && break
        sleep 1
    done
    for job in $(on "$server" qselect); do on "$server" qdel -W force "$job" || true; done
}

up() {
    local is_new='' host top
    top=$(spool "$server")
    connect_hosts
    clients
    for host in "$server" "${nodes[@]}"; do configure "$host"; done
    if [[ ! -d $top/datastore ]]; then
        is_new=yes
        on "$server" "$home/libexec/pbs_postinstall" server "$version" "$home" "$top" '' sameconf
        on "$server" "$home/libexec/pbs_habitat"
    fi
    for host in "${nodes[@]}"; do prepare_node "$host"; done
    is_alive "$top/server_priv/comm.lock" || on "$server" pbs_comm
    is_alive "$top/sched_priv/sched.lock" || on "$server" pbs_sched
    if ! is_alive "$top/server_priv/server.lock"; then
        on "$server" pbs_server
        [[ -n $is_new ]] || delete_jobs
    fi
    for host in "${nodes[@]}"; do is_alive "$(spool "$host")/mom_priv/mom.lock" || on "$host" pbs_mom; done
    [[ -z $is_new ]] || prepare_queues
    for _ in {1..60}; do
        (($(on "$server" pbsnodes -aSj 2>/dev/null | grep -cE '^pbsn[0-9]+ .* (free|job-busy)') < ${#nodes[@]})) || break
        sleep 1
    done
    on "$server" pbsnodes -aSj
}

down() {
    local host top
    top=$(spool "$server")
    on "$server" qterm -t quick 2>/dev/null || true
    for host in "${nodes[@]}"; do stop "$(spool "$host")/mom_priv/mom.lock"; done
    for host in sched_priv/sched server_priv/server server_priv/comm; do stop "$top/$host.lock"; done
    on "$server" pbs_dataservice stop &>/dev/null || true
    sleep 1
    remove_hosts
}

run_command "${BASH_SOURCE[0]}" "$@"
