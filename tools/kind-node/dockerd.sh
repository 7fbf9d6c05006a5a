#!/usr/bin/env bash
# Starts or ends a docker daemon of its own, for machines where none runs and no init system would start one. It refuses
# to start beside a daemon that answers already, and to end any daemon but the one that its pid file names.
#
#   dockerd.sh start   prints `export DOCKER_HOST=…` for the shell to read; does no more where it runs already
#   dockerd.sh stop    ends it and with it its containers; images and containers are kept
#
# SPANWIRE_KIND_NODE names another folder than ~/.cache/spanwire/kind-node for all of it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${SPANWIRE_KIND_NODE:-${XDG_CACHE_HOME:-$HOME/.cache}/spanwire/kind-node}/docker
host=unix://$folder/docker.sock
pid_file=$folder/docker.pid

fail() {
    echo "dockerd.sh: $*" >&2
    exit 1
}

# Its process number, where it runs. A number that another program got since counts for nothing.
running() {
    local pid
    pid=$(cat "$pid_file" 2> /dev/null) || return 1
    [[ $(tr '\0' '\n' < "/proc/$pid/cmdline" 2> /dev/null) == *dockerd*"$host"* ]] || return 1
    echo "$pid"
}

answers() { docker --host "$1" version > /dev/null 2>&1; }

start() {
    local pid deadline
    ((EUID == 0)) || fail "a docker daemon needs root: use sudo --preserve-env=HOME,XDG_CACHE_HOME"
    for program in dockerd docker runc jq iptables; do
        command -v "$program" > /dev/null ||
            fail "$program is missing: apt-get install --no-install-recommends docker.io jq"
    done
    if ! running > /dev/null; then
        if answers unix:///var/run/docker.sock; then
            fail "a docker daemon answers already at /var/run/docker.sock: nothing to start, leave DOCKER_HOST unset"
        fi
        # A path of a Unix socket has 107 characters at most; the daemon's own are up to 40 longer than the folder.
        ((${#folder} <= 60)) || fail "$folder is too long a path for sockets: let SPANWIRE_KIND_NODE name a shorter one"
        mkdir -p "$folder"
        rm -f "$pid_file"
        # A node holds many inotify instances; the usual 128 are used up by two.
        if (($(cat /proc/sys/fs/inotify/max_user_instances) < 512)); then
            echo 512 > /proc/sys/fs/inotify/max_user_instances
        fi
        install -m 755 "$here/runc-wrapper.sh" "$folder/runc-wrapper.sh"
        setsid nohup dockerd --host "$host" --pidfile "$pid_file" --data-root "$folder/data" --exec-root "$folder/run" \
            --add-runtime "wrapped=$folder/runc-wrapper.sh" --default-runtime wrapped \
            < /dev/null > "$folder/log" 2>&1 &
        pid=$!
        deadline=$((SECONDS + 60))
        until answers "$host"; do
            kill -0 "$pid" 2> /dev/null || fail "it ended: $(tail -n 5 "$folder/log")"
            ((SECONDS < deadline)) || fail "it does not answer; what it said is in $folder/log"
            sleep 0.2
        done
    fi
    echo "export DOCKER_HOST=$host"
}

stop() {
    local pid deadline
    if ! pid=$(running); then
        echo "dockerd.sh: it does not run" >&2
        return
    fi
    kill "$pid"
    deadline=$((SECONDS + 60))
    while kill -0 "$pid" 2> /dev/null; do
        ((SECONDS < deadline)) || fail "process $pid does not end; what it says is in $folder/log"
        sleep 0.2
    done
    rm -f "$pid_file"
}

case ${1:-} in
    start) start ;;
    stop) stop ;;
    *) fail "usage: dockerd.sh start|stop" ;;
esac
