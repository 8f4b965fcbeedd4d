#!/usr/bin/env bash
# accounting.sh - slurmdbd with a database of its own on the host "head", for scripts that are PID 1 of it.

start_database() { # ROOT: its directories log and db
    local root=$1 tables=/usr/share/mysql/mysql_system_tables database
    mkdir -p /run/mysqld "$root/db"
    database=(mariadbd --no-defaults --user=root --datadir="$root/db" --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0)
    {
        printf '%s;\n' 'create database mysql' 'use mysql'
        cat "$tables.sql" "${tables}_data.sql"
    } | "${database[@]}" --bootstrap 2>"$root/log/bootstrap.log"
    "${database[@]}" --skip-networking --skip-grant-tables --socket=/run/mysqld/mysqld.sock --pid-file=/run/mysqld/pid \
        >"$root/log/mariadb.log" 2>&1 &
    until [[ -S /run/mysqld/mysqld.sock ]]; do sleep 0.05; done
}

start_accounting() { # ROOT: its directories log, db and etc; munged runs
    local root=$1
    start_database "$root"
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
}
