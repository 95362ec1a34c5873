#!/usr/bin/env bash
# Durable commits against a bare loop of overwriting preallocated blocks and fdatasync on the same device; restart with a journal to read.
#
#   benches/commits.sh [seconds of a turn] [MiB of journal]
. "$(dirname "$0")/common.sh"
machine
program=$(example commits)
measure "$program" "$DATA/commits" "${1:-2}" "${2:-1024}"
rm -rf "$DATA/commits"
