#!/usr/bin/env bash
# Updates: INSERT DATA in large requests, and BSBM explore-and-update with every commit durable.
#
#   benches/update.sh [PRODUCTS] [TRANSACTIONS]      28480 (10 million triples) and 1000 unless given
. "$(dirname "$0")/common.sh"
products=${1:-28480}
transactions=${2:-1000}
machine
program=$(example insert)
measure "$program" "$DATA/insert-db" 10000 100

# The update set changes the database, so every run gets a fresh one.
set=$DATA/ud-$products.nt
[ -f "$set" ] || "$LAB" bsbm generate --products "$products" --update-transactions "$transactions" \
    ${WORDS:+--words "$WORDS"} -o "$set"
for clients in 1 4; do
    rm -rf "$DATA/db-ud"
    "$SNOWMELT" load "$DATA/db-ud" "$set" --memory 4GiB
    measure "$LAB" bsbm run "$DATA/db-ud" --use-case explore-and-update --updates "$set.update" \
        --products "$products" --clients $clients --mixes $((transactions / 2))
    "$SNOWMELT" check "$DATA/db-ud"
done
