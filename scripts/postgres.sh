#!/usr/bin/env bash
# A PostgreSQL for the tests, on a unix socket in a folder of its own; nothing is left behind.
#
#   scripts/postgres.sh start FOLDER    make a database there, start it, print its URL
#   scripts/postgres.sh start FOLDER durable   the same, but what is committed outlives a crash
#   scripts/postgres.sh stop FOLDER     stop it, as a crash would
#   scripts/postgres.sh resume FOLDER   start it again, with what is in it
set -euo pipefail

programs() {
    local found
    found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
    if [ -z "$found" ]; then
        found=$(dirname "$(command -v postgres || true)")
    fi
    if [ ! -x "$found/postgres" ]; then
        echo "PostgreSQL is not installed; as root, run: scripts/packages.sh" >&2
        exit 3
    fi
    echo "$found"
}

# PostgreSQL refuses to run as root.
as_user() {
    if [ "$(id -u)" = 0 ]; then
        runuser -u postgres -- "$@"
    else
        "$@"
    fi
}

run() {
    as_user "$bin/pg_ctl" --pgdata "$folder/data" --log "$folder/server.log" --wait \
        --options "$(cat "$folder/options")" start >"$folder/start.log"
}

case "${1:-}" in
start)
    folder=$(realpath "$2")
    bin=$(programs)
    if [ "$(id -u)" = 0 ]; then
        chown postgres "$folder"
    fi
    as_user "$bin/initdb" --pgdata "$folder/data" --username bough --auth trust \
        --encoding UTF8 --locale C --no-sync >"$folder/initdb.log"
    # Hundreds of small databases that live for a moment: nothing to keep safe, nothing to sweep.
    fast="-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c autovacuum=off -c jit=off"
    if [ "${3:-}" = durable ]; then
        fast=""
    fi
    echo "-c listen_addresses= -c unix_socket_directories=$folder -c max_connections=200 $fast" \
        >"$folder/options"
    run
    echo "postgresql://bough@/postgres?host=$folder"
    ;;
stop)
    as_user "$(programs)/pg_ctl" --pgdata "$(realpath "$2")/data" --mode immediate stop >/dev/null
    ;;
resume)
    folder=$(realpath "$2")
    bin=$(programs)
    run
    ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
