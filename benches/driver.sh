#!/usr/bin/env bash
# The driver against an endpoint that answers nothing: the most queries per second that can be measured by `snowmelt-lab bsbm drive`. The driver has one processor, the endpoint the
# others. Told are queries per second by wall time and per processor second of the driver.
#
#   benches/driver.sh [CLIENTS...]      1 4 unless given
. "$(dirname "$0")/common.sh"
machine
address=$DATA/empty-endpoint
program=$(example empty_endpoint)
"$program" > "$address" &
endpoint=$!
trap 'kill "$endpoint"; rm -rf "$address" "$DATA"/driver-*' EXIT
last=$(($(nproc) - 1))
[ "$last" -eq 0 ] || taskset -a -p -c "1-$last" "$endpoint" > /dev/null
for _ in $(seq 100); do [ -s "$address" ] && break; sleep 0.05; done
[ $# -gt 0 ] || set -- 1 4
for clients in "$@"; do
    for how in "" --connection-per-query; do
        rm -rf "$DATA/driver-run"
        # shellcheck disable=SC2086 # no word where there is no switch
        measure taskset -c 0 "$LAB" bsbm drive "$(cat "$address")" --products 1000 --clients "$clients" --mixes 8000 --warmup 400 \
            $how --out "$DATA/driver-run" --format json 2> /dev/null |
            python3 -c 'import json, sys
command, _, text = sys.stdin.read().partition("\n"); r = json.loads(text)
n, s, c = sum(q["count"] for q in r["queries"]), r["seconds"], r["driver"]["queries_per_cpu_s"]
print(command); print(f"{n / s:.0f} queries/s by wall time, {c:.0f} per processor second of the driver")'
    done
done
