#!/usr/bin/env bash
# How far the optimiser's estimates are off: the q-errors of all operators of a data set's queries, after its load and once more after
# half of its subjects were replaced by updates. Writes tables in Markdown, and all operators in JSON.
#
#   benches/qerrors.sh [DATASET]       the data sets of families.sh, and how they are made; bsbm unless given
#
#   ONLY       families or groups, as a pattern ["*"]
#   QUERIES    further files of queries
#   TIMEOUT    seconds after which there is no answer [60]
#   REPLACE    no: without the updates
#   MEMORY, LOAD_MEMORY   Snowmelt's [256MiB], while loading [4GiB]
#   OUT        the path of the figures [in DATA]
#
# SNOWMELT, DATA as in common.sh; PRODUCTS, UNIVERSITIES, SCALE, SOURCE as in families.sh, whose data it uses.
. "$(dirname "$0")/families/data.sh"
export SNOWMELT OUT=${OUT:-$folder/qerrors-$(date -u +%F).json}
SNOWMELT=$(realpath "$SNOWMELT")
machine
exec python3 "$here/families/qerrors.py" "$dataset" "$folder" "$data" ${QUERIES:-}
