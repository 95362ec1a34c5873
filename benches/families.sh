#!/usr/bin/env bash
# Many families of analytical queries on Snowmelt, Fluree and Oxigraph, query by query in one run: the best wall time of several rounds,
# processor time, memory, and whether the answers are the same. Writes a table and its summary in Markdown, and all figures in JSON.
#
#   benches/families.sh [DATASET] [load]      bsbm unless given; with "load" it ends when all engines have the data
#
#   bsbm         the Berlin SPARQL Benchmark's shop: PRODUCTS [28480: 10 million triples], WORDS
#   debian       packages and what they depend on, of `apt-cache dumpavail`
#   nomisma      coins and what is known of them: SOURCE, a checkout of github.com/nomisma/data [cloned]
#   ontologies   OBO ontologies: SOURCE, a folder of .owl files in RDF/XML [those of ontologies/files.txt, fetched]
#   lubm         universities, after the Lehigh University Benchmark: UNIVERSITIES [10]
#   watdiv       a shop with reviews and friends, after the Waterloo SPARQL Diversity Benchmark: SCALE [10: about 1 million triples]
#   shapes       chains, rings, trees, grids and cliques: graphs that paths are hard on
#
#   RIVALS     a Python environment with the other engines: python3 -m venv RIVALS && RIVALS/bin/pip install fluree oxigraph [DATA/rivals]
#   ENGINES    which, Snowmelt first: also virtuoso, jena [snowmelt,fluree,oxigraph]; crates/engines/src/adapters describes them.
#              duckdb is asked the families of DATASET/twins.sql, in SQL and on numbers: what an engine of tables does with their joins
#   ONLY       families or groups, as a pattern ["*"]
#   QUERIES    further files: .rq in our form, or .tsv as SPARQLoscope's generator writes it for an endpoint
#   ROUNDS     rounds of each family [6]; an engine has fewer once it took PATIENCE seconds for one [60]
#   TIMEOUT    seconds after which there is no answer [60]
#   MEMORY, RIVAL_MEMORY, LOAD_MEMORY   Snowmelt's [256MiB], of engines that have a setting [8GiB], while loading [4GiB]
#   COLD       1: Snowmelt's server is also killed and started anew before each family, without a warm list, for the time of its first answer
#   OUT        the path of the table and the figures, without .md and .json [in DATA]
#
# SNOWMELT, DATA as in common.sh. An engine's data is loaded once: remove DATA/families-DATASET/ENGINE to have it loaded anew.
. "$(dirname "$0")/families/data.sh"
step=${2:-run}
python3 -c 'import tomllib' 2> /dev/null || { echo "python3 is older than 3.11" >&2; exit 1; }
machine
export SNOWMELT OUT=${OUT:-$folder/$dataset-$(date -u +%F)}
SNOWMELT=$(realpath "$SNOWMELT")
exec python3 "$here/families/run.py" "$dataset" "$folder" "$data" "$step" ${QUERIES:-}
