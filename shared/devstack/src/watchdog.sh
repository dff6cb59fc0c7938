#!/bin/sh
# Ends what a process left behind, however that process died.
#
#   watchdog.sh pipe REGISTRY
#       Waits until standard input closes. The owner holds the other end, and the kernel closes it even after kill -9.
#   watchdog.sh shared REGISTRY USERS STATE LINGER_SECONDS
#       Waits until nobody has held a lock on the file USERS for LINGER_SECONDS, then withdraws STATE.
#
# REGISTRY holds one small file for each thing to end:
#   NAME.pid         "SIGNAL PID NEEDLE"; a negative PID is a process group; a NEEDLE other than "-" must stand in the
#                    command line of PID, so that a number that was given out again hits nobody else
#   NAME.container   name of a Docker container
#   NAME.rm          path to remove once everything has ended
set -u
trap '' HUP INT TERM
mode=$1
registry=$2

is_ours() { # PID NEEDLE
    kill -s 0 -- "$1" 2>/dev/null || return 1
    [ "$2" = "-" ] && return 0
    [ -r "/proc/$1/cmdline" ] || return 0
    tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$2"
}

each_process() { # ACTION
    for entry in "$registry"/*.pid; do
        [ -e "$entry" ] || continue
        IFS=' ' read -r signal pid needle <"$entry" || continue
        is_ours "$pid" "$needle" || continue
        "$1" "$signal" "$pid"
    done
}

signal_once() { kill -s "$1" -- "$2" 2>/dev/null; }
signal_kill() { kill -s KILL -- "$2" 2>/dev/null; }
count_alive() { alive=$((alive + 1)); }

end_everything() {
    each_process signal_once
    for entry in "$registry"/*.container; do
        [ -e "$entry" ] || continue
        IFS= read -r name <"$entry" && docker rm --force --volumes "$name" >/dev/null 2>&1
    done
    tries=0
    while [ "$tries" -lt 60 ]; do
        alive=0
        each_process count_alive
        [ "$alive" -eq 0 ] && break
        sleep 0.1
        tries=$((tries + 1))
    done
    each_process signal_kill
    for entry in "$registry"/*.rm; do
        [ -e "$entry" ] || continue
        IFS= read -r path <"$entry" && rm -rf -- "$path"
    done
    rm -rf -- "$registry"
}

wait_for_owner() {
    while read -r _; do :; done
}

# The state file is withdrawn under the lock that every user takes before it reads that file: a newcomer sees servers
# that live, or none.
withdraw() { # USERS STATE
    if grep -qF -- "$registry" "$2" 2>/dev/null; then
        flock -n -x "$1" rm -f -- "$2"
    fi
}

wait_for_last_user() { # USERS STATE LINGER_SECONDS
    idle=0
    while [ -e "$1" ]; do
        sleep 1
        if flock -n -x "$1" true; then idle=$((idle + 1)); else idle=0; fi
        if [ "$idle" -ge "$3" ]; then
            withdraw "$1" "$2" && return
            idle=0
        fi
    done
}

case $mode in
pipe) wait_for_owner ;;
shared) wait_for_last_user "$3" "$4" "$5" ;;
*) exit 2 ;;
esac
end_everything
