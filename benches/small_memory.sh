#!/usr/bin/env bash
# A memory cgroup of a tenth of the database, O_DIRECT: answers, memory, and throughput beside the device's IOPS. Needs root.
#
#   sudo benches/small_memory.sh [PRODUCTS]      28480 (10 million triples) unless given
#
# The digests must be those of the run with much memory before it. Then the same memory on a volume of 3000 IOPS and 125 MiB/s,
# 16 clients: requests per query ÷ IOPS, or bytes per query ÷ bandwidth, must explain the time a query takes within 20 %.
. "$(dirname "$0")/common.sh"
products=${1:-28480}
db=$(database "$products")
machine
bytes=$(du -sbL "$db" | cut -f1)
tenth=$((bytes / 10))
echo "# database $((bytes >> 20)) MiB, memory $((tenth >> 20)) MiB"
run=("$LAB" bsbm run "$db" --use-case explore --mixes 200 --warmup 50 --products "$products" --direct on)
measure "$SNOWMELT" probe "$db"
measure "${run[@]}" --clients 1
# The program itself needs room besides its budget: 128 MiB, within the tenth where that is possible.
overhead=$((128 << 20))
[ "$tenth" -gt $((2 * overhead)) ] || tenth=$((tenth + overhead))
measure "$here/capped.sh" "$DATA" 1000000 $((10 << 30)):$tenth -- \
    "${run[@]}" --clients 1 --memory $((tenth - overhead))
iops=3000 bandwidth=$((125 << 20))
measure "$here/capped.sh" "$DATA" $iops $bandwidth -- "$SNOWMELT" probe "$db" > /dev/null
result=$DATA/small-memory.json
echo "# the same on $iops IOPS, $((bandwidth >> 20)) MiB/s, 16 clients"
"$here/capped.sh" "$DATA" $iops $bandwidth:$tenth -- \
    "${run[@]}" --clients 16 --memory $((tenth - overhead)) --format json > "$result"
python3 - "$result" $iops $bandwidth <<'END'
import json, sys
result, (iops, bandwidth) = json.load(open(sys.argv[1])), map(int, sys.argv[2:])
meters, seconds = result["meters"], result["seconds"]
queries = sum(query["count"] for query in result["queries"])
requests = sum(c["device_requests"] for d in meters["devices"] for c in d["classes"])
limit = max(requests / iops, meters["reads"]["bytes"] / bandwidth)
print(f"{result['qmph']:.0f} QMpH; per query {meters['reads']['pages'] / queries:.1f} pages in {requests / queries:.1f} requests")
print(f"{seconds:.1f} s, of which the device's IOPS or bandwidth explain {limit:.1f} s, {100 * limit / seconds:.0f} %")
END
rm -f "$result" "$db"/*.profile.json
