#!/usr/bin/env bash
# A memory cgroup of a tenth of the database, O_DIRECT: answers, memory, and throughput beside the device's IOPS. Needs root.
#
#   sudo benches/small_memory.sh [PRODUCTS]      28480 (10 million triples) unless given
#
# The digests must be those of the run with much memory before it. Pages read per query ÷ the device's IOPS explains the
# time of a query: see "probe" and the meters.
. "$(dirname "$0")/common.sh"
products=${1:-28480}
db=$(database "$products")
machine
bytes=$(du -sbL "$db" | cut -f1)
tenth=$((bytes / 10))
echo "# database $((bytes >> 20)) MiB, memory $((tenth >> 20)) MiB"
run=("$SNOWMELT" bsbm run "$db" --use-case explore --mixes 200 --warmup 50 --products "$products" --direct on)
measure "$SNOWMELT" probe "$db"
measure "${run[@]}" --clients 1
# The program itself needs room besides its budget: 128 MiB, within the tenth where that is possible.
overhead=$((128 << 20))
[ "$tenth" -gt $((2 * overhead)) ] || tenth=$((tenth + overhead))
measure "$here/capped.sh" "$DATA" 1000000 $((10 << 30)):$tenth -- \
    "${run[@]}" --clients 1 --memory $((tenth - overhead))
