#!/usr/bin/env bash
# How soon a killed server answers: checkpointing held, kill -9, files thrown out of the page cache, then the time from exec to the first right answer.
# Each figure is the median of several restarts from the same journal. Needs python3; the capped volume also needs root.
#
#   [sudo -E] benches/restart.sh [small] [large]        both unless named
#
#   small   300 000 triples in 3000 transactions of 100; the bound is 0.5 s. Beside it Virtuoso, when virtuoso-t and isql are there
#   large   1 GiB of journal (MIB) in transactions of 2000 triples (EACH) over 10 million triples (PRODUCTS), on the device as it is, on the
#           simulated wide but slow volume, and with the device capped at 3000 IOPS and 125 MiB/s; the bound is 1 s + bytes ÷ 125 MiB/s
#
#   SNOWMELT, DATA, WORDS as in common.sh; MIB [1024], EACH [2000], PRODUCTS [28480], TURNS [3], MEMORY [4GiB]
. "$(dirname "$0")/common.sh"
parts=${*:-small large}
machine
echo "# load $(cut -d' ' -f1-3 /proc/loadavg); median (all) of ${TURNS:-3} restarts"
for part in $parts; do
    case $part in
    small)
        db=$DATA/restart-small
        rm -rf "$db"
        echo '<urn:first> <urn:is> "there" .' | "$SNOWMELT" load "$db" - --format nt 2> /dev/null
        python3 "$here/restart.py" small "$SNOWMELT" "$db" "$here"
        rm -rf "$db"
        ;;
    large)
        from=$(database "${PRODUCTS:-28480}")
        db=$DATA/restart-large
        rm -rf "$db"
        cp -r "$from" "$db"
        rm -f "$db/warm"
        python3 "$here/restart.py" large "$SNOWMELT" "$db" "$here"
        rm -rf "$db"
        ;;
    *)
        echo "no part is called $part: small, large" >&2
        exit 2
        ;;
    esac
done
