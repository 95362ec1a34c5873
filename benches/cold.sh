#!/usr/bin/env bash
# From cold on a capped volume (3000 IOPS, 125 MiB/s), 16 clients: as it is, with the device probed before, and with the warm
# list of an earlier run. Needs root for the cgroup.
#
#   sudo benches/cold.sh [PRODUCTS]      28480 (10 million triples) unless given; 284826 for 100 million
. "$(dirname "$0")/common.sh"
products=${1:-28480}
db=$(database "$products")
machine
capped() { measure "$here/capped.sh" "$DATA" 3000 $((125 << 20)) -- "$@"; }
run=("$LAB" bsbm run "$db" --use-case explore --clients 16 --mixes 1000 --warmup 0 --products "$products")
rm -f "$db/warm" "$db"/*.profile.json
capped "${run[@]}" --cold
capped "$SNOWMELT" probe "$db"
capped "${run[@]}" --cold
# A run that ends in peace saves the warm list.
"$LAB" bsbm run "$db" --clients 2 --mixes 1000 --warmup 1000 --products "$products" > /dev/null
capped "${run[@]}" --cold --warm-list
