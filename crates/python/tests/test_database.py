"""`Database`: the façade, as its documentation says."""

import io
import os
import pickle
import threading
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

import snowmelt
from snowmelt import BlankNode, Database, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Variable

PEOPLE = """INSERT DATA {
  <urn:ann> <urn:name> 'Ann' ; <urn:age> 30 ; <urn:knows> <urn:bob> .
  <urn:bob> <urn:name> 'Bob'@en ; <urn:score> 1.5 ; <urn:is> true }"""
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture
def db():
    with Database.in_memory(memory=256 << 20) as db:
        db.update(PEOPLE)
        yield db


def test_rows_come_by_name_index_and_variable(db):
    rows = db.query("SELECT ?s ?age ?mail { ?s <urn:age> ?age OPTIONAL { ?s <urn:mail> ?mail } }")
    assert rows.columns == ["s", "age", "mail"]
    assert rows.variables == [Variable("s"), Variable("age"), Variable("mail")]
    row = next(rows)
    assert row["s"] == row[0] == row[-3] == row[Variable("s")] == NamedNode("urn:ann")
    assert row["mail"] is None
    assert row.value("age") == 30
    assert row.values() == ("urn:ann", 30, None)
    assert row.asdict() == {"s": "urn:ann", "age": 30, "mail": None}
    s, age, mail = row
    assert age == Literal(30) and len(row) == 3
    with pytest.raises(KeyError):
        row["nobody"]
    with pytest.raises(IndexError):
        row[3]
    assert list(rows) == [] and list(rows) == []


def test_forms_of_queries(db):
    assert db.query("ASK { ?s <urn:age> 30 }") is True
    assert db.query("ASK { ?s <urn:age> 31 }") is False
    triples = list(db.query("CONSTRUCT { ?o <urn:known> ?s } { ?s <urn:knows> ?o }"))
    assert [str(t) for t in triples] == ["<urn:bob> <urn:known> <urn:ann>"]
    assert len(list(db.query("DESCRIBE <urn:bob>"))) == 3


@pytest.mark.parametrize(
    "value, found",
    [
        (30, True),
        (30.0, False),
        (Literal("30", datatype=NamedNode(XSD + "integer")), True),
        ("30", False),
    ],
)
def test_parameters_are_terms(db, value, found):
    assert db.query("ASK { ?s <urn:age> ?age }", age=value) is found
    assert db.query("ASK { ?s <urn:age> ?age }", {"age": value}) is found


def test_parameters_of_all_types(db):
    values = [
        "text", 7, 2**70, 1.5, True, Decimal("1.50"), date(2024, 2, 29),
        datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc), NamedNode("urn:x"),
    ]
    for value in values:
        row = next(db.query("SELECT (?v AS ?same) { }", v=value))
        expected = value.value if isinstance(value, NamedNode) else value
        assert row.value("same") == expected, value
        assert type(row.value("same")) is type(expected)
    with pytest.raises(TypeError):
        db.query("SELECT ?v { }", v=object())
    with pytest.raises(snowmelt.ParameterError):
        db.query("SELECT * { ?s ?p ?v }", v=BlankNode())
    with pytest.raises(snowmelt.ParameterError):
        db.query("SELECT * { ?s ?p ?o }", nobody=1)


def test_update_says_what_it_did(db):
    changes = db.update("DELETE { ?s <urn:age> ?a } INSERT { ?s <urn:age> ?n } WHERE { ?s <urn:age> ?a }", n=31)
    assert (changes.inserted, changes.deleted) == (1, 1)
    assert db.query("ASK { <urn:ann> <urn:age> 31 }")


def test_transactions_commit_or_leave_nothing(db):
    before = len(db)
    quad = Quad(NamedNode("urn:cyd"), NamedNode("urn:name"), Literal("Cyd"))
    with db.transaction() as tx:
        assert tx.insert([quad, quad]) == 1
        assert tx.query("ASK { <urn:cyd> ?p ?o }") and not db.query("ASK { <urn:cyd> ?p ?o }")
        assert tx.update("INSERT DATA { <urn:cyd> <urn:age> 7 }").inserted == 1
        assert tx.remove([quad]) == 1
    assert len(db) == before + 1
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as tx:
            tx.insert([quad])
            1 / 0
    with db.transaction() as tx:
        tx.insert([quad])
        tx.rollback()
    assert len(db) == before + 1
    with pytest.raises(snowmelt.TransactionError):
        tx.insert([quad])


