#!/usr/bin/env bash
# The server over HTTP: what a mix costs its processor against a mix in process, how long a point query takes on a connection that stays, how fast large answers
# leave, and what many clients do to it.
#
#   benches/http.sh [PRODUCTS]      28480 (10 million triples) unless given
#
#   CLIENTS, SECONDS   of the run in which a third of the clients leave in the middle [256, 60]
. "$(dirname "$0")/common.sh"
db=$(database "${1:-28480}")
machine
exec python3 "$here/over_http.py" "$SNOWMELT" "$db" "${1:-28480}" "${CLIENTS:-256}" "${SECONDS_OF_CLIENTS:-60}"
