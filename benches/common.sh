# Sourced by the other scripts: where things are, and how a measurement is announced.
#
#   SNOWMELT   the binary; snowmelt-lab lies beside it [target/release/snowmelt]
#   DATA       where data sets and databases go [/tmp/snowmelt-bench]; must be on the device to be measured
#   WORDS      the benchmark's own word lists   [none: made-up words]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SNOWMELT=${SNOWMELT:-$here/../target/release/snowmelt}
DATA=${DATA:-/tmp/snowmelt-bench}
[ -x "$SNOWMELT" ] || { echo "no $SNOWMELT: cargo build --release, or set SNOWMELT" >&2; exit 1; }
LAB=$(dirname "$SNOWMELT")/snowmelt-lab
# Before there were two programs, the one was both.
[ -x "$LAB" ] || { ! "$SNOWMELT" bsbm --help > /dev/null 2>&1 || LAB=$SNOWMELT; }
[ -x "$LAB" ] || { echo "no $LAB: cargo build --release -p snowmelt-lab-cli" >&2; exit 1; }
mkdir -p "$DATA"

machine() {
    echo "# $("$SNOWMELT" --version), $(uname -sr), $(nproc) processors, $(free -h | awk '/^Mem/ {print $2}') memory," \
         "$(findmnt -no SOURCE,FSTYPE -T "$DATA"), $(date -u +%F)"
}

# The path of an example, built if need be; --workspace, because the libraries are then those the other builds have made.
example() { # name
    (cd "$here/.." && cargo build --release --quiet --workspace --example "$1")
    echo "$(cd "$here/.." && cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/examples/$1"
}

# Prints a command, then runs it.
measure() {
    echo "\$ $*" | sed "s|$LAB|snowmelt-lab|g; s|$SNOWMELT|snowmelt|g"
    "$@"
}

generate() { # products
    "$LAB" bsbm generate --products "$1" ${WORDS:+--words "$WORDS"} -o -
}

# The database of so many products, made if it is not there.
database() { # products
    local db=$DATA/db-$1
    [ -f "$db/superblock" ] || generate "$1" | "$SNOWMELT" load "$db" - --format nt --memory 4GiB >&2
    echo "$db"
}
