"""Answers as Arrow: types of columns, and the libraries that take them."""

import math

import pytest

from snowmelt import Database

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def db():
    with Database.in_memory(memory=256 << 20) as db:
        yield db


@pytest.mark.parametrize(
    "values, type, expected",
    [
        ("1 2 -3", "int64", [1, 2, -3]),
        ("1 UNDEF 3", "int64", [1, None, 3]),
        ("1 9223372036854775808", "double", [1.0, 9223372036854775808.0]),
        ("1e0 2.5e0 1", "double", [1.0, 2.5, 1.0]),
        ("1.25 2.5", "double", [1.25, 2.5]),
        ("true false", "bool", [True, False]),
        ("'1' '2'", "string", ["1", "2"]),
        ("1 'x'", "string", ["1", "x"]),
        ("1 true", "string", ["1", "true"]),
        ("<urn:a> 'ä'@de", "string", ["urn:a", "ä"]),
        ("UNDEF UNDEF", "string", [None, None]),
        ("'x'^^<http://www.w3.org/2001/XMLSchema#integer>", "string", ["x"]),
        ("'INF'^^<http://www.w3.org/2001/XMLSchema#double> 1", "double", [math.inf, 1.0]),
    ],
)
def test_types_of_columns(db, values, type, expected):
    table = pa.table(db.query(f"SELECT ?v {{ VALUES ?v {{ {values} }} }}"))
    assert str(table.schema.field("v").type) == type
    assert table["v"].to_pylist() == expected


def test_many_rows_and_the_rest_of_an_answer(db):
    db.load(b"".join(b"<urn:s%d> <urn:n> %d .\n" % (i, i) for i in range(150_000)), format="turtle")
    rows = db.query("SELECT ?s ?n { ?s <urn:n> ?n }")
    next(rows)
    table = pa.table(rows)
    assert table.num_rows == 149_999 and str(table.schema.field("n").type) == "int64"
    assert table["n"].num_chunks > 1
    assert pa.table(rows) == table and list(rows) == []
    none = pa.table(db.query("SELECT ?s { ?s <urn:nothing> ?n }"))
    assert none.num_rows == 0 and none.column_names == ["s"]
    assert db.query("SELECT ?s { ?s <urn:n> ?n }").to_arrow().num_rows == 150_000


def test_triples(db):
    db.update("INSERT DATA { <urn:s> <urn:p> _:b }")
    table = db.query("CONSTRUCT WHERE { ?s ?p ?o }").to_arrow()
    assert table.column_names == ["subject", "predicate", "object"]
    assert table["object"].to_pylist()[0].startswith("_:")


def test_errors_come_while_it_is_read(db):
    db.load(b"".join(b"<urn:s%d> <urn:n> %d .\n" % (i, i) for i in range(2000)), format="turtle")
    with pytest.raises(TimeoutError):
        cross = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?c+?f+?i = ?l) }"
        pa.table(db.query(cross, timeout=0.1))


def test_pandas(db):
    pytest.importorskip("pandas")
    frame = db.query("SELECT * { VALUES (?a ?b) { (1 'x') (2 'y') } }").to_pandas()
    assert list(frame["a"]) == [1, 2] and list(frame["b"]) == ["x", "y"]


def test_polars(db):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(db.query("SELECT * { VALUES (?a ?b) { (1 'x') (2 'y') } }"))
    assert frame["a"].sum() == 3


def test_duckdb(db):
    duckdb = pytest.importorskip("duckdb")
    answer = db.query("SELECT * { VALUES (?a ?b) { (1 'x') (2 'y') } }")
    assert duckdb.sql("SELECT sum(a) FROM answer").fetchall() == [(3,)]
