#!/usr/bin/env bash
# Whom the checkpointer makes wait: readers alone, with 1,000 durable commits a second, and with checkpoints without end besides; commits with and
# without a long journal behind them. Run it on a quiet machine, a few times.
#
#   benches/pauses.sh [seconds of each phase] [MiB of journal]
. "$(dirname "$0")/common.sh"
machine
echo "# load $(cut -d' ' -f1-3 /proc/loadavg)"
program=$(example pauses)
measure "$program" "$DATA/pauses" "${1:-20}" "${2:-900}"
