#!/usr/bin/env bash
# Runs a command with its device capped like a small cloud volume (default 3000 IOPS, 125 MiB/s), by cgroup v1 blkio
# or cgroup v2 io.max. With a memory limit as the fourth argument, memory is capped too.
#
#   sudo benches/capped.sh DIRECTORY_ON_THE_DEVICE IOPS BYTES_PER_S[:MEMORY_BYTES] -- COMMAND...
#
# The group is removed at the end, also after Ctrl-C.
set -euo pipefail
[ $# -ge 5 ] && [ "$4" = -- ] || { sed -n '2,8p' "$0" >&2; exit 2; }
dir=$1 iops=$2 bytes=${3%%:*} memory=
case $3 in *:*) memory=${3##*:} ;; esac
shift 4
[ "$(id -u)" = 0 ] || { echo "capped.sh: needs root to make a cgroup" >&2; exit 1; }

device=$(findmnt -no MAJ:MIN -T "$dir" | tr -d ' ')
# A partition is throttled at its whole disk.
sys=$(readlink -f "/sys/dev/block/$device") || true
[ ! -f "$sys/partition" ] || device=$(cat "$sys/../dev")
name=snowmelt-capped-$$
groups=()
cleanup() {
    for group in "${groups[@]}"; do
        while read -r pid; do echo "$pid" > "$(dirname "$group")/cgroup.procs" || true; done < "$group/cgroup.procs" || true
        rmdir "$group" || echo "capped.sh: $group is left, remove it by hand" >&2
    done
}
trap cleanup EXIT

if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/$name
    echo "+io +memory" > /sys/fs/cgroup/cgroup.subtree_control
    mkdir "$group"; groups+=("$group")
    echo "$device riops=$iops rbps=$bytes" > "$group/io.max"
    [ -z "$memory" ] || echo "$memory" > "$group/memory.max"
else
    group=/sys/fs/cgroup/blkio/$name
    mkdir "$group"; groups+=("$group")
    echo "$device $iops" > "$group/blkio.throttle.read_iops_device"
    echo "$device $bytes" > "$group/blkio.throttle.read_bps_device"
    if [ -n "$memory" ]; then
        group=/sys/fs/cgroup/memory/$name
        mkdir "$group"; groups+=("$group")
        echo "$memory" > "$group/memory.limit_in_bytes"
    fi
fi
# The command runs in the groups from its first instruction.
(
    for group in "${groups[@]}"; do echo "$BASHPID" > "$group/cgroup.procs"; done
    exec "$@"
)
