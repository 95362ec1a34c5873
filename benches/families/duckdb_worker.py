"""DuckDB in a process of its own, on numbers instead of terms: it loads a file, or answers SQL.

    duckdb_worker.py load FILE.duckdb FILE.nt MIB
    duckdb_worker.py serve FILE.duckdb MIB

`quads` has the numbers of subject, predicate and object, sorted by predicate, subject and object;
`terms` the text of each number and its value if it is a number; `q(p)` are subjects and objects of a
predicate. IRIs and prefixed names in a statement stand for their numbers, which are looked up before
the clock starts: what is compared is scans, joins and groups of integers, not strings.

Questions and answers go by pipes.py, and are as those of fluree_worker.py. Whole numbers come back as xsd:integer, others as
xsd:double, texts are terms.
"""

import re
import sys
import time

import duckdb

import pipes

INTEGER, DOUBLE = ("http://www.w3.org/2001/XMLSchema#" + kind for kind in ("integer", "double"))
PREFIX = re.compile(r"^prefix +(\w+): *<([^>]*)>\n", re.MULTILINE)
NAME = re.compile(r"<([^>\s]+:[^>\s]*)>|\b(\w+):(\w+)\b")

LOAD = """
CREATE TEMP TABLE texts AS
  SELECT split_part(line, ' ', 1) AS s, split_part(line, ' ', 2) AS p,
         rtrim(substr(line, length(split_part(line, ' ', 1)) + length(split_part(line, ' ', 2)) + 3), ' .') AS o
  FROM read_csv(?, columns={'line': 'VARCHAR'}, delim='\x01', quote='', escape='', header=false,
                auto_detect=false, max_line_size=67108864)
  WHERE line LIKE '<%' OR line LIKE '\\_%' ESCAPE '\\';
CREATE TABLE terms AS
  SELECT (row_number() OVER (ORDER BY term))::INTEGER AS id, term,
         try_cast(regexp_extract(term, '^"([-+0-9.eE]+)"\\^\\^<http://www.w3.org/2001/XMLSchema#', 1) AS DOUBLE) AS value
  FROM (SELECT s AS term FROM texts UNION SELECT p FROM texts UNION SELECT o FROM texts);
CREATE TABLE quads AS
  SELECT DISTINCT a.id AS s, b.id AS p, c.id AS o
  FROM texts JOIN terms a ON a.term = texts.s JOIN terms b ON b.term = texts.p JOIN terms c ON c.term = texts.o
  ORDER BY p, s, o;
CREATE MACRO q(of) AS TABLE SELECT s, o FROM quads WHERE p = of;
CHECKPOINT;
"""


def connect(path, mib):
    connection = duckdb.connect(path)
    connection.execute("SET memory_limit = '%sMiB'" % mib)
    return connection


def load(path, source, mib):
    connection = connect(path, mib)
    for statement in LOAD.split(";\n"):
        if statement.strip():
            connection.execute(statement, [source] if "read_csv(?" in statement else None)


def with_numbers(connection, text, known):
    """The statement with numbers in place of names. A name that the data has not is -1."""
    prefixes = dict(PREFIX.findall(text))

    def number(match):
        whole, prefix, name = match.groups()
        if prefix and prefix not in prefixes:
            return match.group()
        term = "<%s>" % (whole or prefixes[prefix] + name)
        if term not in known:
            row = connection.execute("SELECT id FROM terms WHERE term = ?", [term]).fetchone()
            known[term] = row[0] if row else -1
        return str(known[term])

    return NAME.sub(number, PREFIX.sub("", text))


def cell(value):
    """A value as kind, text, datatype, language."""
    if value is None:
        return None
    if isinstance(value, str):
        return ["iri", value[1:-1]] if value.startswith("<") else ["literal", value.strip('"')]
    return ["literal", str(value), DOUBLE if isinstance(value, float) else INTEGER]


def ask(connection, text):
    begun, used = time.perf_counter(), time.process_time()
    try:
        done = connection.execute(text)
        rows = done.fetchall()
    except duckdb.Error as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}
    took = {"ms": (time.perf_counter() - begun) * 1e3, "cpu_ms": (time.process_time() - used) * 1e3}
    return {**took, "names": [column[0] for column in done.description], "rows": [[cell(v) for v in row] for row in rows]}


def serve(path, mib):
    connection, known = connect(path, mib), {}
    pipes.serve(pipes.output(), lambda text: ask(connection, with_numbers(connection, text, known)))


{"load": load, "serve": serve}[sys.argv[1]](*sys.argv[2:])