def test_a_failed_step_dooms_a_transaction(db):
    before = len(db)
    with pytest.raises(snowmelt.TransactionError):
        with db.transaction() as tx:
            tx.update("INSERT DATA { <urn:x> <urn:p> 1 }")
            with pytest.raises(SyntaxError):
                tx.update("INSERT DATA { <urn:x>")
    assert len(db) == before


def test_a_thread_cannot_wait_for_itself(db):
    with db.transaction():
        for write in (
            lambda: db.update("INSERT DATA { <urn:x> <urn:p> 1 }"),
            lambda: db.load(b"<urn:x> <urn:p> 1 .", format="turtle"),
            lambda: db.transaction().__enter__(),
        ):
            with pytest.raises(snowmelt.TransactionError):
                write()
    db.update("INSERT DATA { <urn:x> <urn:p> 1 }")


def test_load_and_dump(db, tmp_path):
    file = tmp_path / "more.nt"
    file.write_text("".join(f"<urn:s{i}> <urn:p> \"{i}\" .\n" for i in range(1000)))
    seen = []
    loaded = db.load(file, progress=lambda *at: seen.append(at))
    assert (loaded.statements, loaded.quads, loaded.skipped) == (1000, 1006, 0)
    assert {phase for phase, *_ in seen} >= {"read"} or seen == []
    assert db.load(b"<urn:a> <urn:p> 1 .", format="turtle", graph="urn:g").statements == 1
    assert db.load(io.BytesIO(b"<urn:a> <urn:p> 2 ."), format=RdfFormat.TURTLE).statements == 1
    assert db.load(io.StringIO("<urn:a> <urn:p> 'ä' ."), format="text/turtle").statements == 1
    assert db.load(b"<urn:a> <urn:p> 3 .\n<urn:a> oops .\n", format="nt", lenient=True).skipped == 2
    dumped = db.dump(format="nq")
    assert len(dumped.splitlines()) == len(db)
    out = io.BytesIO()
    assert db.dump(out, format=RdfFormat.N_QUADS) is None
    assert out.getvalue() == dumped
    db.dump(tmp_path / "all.nq")
    assert (tmp_path / "all.nq").read_bytes() == dumped
    with Database.in_memory() as other:
        other.load(tmp_path / "all.nq")
        assert len(other) == len(db)


def test_errors_of_loads(db, tmp_path):
    with pytest.raises(snowmelt.DocumentError) as raised:
        db.load(b"<urn:a> <urn:p> 1 .\n<urn:a> oops .\n", format="turtle")
    assert isinstance(raised.value, SyntaxError) and raised.value.lineno == 2
    with pytest.raises(FileNotFoundError) as raised:
        db.load(tmp_path / "nothing.nt")
    assert isinstance(raised.value, snowmelt.InputError)
    assert raised.value.filename == str(tmp_path / "nothing.nt")
    with pytest.raises(ValueError):
        db.load(b"", format="nonsense")
    with pytest.raises(TypeError):
        db.load(7, format="turtle")

    class Broken(io.RawIOBase):
        def read(self, size=-1):
            raise KeyError("broken")

    with pytest.raises(KeyError):
        db.load(Broken(), format="turtle")

    def refuse(*at):
        raise LookupError("enough")

    big = b"".join(b"<urn:s%d> <urn:p> %d .\n" % (i, i) for i in range(200_000))
    before = len(db)
    with pytest.raises(LookupError):
        db.load(big, format="turtle", progress=refuse)
    assert len(db) == before


def test_errors_of_queries(db):
    with pytest.raises(snowmelt.QuerySyntaxError) as raised:
        db.query("SELECT ?s\nWHERE { ?s ?p }")
    error = raised.value
    assert isinstance(error, SyntaxError) and isinstance(error, snowmelt.Error)
    assert (error.lineno, error.offset, error.text) == (2, 15, "WHERE { ?s ?p }")
    assert error.report.splitlines()[1:] == ["  WHERE { ?s ?p }", " " * 16 + "^"]
    with pytest.raises(TimeoutError):
        # a condition upon all at once: a product that is only counted is not multiplied out
        cross = " ".join(f"?a{i} ?b{i} ?c{i} ." for i in range(24))
        every = ", ".join(f"STR(?c{i})" for i in range(24))
        db.query(f"ASK {{ {cross} FILTER(CONCAT({every}) = 'none') }}", timeout=0.05)
    with pytest.raises(ValueError):
        db.query("ASK {}", timeout=-1)


