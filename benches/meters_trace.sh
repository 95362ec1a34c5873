#!/usr/bin/env bash
# Do the meters agree with the block layer? The stripe of a database lies alone on a file system of its own, on a loop device. A cold
# query runs under `snowmelt-lab trace` of that device, page by page and with read-ahead; requests and bytes of the trace are compared
# with those of `--meters=json`. What opening the database reads of the stripe (the map of extents, which is not counted) is measured
# by a query that reads nothing, and taken off.
#
#   sudo -E benches/meters_trace.sh [PRODUCTS]         [1000]: 350 thousand triples
#
#   SNOWMELT  the binary                               [target/release/snowmelt]
#   DATA      where the loop device's file goes        [/tmp/snowmelt-bench]
[ "$(id -u)" = 0 ] || { echo "a loop device and tracing need root" >&2; exit 1; }
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
products=${1:-1000}
work=$(mktemp -d -p "$DATA")
loop=
cleanup() {
    mountpoint -q "$work/mnt" && umount "$work/mnt"
    [ -z "$loop" ] || losetup -d "$loop"
    rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work/mnt"
truncate -s $((64 + products))M "$work/disk"
loop=$(losetup --find --show --direct-io=on "$work/disk")
mkfs.ext4 -q -F "$loop"
mount -o noatime "$loop" "$work/mnt"
machine
generate "$products" | "$SNOWMELT" load "$work/db" - --format nt --memory 1GiB --stripe "$work/mnt/stripe" 2> /dev/null
sync
# The file system's own blocks are read now, and stay in its cache.
dd if="$work/mnt/stripe" of=/dev/null bs=1M iflag=direct status=none

cat > "$work/nothing.rq" <<'Q'
ASK {}
Q
cat > "$work/query.rq" <<'Q'
SELECT (COUNT(?label) AS ?labels) (SUM(STRLEN(?label)) AS ?length) {
  ?product <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/productFeature> ?feature .
  ?product <http://www.w3.org/2000/01/rdf-schema#label> ?label .
  ?offer <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/product> ?product
}
Q
for rules in none planned auto; do
    for query in nothing query; do
        rm -f "$work/db/warm"
        "$LAB" trace --device "$loop" --out "$work/$rules-$query" -- "$SNOWMELT" query "$work/db" \
            --file "$work/$query.rq" --format csv --read-ahead "$rules" --meters=json > "$work/out" 2> "$work/$rules-$query.json"
    done
done
python3 - "$work" <<'PY'
import json, sys

work, wrong = sys.argv[1], 0
print("%-8s %10s %10s %14s %14s  by class" % ("rules", "requests", "traced", "bytes", "traced"))
for rules in ("none", "planned", "auto"):
    def traced(query):
        summary = json.loads(open(f"{work}/{rules}-{query}/summary.jsonl").readline())
        assert summary["events_lost"] == 0, "events were lost"
        reads = next(k for k in summary["kinds"] if k["kind"] == "read")
        return reads["requests"], reads["issued_sectors"] * 512
    def counted(query):
        lines = open(f"{work}/{rules}-{query}.json").read().splitlines()
        meters = json.loads(next(line for line in lines if line.startswith("{")))
        classes = {c["class"]: (c["device_requests"], c["bytes"] + c["gap_bytes"])
                   for d in meters["devices"] for c in d["classes"] if c["device_requests"]}
        return [sum(c[i] for c in classes.values()) for i in (0, 1)], classes
    (requests, size), classes = counted("query")
    (more, more_size), _ = counted("nothing")
    requests, size = requests - more, size - more_size
    (t, tb), (n, nb) = traced("query"), traced("nothing")
    t, tb = t - n, tb - nb
    print("%-8s %10d %10d %14d %14d  %s" % (rules, requests, t, size, tb, classes))
    wrong += (requests, size) != (t, tb)
print("they agree" if not wrong else "they differ in %d of 3" % wrong)
sys.exit(wrong > 0)
PY
