#!/usr/bin/env bash
# Explore, everything resident: in this process, and over HTTP with a connection for each query.
#
#   benches/warm.sh [PRODUCTS]      28480 (10 million triples) unless given
. "$(dirname "$0")/common.sh"
products=${1:-28480}
db=$(database "$products")
machine
for clients in 1 2; do
    measure "$LAB" bsbm run "$db" --use-case explore --clients $clients --mixes 1000 --warmup 1000
done

"$SNOWMELT" serve "$db" --listen 127.0.0.1:17878 &
server=$!
trap 'kill $server; wait $server' EXIT
until (exec 3<>/dev/tcp/127.0.0.1/17878) 2>/dev/null; do sleep 0.1; done
for clients in 1 4; do
    measure "$LAB" bsbm run --endpoint http://127.0.0.1:17878/sparql --connection-per-query \
        --products "$products" --clients $clients --mixes 1000 --warmup 1000
done
