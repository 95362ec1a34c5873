#!/usr/bin/env bash
# Load rates: 10 million triples with a large and a small budget, then 100 million, streamed from the generator.
#
#   benches/load.sh [large]      with "large" also the 100 million
. "$(dirname "$0")/common.sh"
machine
nt=$DATA/28480.nt
[ -f "$nt" ] || generate 28480 > "$nt"
for memory in 4GiB 256MiB; do
    rm -rf "$DATA/load-test"
    measure "$SNOWMELT" load "$DATA/load-test" "$nt" --memory $memory
done
measure "$SNOWMELT" stats "$DATA/load-test"
rm -rf "$DATA/load-test"
if [ "${1:-}" = large ]; then
    echo '$ snowmelt-lab bsbm generate --products 284826 -o - | snowmelt load DB - --format nt --memory 4GiB'
    rm -rf "$DATA/db-284826"
    generate 284826 | "$SNOWMELT" load "$DATA/db-284826" - --format nt --memory 4GiB
    measure "$SNOWMELT" stats "$DATA/db-284826"
fi
