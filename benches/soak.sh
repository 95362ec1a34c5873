#!/usr/bin/env bash
# Long use of one server: writers, readers, loads, uploads, updates larger than memory, many of them cut off, datasets beside it, deletes, backups, sets of them, and kill -9 again and again. Everything acknowledged must be there, memory, descriptors and files must not grow.
#
#   benches/soak.sh [SECONDS]      3600 unless given; 120 is the least that means something
#
#   PRODUCTS   scale of the data under it   [1000: 350,000 triples]
#   MEMORY     the server's budget          [256MiB]
#   BACKUPS    on or off                    [on]
#
# The server is killed during the first two thirds; in the last third it lives on, and what it holds at the end is compared with what it held when that began.
# Prints a sample every ten seconds, and at the end p50, p99 and the longest time of each kind of request.
. "$(dirname "$0")/common.sh"
machine
exec python3 "$here/soak.py" "$SNOWMELT" "$DATA" "${1:-3600}"
