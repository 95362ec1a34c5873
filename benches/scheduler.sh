#!/usr/bin/env bash
# Random reads through the scheduler against fio's, in turn, on one processor: 8 KiB at depth 32, and extents of 2 MiB at depth 4, the
# extents also asked for page by page, as the pool does into frames it never used. Our buffers lie in huge pages, as the pool's frames do; fio's do when the script may
# reserve some (root), else in pages of 4 KiB, which can halve what a virtual disk gives. Who comes first changes from turn to turn.
# Prints the median of the ratios.
#
#   benches/scheduler.sh [ROUNDS]      10 unless given; needs fio (apt-get install fio) and python3
. "$(dirname "$0")/common.sh"
command -v fio > /dev/null || { echo "no fio: apt-get install fio" >&2; exit 1; }
rounds=${1:-10}
own=$(example randread)
file=$DATA/fio-test
reserved=/proc/sys/vm/nr_hugepages
before=$(cat "$reserved" 2> /dev/null || echo 0)
trap 'rm -f "$file"; [ -w "$reserved" ] && echo "$before" > "$reserved"' EXIT
[ -f "$file" ] || dd if=/dev/urandom of="$file" bs=1M count=4096 oflag=direct status=none
memory=""
if [ -w "$reserved" ] && echo $((before + 16)) > "$reserved" && [ "$(cat "$reserved")" -ge $((before + 16)) ]; then
    memory="--iomem=shmhuge --hugepage-size=2m"
else
    echo "no huge pages for fio: it reads into pages of 4 KiB" >&2
fi
machine

theirs() { # block depth
    taskset -c 1 fio --name=r --filename="$file" --size=4g --rw=randread --bs="$1" --iodepth="$2" --ioengine=io_uring --direct=1 \
        --registerfiles=1 --norandommap --randrepeat=0 --runtime=4 --time_based --output-format=json $memory |
        python3 -c 'import json, sys; t = sys.stdin.read(); print(json.loads(t[t.index("{"):])["jobs"][0]["read"]["iops"])'
}
ours() { # block depth more
    taskset -c 1 "$own" "$file" block="$1" depth="$2" engine=uring direct=on seconds=4 ${3:-} |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["iops"])'
}
for cell in "8k 32" "2m 4" "2m 4 piece=8k"; do
    read -r block depth more <<< "$cell"
    for round in $(seq "$rounds"); do
        if ((round % 2)); then
            theirs=$(theirs "$block" "$depth") ours=$(ours "$block" "$depth" "$more")
        else
            ours=$(ours "$block" "$depth" "$more") theirs=$(theirs "$block" "$depth")
        fi
        echo "$theirs $ours"
    done | python3 -c '
import statistics, sys
pairs = [tuple(map(float, line.split())) for line in sys.stdin]
theirs, ours = (statistics.median(p[i] for p in pairs) for i in (0, 1))
print("%-16s fio %.0f IOPS, ours %.0f, median ratio %.3f" % (sys.argv[1], theirs, ours, statistics.median(o / t for t, o in pairs)))
' "$cell"
done
