#!/usr/bin/env bash
# Experiment E5, asked by its readers: four tables on four disks of their own (JBOD) against fine and coarse stripe sets and a RAID 0 of the same
# disks, with one to eight queries. Virtual time: the figures are the same on any machine; under a minute besides building.
# Writes the picture to docs/src/img/jbod.svg and the table to standard output.
#
#   benches/jbod.sh
set -euo pipefail
cd "$(dirname "$0")/.."
cargo run --release -q -p snowmelt-benches --example jbod -- docs/src/img/jbod.svg
