#!/usr/bin/env bash
# What `snowmelt-lab trace` costs the program it traces: random reads alone and traced, in pairs, each time in another order. Prints
# IOPS of both, the middle of the ratios of neighbours (the goal is at least 0.95), and the events that were lost (the goal is 0).
#
#   sudo -E benches/trace_cost.sh FILE [PAIRS] [SECONDS]      FILE is only read; on the device to be traced
#
#   SNOWMELT  the command that runs the laboratory            [target/release/snowmelt-lab]
#   BS, DEPTH, DIRECT                                         [4k  32  on]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "tracing needs root" >&2; exit 1; }
file=$1 pairs=${2:-5} seconds=${3:-5}
SNOWMELT=${SNOWMELT:-$here/../target/release/snowmelt-lab}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
load="$SNOWMELT read $file --bs ${BS:-4k} --iodepth ${DEPTH:-32} --direct ${DIRECT:-on} --runtime $seconds"
echo "# $(uname -sr), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F): ${BS:-4k} at depth ${DEPTH:-32}, direct ${DIRECT:-on}"

alone() { # pair
    $load --out "$work/alone-$1" > /dev/null
}
traced() { # pair
    $SNOWMELT trace --device "$file" --out "$work/trace-$1" -- $load --out "$work/traced-$1" > /dev/null
}
for i in $(seq "$pairs"); do
    if ((i % 2)); then alone "$i"; traced "$i"; else traced "$i"; alone "$i"; fi
done
python3 - "$work" "$pairs" <<'PY'
import json, statistics, sys

work, pairs = sys.argv[1], int(sys.argv[2])
line = lambda *path: json.loads(open("/".join((work,) + path)).readline())
ratios, lost, rates = [], 0, []
for i in range(1, pairs + 1):
    alone, traced = (line("%s-%d" % (kind, i), "cells.jsonl")["iops"] for kind in ("alone", "traced"))
    summary = line("trace-%d" % i, "summary.jsonl")
    lost += summary["events_lost"]
    rates.append(summary["read_iops"] + summary["write_iops"])
    ratios.append(traced / alone)
    print("pair %d: alone %8.0f IOPS, traced %8.0f, ratio %.3f" % (i, alone, traced, ratios[-1]))
print("traced / alone: median %.3f, worst %.3f; %d events lost at %.0f requests/s" % (
    statistics.median(ratios), min(ratios), lost, max(rates)))
PY
