#!/usr/bin/env bash
# Each production of each language against the real server: in documents of 64 to 131,072 copies and levels, alone and 64 at once, in a memory cgroup of the budget and 128 MiB (as root).
#
#   sudo benches/grammars.sh [CASE]      only the places with CASE in their name, as "turtle: " or "DescribeQuery"
#
# Prints each place with its time, and the largest size that was taken. SNOWMELT_SEED takes other walks and another order.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 0 ] || export SNOWMELT_CASE=$1
exec cargo test --release -p snowmelt-cli --test grammars -- --ignored --nocapture --test-threads 1
