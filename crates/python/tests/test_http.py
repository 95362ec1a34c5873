"""The server of the wheel's command, as Python's SPARQL clients meet it."""

import subprocess
import time
import urllib.request

import pytest

from test_command import COMMAND, pytestmark  # noqa: F401  skips without the command

EX = "http://example.org/"


@pytest.fixture
def server(tmp_path):
    db = tmp_path / "db"
    child = subprocess.Popen(
        [COMMAND, "serve", str(db), "--listen", "127.0.0.1:0", "--memory", "256MiB"],
        stderr=subprocess.DEVNULL,
    )
    try:
        announcement = db / "server"
        until = time.monotonic() + 60
        while not (announcement.exists() and announcement.read_text().strip()):
            assert child.poll() is None and time.monotonic() < until, "the server does not start"
            time.sleep(0.02)
        yield f"http://{announcement.read_text().strip()}"
    finally:
        child.terminate()
        child.wait(30)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of rdflib's classes that it uses
def test_sparqlwrapper(server):
    wrapper = pytest.importorskip("SPARQLWrapper")
    change = wrapper.SPARQLWrapper(f"{server}/update")
    change.setMethod(wrapper.POST)
    change.setQuery(f'INSERT DATA {{ <{EX}ann> <{EX}name> "Ann"@en ; <{EX}age> 30 }}')
    change.query()
    ask = wrapper.SPARQLWrapper(f"{server}/sparql")
    ask.setQuery(f"SELECT ?name ?age {{ ?s <{EX}name> ?name ; <{EX}age> ?age }}")
    for method in [wrapper.GET, wrapper.POST]:
        ask.setMethod(method)
        ask.setReturnFormat(wrapper.JSON)
        (row,) = ask.query().convert()["results"]["bindings"]
        assert (row["name"]["value"], row["name"]["xml:lang"], row["age"]["value"]) == ("Ann", "en", "30")
    ask.setReturnFormat(wrapper.XML)
    assert "Ann" in ask.query().convert().toxml()
    ask.setQuery(f"CONSTRUCT WHERE {{ <{EX}ann> ?p ?o }}")
    for form in [wrapper.TURTLE, wrapper.RDFXML, wrapper.JSONLD, wrapper.N3]:
        ask.setReturnFormat(form)
        answer = ask.query().convert()
        assert len(answer) == 2 if not isinstance(answer, bytes) else b"Ann" in answer
    ask.setQuery("ASK {}")
    ask.setReturnFormat(wrapper.JSON)
    assert ask.query().convert()["boolean"] is True


def test_rdflib_stores(server):
    rdflib = pytest.importorskip("rdflib")
    from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

    store = SPARQLUpdateStore(f"{server}/sparql", f"{server}/update", autocommit=True)
    graph = rdflib.Graph(store, rdflib.URIRef(f"{EX}g"))
    subject, name = rdflib.URIRef(f"{EX}ann"), rdflib.URIRef(f"{EX}name")
    graph.add((subject, name, rdflib.Literal("Ann", lang="en")))
    graph.add((subject, name, rdflib.Literal('with "quotes"\nand lines')))
    assert len(graph) == 2
    assert (subject, name, rdflib.Literal("Ann", lang="en")) in graph
    graph.remove((subject, name, rdflib.Literal("Ann", lang="en")))
    assert [str(o) for o in graph.objects(subject, name)] == ['with "quotes"\nand lines']
    read = rdflib.Graph(SPARQLStore(f"{server}/sparql"), rdflib.URIRef(f"{EX}g"))
    assert [len(list(read.query("SELECT * { ?s ?p ?o }"))), len(read)] == [1, 1]


def test_rdflib_reads_what_the_server_writes(server):
    rdflib = pytest.importorskip("rdflib")
    trig = f'<{EX}a> <{EX}p> 1 . <{EX}g> {{ <{EX}b> <{EX}p> "two"@en }}'
    request = urllib.request.Request(
        f"{server}/graphs", trig.encode(), {"Content-Type": "application/trig"}, method="PUT"
    )
    assert urllib.request.urlopen(request).status == 204
    for media_type, form in [
        ("application/trig", "trig"),
        ("application/n-quads", "nquads"),
        ("application/ld+json", "json-ld"),
    ]:
        request = urllib.request.Request(f"{server}/graphs", headers={"Accept": media_type})
        data = rdflib.Dataset()
        data.parse(data=urllib.request.urlopen(request).read(), format=form)
        assert len(list(data.quads((None, rdflib.URIRef(f"{EX}p"), None, None)))) == 2, media_type
    description = rdflib.Graph()
    description.parse(f"{server}/sparql", format="turtle")
    triples = rdflib.URIRef("http://rdfs.org/ns/void#triples")
    assert rdflib.Literal(2) in set(description.objects(None, triples))
