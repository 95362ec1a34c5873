#!/usr/bin/env bash
# Is NEW as fast as OLD? Load, Explore (warm, in process, one client and four) and durable commits, in pairs whose order alternates (ABBA), and counts that must not grow.
#
#   benches/ab.sh OLD NEW [PAIRS]      9 pairs unless given; OLD and NEW are binaries or revisions, which are built
#
#   PRODUCTS   scale of the data          [2785: 1 million triples]
#   MIXES      Explore mixes of a client  [300, after 100 of warm-up]
#   COMMITS    commits in a run           [1500, one quad each, one client]
#   CELLS      products and mixes of the runs in virtual time [300:20]
#
# Each binary has databases of its own, because formats may differ. Speeds are compared as NEW / OLD within a pair; the median of the pairs must be at least 0.95.
# Pages, requests, bytes and seconds of the runs in virtual time (every read-ahead setting on modelled devices), journal bytes and syncs per commit, and bytes of the
# database do not depend on the machine: their sums (see judge_counts in ab.py) must be within 3 % of OLD, and the answers' digests equal. The exit status says
# whether all of that holds.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,14p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DATA=${DATA:-/tmp/snowmelt-bench}
mkdir -p "$DATA"

# The path of a binary, built if a revision was named.
binary() { # binary or revision
    if [ -f "$1" ] && [ -x "$1" ]; then realpath "$1"; return; fi
    local revision source
    revision=$(git -C "$here" rev-parse --short=12 --verify "$1^{commit}") || { echo "ab.sh: $1 is neither a binary nor a revision" >&2; exit 2; }
    source=$DATA/ab-$revision
    if [ ! -x "$source/target/release/snowmelt" ]; then
        [ -d "$source" ] || git -C "$here" worktree add --quiet --detach "$source" "$revision" >&2
        local programs=(-p snowmelt-cli)
        [ ! -d "$source/crates/lab-cli" ] || programs+=(-p snowmelt-lab-cli) # else the one program is both
        (cd "$source" && CARGO_TARGET_DIR=$source/target cargo build --release --quiet --bins "${programs[@]}") >&2
    fi
    echo "$source/target/release/snowmelt"
}
old=$(binary "$1")
new=$(binary "$2")
SNOWMELT=$new
. "$here/common.sh"
machine
echo "# old $old"
echo "# new $new"
exec python3 "$here/ab.py" "$old" "$new" "${3:-9}" "$DATA"
