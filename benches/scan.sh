#!/usr/bin/env bash
# Experiment E5: full scans by 1 to 80 workers under every scheduler, independent and coordinated, on the emulated 10,000 rpm disk.
# Writes the figure to docs/src/img/lab-scan-hdd-10k.svg, and the run folder beside what else DATA holds. About half an hour; on a machine that
# does nothing else.
#
#   sudo -E benches/scan.sh [REPEATS] [SIZE]      3 and 192m unless given
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || { echo "emulating a block device needs root" >&2; exit 1; }
repeats=${1:-3} size=${2:-192m}
name=scan-$$ run=$DATA/scan-$(date -u +%Y%m%dT%H%M%S)
machine
device=$("$LAB" device create "$name" --model hdd-10k)
trap '"$LAB" device remove "$name"; rm -rf "$run-svg"' EXIT
# Ahead of other programs, where that is permitted: workers that wait for a processor are no experiment about a disk.
ahead=$(chrt -f 10 true 2> /dev/null && echo chrt -f 10 || true)
measure $ahead "$LAB" scan "$device" --size "$size" --dop 1,2,3,4,5,6,7,8,20,40,80 --repeat "$repeats" \
    --scheduler none,mq-deadline,kyber,bfq,bfq-anticipatory --workers independent,coordinated --out "$run"
"$LAB" report "$run" --svg "$run-svg" > /dev/null
cp "$run-svg"/01-*.svg "$here/../docs/src/img/lab-scan-hdd-10k.svg"
python3 - "$run/cells.jsonl" <<'PY'
import json, statistics, sys

cells = {}
for line in open(sys.argv[1]):
    cell = json.loads(line)
    cells.setdefault((cell["setup"], cell["dop"]), []).append(cell["elapsed_s"])
median = {key: statistics.median(values) for key, values in cells.items()}
for setup in sorted({setup for setup, _ in median}):
    of = {dop: s for (name, dop), s in median.items() if name == setup}
    print("%-40s 1 worker %6.2f s, most workers %6.2f s: %.2f times, worst %.2f" % (
        setup, of[min(of)], of[max(of)], of[max(of)] / of[min(of)], max(of.values()) / of[min(of)]))
PY