def test_files_are_opened_made_and_locked(tmp_path):
    path = tmp_path / "db"
    with pytest.raises(snowmelt.NotADatabaseError):
        Database.open(path)
    with Database.create(path, memory=128 << 20) as db:
        db.update(PEOPLE)
        with pytest.raises(FileExistsError):
            Database.create(path)
        with pytest.raises(snowmelt.LockedError):
            Database.open(path)
        db.backup(tmp_path / "copy")
        assert db.path == path
    assert db.closed
    with pytest.raises(ValueError):
        db.query("ASK {}")
    db.close()
    with Database.open(path, read_only=True) as db, pytest.raises(snowmelt.ReadOnlyError):
        db.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    with Database.open_or_create(tmp_path / "copy") as db:
        assert len(db) == 6 and db.check() == []
        db.compact()
    with pytest.raises(TypeError, match="memorry"):
        Database.open(path, memorry=1)
    with pytest.raises(snowmelt.SettingError):
        Database.open(path, read_ahead="nonsense")
    with pytest.raises(TypeError):
        Database.open(path, hints="no")


def test_hints_are_hidden(tmp_path, capfd):
    path = tmp_path / "db"
    with Database.create(path, memory=128 << 20, hints=False) as db:
        db.update(PEOPLE)
    # A hint that cannot be used is told, where hints are looked at.
    (path / "stripe-0.learned").write_bytes(b"nonsense")
    told = []
    for settings in ({}, {"hints": None}, {"hints": True}, {"hints": False}):
        capfd.readouterr()
        with Database.open(path, read_only=True, **settings) as db:
            assert len(db) == 6
        told.append("stripe-0.learned" in capfd.readouterr().err)
    assert told == [True, True, True, False]


def test_a_forked_child_is_refused(tmp_path):
    db = Database.create(tmp_path / "db", memory=128 << 20)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            db.update(PEOPLE)
            answer = b"wrote"
        except snowmelt.ClosedError:
            answer = b"refused"
        del db
        os.write(write, answer)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"refused"
    db.update(PEOPLE)
    assert len(db) == 6
    db.close()


def test_what_it_tells(db):
    assert db.stats()["quads"] == len(db) == 6
    assert "trees" in db.meters()
    assert "urn:age" in db.explain("SELECT ?s { ?s <urn:age> ?age }")
    assert "rows" in db.analyze("SELECT ?s { ?s <urn:age> ?age }")
    assert db.check() == []
    assert [q.object for q in db.quads(predicate=NamedNode("urn:age"))] == [Literal(30)]
    assert list(db.quads(graph_name=NamedNode("urn:nobody"))) == []
    assert len(list(db.quads(graph_name=DefaultGraph()))) == 6


def test_datasets(db):
    db.update("INSERT DATA { GRAPH <urn:g> { <urn:x> <urn:p> 1 } }")
    assert not db.query("ASK { <urn:x> ?p ?o }")
    assert db.query("ASK { <urn:x> ?p ?o }", default_graphs=["urn:g"])
    assert db.query("ASK { GRAPH ?g { <urn:x> ?p ?o } }", named_graphs=[NamedNode("urn:g")])
    assert not db.query("ASK { GRAPH ?g { <urn:x> ?p ?o } }", named_graphs=["urn:h"])


def test_threads_share_a_database(db):
    db.load(b"".join(b"<urn:s%d> <urn:n> %d .\n" % (i, i) for i in range(5000)), format="turtle")
    failures = []

    def work(number):
        try:
            for round in range(20):
                rows = db.query("SELECT ?n { ?s <urn:n> ?n FILTER(?n < ?most) }", most=100 + round)
                assert len(list(rows)) == 100 + round
                db.update(f"INSERT DATA {{ <urn:t{number}> <urn:r> {round} }}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []
    assert len(list(db.query("SELECT * { ?s <urn:r> ?o }"))) == 80


def test_one_answer_read_by_threads_is_refused_or_right(db):
    db.load(b"".join(b"<urn:s%d> <urn:n> %d .\n" % (i, i) for i in range(20000)), format="turtle")
    rows, counts, refused = db.query("SELECT ?n { ?s <urn:n> ?n }"), [0, 0, 0], []

    def work(number):
        while True:
            try:
                next(rows)
                counts[number] += 1
            except StopIteration:
                return
            except RuntimeError as error:
                refused.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sum(counts) == 20000


@pytest.mark.parametrize(
    "term",
    [
        NamedNode("urn:x"), BlankNode("b"), Literal("x"), Literal("x", language="en"), Literal(7),
        DefaultGraph(), Variable("v"), Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal(1)),
        snowmelt.Triple(BlankNode("b"), NamedNode("urn:p"), Literal(1.5)),
    ],
)
def test_terms_are_values(term):
    import copy

    again = pickle.loads(pickle.dumps(term))
    assert again == term and hash(again) == hash(term) and copy.deepcopy(term) is term
    assert term != "x" and repr(again) == repr(term)


