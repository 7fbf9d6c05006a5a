#!/usr/bin/env bash
# Stands in for runc on machines where root lacks capabilities, CAP_SYS_RESOURCE above all. It refuses to change
# anything where none is missing: then it is runc.
#
# `docker run --privileged` asks for every capability there is, docker and containerd ask for rlimits, and the kubelet
# for negative OOM scores. runc fails where its own bounding set does not allow that. So what runc is about to read is
# rewritten first. kind calls `docker exec --privileged` too, whose capabilities stand in a file of their own
# (--process), not in config.json.
#
# dockerd.sh makes it the default runtime of its daemon. In the node image it is /usr/local/sbin/runc, with the real one
# beside it as runc.real.
set -euo pipefail

# In the order of their bits, include/uapi/linux/capability.h.
capabilities=(CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
    NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE
    SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL
    SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE)

# The capabilities that this process may never have, as words with a space before and behind each.
missing() {
    local mask bit last
    mask=$((16#$(awk '/^CapBnd:/ { print $2 }' /proc/self/status)))
    last=$(cat /proc/sys/kernel/cap_last_cap)
    for ((bit = 0; bit <= last && bit < ${#capabilities[@]}; bit++)); do
        if ((!(mask >> bit & 1))); then printf ' CAP_%s ' "${capabilities[bit]}"; fi
    done
}

real=${RUNC_REAL:-}
for path in "$(dirname "$(readlink -f "$0")")/runc.real" /usr/sbin/runc /usr/bin/runc; do
    if [[ -z $real && -x $path ]]; then real=$path; fi
done
if [[ -z $real ]]; then
    echo "runc-wrapper.sh: no runc: install it, or let RUNC_REAL name it" >&2
    exit 1
fi

missing=$(missing)
if [[ -z $missing ]]; then exec "$real" "$@"; fi

# Which command it is, and which files it reads.
command='' bundle=$PWD process='' option=''
for argument in "$@"; do
    if [[ -n $option ]]; then
        case $option in
            --bundle | -b) bundle=$argument ;;
            --process | -p) process=$argument ;;
        esac
        option=''
        continue
    fi
    case $argument in
        --bundle=*) bundle=${argument#*=} ;;
        --process=*) process=${argument#*=} ;;
        --*=*) ;;
        # These take no value; all others do.
        --debug | --systemd-cgroup | --detach | -d | --tty | -t | --no-pivot | --no-new-keyring | --keep) ;;
        --no-new-privs | --ignore-paused | --version | -v | --help | -h) ;;
        -*) option=$argument ;;
        *) if [[ -z $command ]]; then command=$argument; fi ;;
    esac
done

file='' at='(.)'
case $command in
    create | run | restore) file=$bundle/config.json at='(.process)' ;;
    exec) file=$process ;;
esac

if [[ -n $file && -f $file ]]; then
    edited=$(jq -c --arg missing "$missing" --argjson oom "$(cat /proc/self/oom_score_adj)" "
        def held: map(select(. as \$it | \$missing | contains(\" \" + \$it + \" \") | not));
        if $at.capabilities then $at.capabilities |= map_values(if type == \"array\" then held else . end) else . end
        | if \$missing | contains(\" CAP_SYS_RESOURCE \") then
              del($at.rlimits)
              | if ($at.oomScoreAdj // \$oom) < \$oom then $at.oomScoreAdj = \$oom else . end
          else . end
    " "$file")
    # Written into the same file: its owner and mode stay.
    printf '%s' "$edited" > "$file"
fi
exec "$real" "$@"
