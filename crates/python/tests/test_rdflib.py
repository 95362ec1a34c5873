"""rdflib on Snowmelt, beside rdflib on its own memory."""

import pytest

rdflib = pytest.importorskip("rdflib")
from rdflib import RDF, BNode, Dataset, Graph, Literal, Namespace, URIRef  # noqa: E402
from rdflib.compare import isomorphic  # noqa: E402

EX = Namespace("http://e/")
TEXT = """@prefix e: <http://e/> .
e:ann a e:Person ; e:age 30 ; e:name "Ann"@en ; e:knows [ e:name "Nobody" ; e:age 7 ] .
e:bob a e:Person ; e:age 31 ; e:list ( 1 2 3 ) ."""


@pytest.fixture(params=["Snowmelt", "Memory"])
def graph(request):
    graph = Graph(store=request.param)
    graph.parse(data=TEXT, format="turtle")
    yield graph
    graph.close()


def test_triples_come_back(graph):
    other = Graph().parse(data=TEXT, format="turtle")
    assert isomorphic(graph, other) and len(graph) == len(other)
    assert set(graph.subjects(RDF.type, EX.Person)) == {EX.ann, EX.bob}
    assert graph.value(EX.ann, EX.age) == Literal(30)
    assert (EX.ann, EX.age, Literal(30)) in graph
    assert len(list(rdflib.collection.Collection(graph, graph.value(EX.bob, EX.list)))) == 3


def test_blank_nodes_stay_themselves(graph):
    node = BNode()
    graph.add((node, EX.p, Literal(1)))
    graph.add((node, EX.q, EX.ann))
    assert node in set(graph.subjects(EX.p, None))
    assert set(graph.predicates(node)) == {EX.p, EX.q}
    graph.remove((node, None, None))
    assert not list(graph.predicate_objects(node))


def test_queries(graph):
    rows = graph.query("SELECT ?s ?age { ?s e:age ?age } ORDER BY ?age", initNs={"e": EX})
    assert [row.age.toPython() for row in rows] == [7, 30, 31]
    rows = graph.query("SELECT ?age { ?s <http://e/age> ?age }", initBindings={"s": EX.ann})
    assert [row[0] for row in rows] == [Literal(30)]
    rows = graph.query("SELECT ?age { <http://e/ann> <http://e/age> ?age }", initBindings={"x": EX.ann})
    assert len(rows) == 1
    assert graph.query("ASK { <http://e/ann> ?p ?o }").askAnswer
    made = graph.query("CONSTRUCT { ?a <http://e/is> ?b } { ?a <http://e/age> ?b }").graph
    assert len(made) == 3
    node = graph.value(EX.ann, EX.knows)
    rows = graph.query("SELECT ?n { ?s <http://e/name> ?n }", initBindings={"s": node})
    assert [str(row.n) for row in rows] == ["Nobody"]


def test_updates(graph):
    graph.update("DELETE { ?s e:age ?a } INSERT { ?s e:age 1 } WHERE { ?s e:age ?a }", initNs={"e": EX})
    assert set(graph.objects(None, EX.age)) == {Literal(1)}


def test_literals_are_not_changed(graph):
    literal = Literal("007", datatype=rdflib.XSD.integer, normalize=False)
    graph.add((EX.x, EX.p, literal))
    assert str(graph.value(EX.x, EX.p)) == "007"


@pytest.mark.parametrize("store", ["Snowmelt", "Memory"])
def test_datasets(store):
    data = Dataset(store=store)
    data.add((EX.s, EX.p, Literal(0)))
    named = data.graph(URIRef("urn:g"))
    named.add((EX.s, EX.p, Literal(1)))
    named.add((EX.s, EX.p, Literal(2)))
    assert len(named) == 2 and len(data) == 3
    assert {str(g.identifier) for g in data.graphs()} >= {"urn:g"}
    assert len(list(data.quads((None, None, None, None)))) == 3
    rows = data.query("SELECT ?o { GRAPH <urn:g> { ?s ?p ?o } }")
    assert {row.o.toPython() for row in rows} == {1, 2}
    assert {row.o.toPython() for row in named.query("SELECT ?o { ?s ?p ?o }")} == {1, 2}
    named.update("INSERT DATA { <urn:a> <urn:b> 3 }")
    assert len(named) == 3
    data.remove_graph(named)
    assert len(list(data.quads((None, None, None, None)))) == 1


def test_a_graph_is_found_again(tmp_path):
    graph = Graph(store="Snowmelt")
    graph.open(str(tmp_path / "db"), create=True)
    graph.parse(data=TEXT, format="turtle")
    count = len(graph)
    graph.close()
    graph = Graph(store="Snowmelt")
    graph.open(str(tmp_path / "db"))
    assert len(graph) == count and graph.value(EX.ann, EX.age) == Literal(30)
    graph.close()