def test_literals_as_python_values():
    def value(lexical, datatype):
        return Literal(lexical, datatype=NamedNode(XSD + datatype)).to_python()

    assert value("7", "long") == 7 and value("1e3", "double") == 1000.0
    assert value("1.10", "decimal") == Decimal("1.10") and value("1", "boolean") is True
    assert value("2024-02-29T00:00:00Z", "dateTime") == datetime(2024, 2, 29, tzinfo=timezone.utc)
    assert value("24:99", "time") == "24:99" and value("abc", "integer") == "abc"
    assert value("maybe", "boolean") == "maybe" and value("x", "anyURI") == "x"


def test_queries_call_functions_of_python(db):
    calls = []

    def length(term):
        calls.append(term)
        return len(term.value)

    text = "SELECT ?n ?l { ?s <urn:name> ?n BIND(<urn:length>(?n) AS ?l) } ORDER BY ?n"
    rows = db.query(text, functions={"urn:length": length})
    assert [row.value("l") for row in rows] == [3, 3]
    assert {term.value for term in calls} == {"Ann", "Bob"}
    calls.clear()
    same = "SELECT (<urn:length>('abc') AS ?l) { ?s ?p ?o }"
    assert {row.value("l") for row in db.query(same, functions={NamedNode("urn:length"): length})} == {3}
    once = len(calls)
    assert {row.value("l") for row in db.query(same, varying_functions={"urn:length": length})} == {3}
    assert once == 1 and len(calls) == once + 6
    with pytest.raises(TypeError, match="cannot be called"):
        db.query(text, functions={"urn:length": 3})
    assert db.update("INSERT { ?s <urn:l> ?l } WHERE { ?s <urn:name> ?n BIND(<urn:length>(?n) AS ?l) }",
                     functions={"urn:length": length}).inserted == 2


def test_functions_run_on_several_threads_and_cannot_write(db):
    """A function that waited for a lock with the GIL, or for its own update, would stop all of it."""
    told = []

    def writes(term):
        try:
            db.update("INSERT DATA { <urn:a> <urn:b> 1 }")
        except snowmelt.TransactionError as error:
            told.append(error)
        return db.query("ASK { <urn:ann> ?p ?o }")

    changes = db.update("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(!<urn:f>(?o)) }", functions={"urn:f": writes})
    assert changes.deleted == 0 and told

    def ask():
        for _ in range(20):
            rows = db.query("SELECT ?x { ?s ?p ?o BIND(<urn:f>(?o) AS ?x) }", varying_functions={"urn:f": lambda t: t})
            assert len(list(rows)) == 6

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_unknown_functions_are_warned_of(db):
    with pytest.warns(RuntimeWarning, match="there is no function <urn:none> of one argument"):
        rows = db.query("SELECT ?x { ?s <urn:age> ?o BIND(<urn:none>(?o) AS ?x) }")
    assert [row["x"] for row in rows] == [None]


def test_prefixes_and_descriptions(db):
    db.load(b"@prefix p: <urn:p:> . p:a p:b p:c .", format="ttl")
    assert db.prefixes == {"p": "urn:p:"}
    db.set_prefix("q", "urn:q:")
    assert db.remove_prefix("p") and not db.remove_prefix("p")
    assert db.prefixes == {"q": "urn:q:"}
    with pytest.raises(ValueError):
        db.set_prefix("a b", "urn:q:")
    assert len(list(db.query("DESCRIBE <urn:bob>"))) == 3
    assert len(list(db.query("DESCRIBE <urn:bob>", describe="symmetric"))) == 4
    with pytest.raises(ValueError, match="cbd, symmetric, labelled"):
        db.query("DESCRIBE <urn:bob>", describe="all")
