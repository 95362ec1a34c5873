"""Fluree in a process of its own: it loads a file, or answers queries on its standard input.

    fluree_worker.py load FOLDER FILE.nt
    fluree_worker.py serve FOLDER

Queries and answers go by pipes.py. An answer is {"ms", "cpu_ms", "names", "rows"}, of an ASK {"ms",
"cpu_ms", "asked"}, or {"error"}. Times are those of the call alone: no transport is in them.
"""

import sys
import time

import fluree

import pipes

LEDGER = "data"


def load(folder, source):
    with fluree.connect(folder) as connection:
        connection.create(LEDGER, source=source)


def ask(native, ledger, text):
    begun, used = time.perf_counter(), time.process_time()
    try:
        answer = native.query_sparql(ledger, text)
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}
    took = {"ms": (time.perf_counter() - begun) * 1e3, "cpu_ms": (time.process_time() - used) * 1e3}
    if answer[0] == "ask":
        return {**took, "asked": answer[1]}
    return {**took, "names": list(answer[1]), "rows": [list(row) for row in answer[2]]}


def serve(folder):
    out = pipes.output()
    connection = fluree.connect(folder, indexing=False)
    # The package's own query() makes Python's values of literals, which lose their text.
    native, ledger = connection._native, connection.ledger(LEDGER)._id
    pipes.serve(out, lambda text: ask(native, ledger, text))


{"load": load, "serve": serve}[sys.argv[1]](*sys.argv[2:])
