# Sourced by families.sh and qerrors.sh: the data set that was asked for, made if it is not there, as $data in $folder.
. "$(dirname "$0")/common.sh"
dataset=${1:-bsbm}
[ -d "$here/families/$dataset" ] || { echo "no data set $dataset: $(cd "$here/families" && ls -d */ | tr -d /\\n | xargs)" >&2; exit 2; }
scale=$dataset
case $dataset in
bsbm) scale=bsbm-${PRODUCTS:=28480} ;;
lubm) scale=lubm-${UNIVERSITIES:=10} ;;
watdiv) scale=watdiv-${SCALE:=10} ;;
esac
folder=$(realpath "$DATA")/families-$scale
data=$folder/data.nt
mkdir -p "$folder/engines"
ln -sfn "$(realpath -m "${RIVALS:-$DATA/rivals}")" "$folder/engines/python"

# RDF files of any format as N-Triples, by way of a database.
converted() { # files' folder, pattern of names
    local db=$folder/converting
    rm -rf "$db"
    find "$1" -type f -name "$2" -not -path '*/.git/*' -print0 | sort -z | xargs -0 -n 100000 "$SNOWMELT" load "$db" --lenient --lenient-most 5 >&2
    "$SNOWMELT" dump "$db" --format nt
    rm -rf "$db"
}

made() {
    case $dataset in
    bsbm) generate "$PRODUCTS" ;;
    debian) apt-cache dumpavail | python3 "$here/families/debian/convert.py" ;;
    nomisma)
        [ -n "${SOURCE:-}" ] || { SOURCE=$folder/source; git clone --quiet --depth 1 https://github.com/nomisma/data "$SOURCE" >&2; }
        converted "$SOURCE" '*.rdf'
        ;;
    ontologies)
        [ -n "${SOURCE:-}" ] || { SOURCE=$folder/source; mkdir -p "$SOURCE"; (cd "$SOURCE" && xargs -n 1 curl -sSfLO < "$here/families/ontologies/files.txt" >&2); }
        converted "$SOURCE" '*.owl'
        ;;
    lubm) python3 "$here/families/lubm/generate.py" "$UNIVERSITIES" ;;
    watdiv) python3 "$here/families/watdiv/generate.py" "$SCALE" ;;
    shapes) python3 "$here/families/shapes/generate.py" ;;
    esac
}

if [ ! -f "$data" ]; then
    made > "$data.part"
    mv "$data.part" "$data"
fi
