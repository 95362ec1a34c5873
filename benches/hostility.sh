#!/usr/bin/env bash
# The hostility suite at length: a million triples, large requests, each case alone and 64 times at once, in a memory cgroup of the budget and 128 MiB (as root).
#
#   sudo benches/hostility.sh [CASE]      only the cases with CASE in their name
#
# Prints each case with its time, the most memory that was resident, and what came of it.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 0 ] || export SNOWMELT_CASE=$1
exec cargo test --release -p snowmelt-cli --test hostility -- --ignored --nocapture --test-threads 1
