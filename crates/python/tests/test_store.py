"""`Store`, beside pyoxigraph's where that is installed: the same steps, the same outcome."""

import io

import pytest

import snowmelt

MODULES = [snowmelt]
try:
    import pyoxigraph

    MODULES.append(pyoxigraph)
except ImportError:
    pass


@pytest.fixture(params=MODULES, ids=[module.__name__ for module in MODULES])
def m(request):
    return request.param


def some(m):
    s, p, g = m.NamedNode("urn:s"), m.NamedNode("urn:p"), m.NamedNode("urn:g")
    return [
        m.Quad(s, p, m.Literal("1")),
        m.Quad(s, p, m.Literal(2)),
        m.Quad(s, m.NamedNode("urn:q"), m.Literal("x", language="en"), g),
        m.Quad(m.BlankNode("a"), p, s, g),
        m.Quad(m.BlankNode("a"), p, m.BlankNode("b")),
    ]


def filled(m):
    store = m.Store()
    store.extend(some(m))
    return store


def test_quads_come_and_go(m):
    store = m.Store()
    assert len(store) == 0 and not store
    for quad in some(m):
        store.add(quad)
        store.add(quad)
        assert quad in store
    assert len(store) == 5 and store
    assert set(store) == set(some(m))
    store.remove(some(m)[0])
    store.remove(some(m)[0])
    assert some(m)[0] not in store and len(store) == 4
    store.bulk_extend(iter(some(m)))
    assert len(store) == 5
    store.clear()
    assert list(store) == []


def test_blank_nodes_keep_their_labels(m):
    store = m.Store()
    node, p = m.BlankNode("mine"), m.NamedNode("urn:p")
    store.add(m.Quad(node, p, m.Literal(1)))
    store.add(m.Quad(node, p, m.Literal(2)))
    assert {q.object for q in store.quads_for_pattern(node, None, None)} == {m.Literal(1), m.Literal(2)}
    assert {row["s"] for row in store.query("SELECT ?s { ?s ?p ?o }")} == {node}
    assert {t.subject for t in store.query("CONSTRUCT WHERE { ?s ?p ?o }")} == {node}
    assert list(store.quads_for_pattern(m.BlankNode("other"), None, None)) == []


@pytest.mark.parametrize("given", range(16))
def test_patterns(m, given):
    store = filled(m)
    for quad in some(m):
        terms = [term if given >> at & 1 else None for at, term in enumerate(quad)]
        found = list(store.quads_for_pattern(*terms))
        expected = {q for q in some(m) if all(t is None or t == u for t, u in zip(terms, q))}
        assert set(found) == expected and len(found) == len(expected)


def test_queries(m):
    store = filled(m)
    rows = store.query("SELECT ?o { <urn:s> ex:p ?o } ORDER BY ?o", prefixes={"ex": "urn:"})
    assert rows.variables == [m.Variable("o")]
    assert {row["o"] for row in rows} == {m.Literal("1"), m.Literal(2)}
    assert bool(store.query("ASK { ?s ?p 2 }"))
    row = next(store.query("SELECT ?o { GRAPH ?g { ?s <urn:q> ?o } }"))
    assert row[0] == row["o"] == row[m.Variable("o")] == m.Literal("x", language="en")
    assert repr(row) == (
        "<QuerySolution o=<Literal value=x language=en>>"
    )
    substituted = store.query("SELECT ?p ?o { ?s ?p ?o }", substitutions={m.Variable("o"): m.Literal(2)})
    assert [row["p"] for row in substituted] == [m.NamedNode("urn:p")]
    graph = m.NamedNode("urn:g")
    assert len(list(store.query("SELECT * { ?s ?p ?o }", default_graph=graph))) == 2
    assert len(list(store.query("SELECT * { ?s ?p ?o }", default_graph=[graph]))) == 2
    assert len(list(store.query("SELECT * { GRAPH ?g { ?s ?p ?o } }", named_graphs=[graph]))) == 2
    assert bool(store.query("ASK { <#f> ?p ?o }", base_iri="urn:s")) is False
    assert len(list(store.query("CONSTRUCT { ?o ?p ?s } WHERE { ?s ?p ?o FILTER(isIRI(?o)) }"))) == 0


def test_syntax_errors_are_syntax_errors(m):
    for call in (m.Store().query, m.Store().update):
        with pytest.raises(SyntaxError):
            call("nonsense")
    with pytest.raises(SyntaxError):
        m.Store().load(input=b"<urn:s> oops", format=m.RdfFormat.TURTLE)
    with pytest.raises(SyntaxError):
        list(m.parse(input=b"<urn:s> oops", format=m.RdfFormat.TURTLE))


def test_the_place_of_an_error_is_that_of_the_text_given():
    def place(**options):
        with pytest.raises(SyntaxError) as raised:
            snowmelt.Store().query("SELECT ?s { ?s ?p }", **options)
        return raised.value.lineno, raised.value.offset, raised.value.text

    assert place(prefixes={"a": "urn:a", "b": "urn:b"}) == place()
    assert place()[2] == "SELECT ?s { ?s ?p }"


def test_updates(m):
    store = m.Store()
    store.update("INSERT DATA { <urn:s> ex:p 1 }", prefixes={"ex": "urn:"})
    store.update("DELETE { ?s ?p 1 } INSERT { ?s ?p 2 } WHERE { ?s ?p 1 }")
    assert list(store) == [m.Quad(m.NamedNode("urn:s"), m.NamedNode("urn:p"), m.Literal(2))]


def test_graphs(m):
    store = filled(m)
    graph = m.NamedNode("urn:g")
    assert list(store.named_graphs()) == [graph]
    assert store.contains_named_graph(graph) and store.contains_named_graph(m.DefaultGraph())
    assert not store.contains_named_graph(m.NamedNode("urn:h"))
    store.remove_graph(graph)
    assert list(store.named_graphs()) == [] and len(store) == 3
    store.clear_graph(m.DefaultGraph())
    assert len(store) == 0
    named = m.BlankNode("g")
    store.add(m.Quad(graph, graph, graph, named))
    assert list(store.named_graphs()) == [named] and store.contains_named_graph(named)
    store.remove_graph(named)
    assert len(store) == 0


def test_documents(m, tmp_path):
    store = m.Store()
    text = '<foo> <p> "1" .'
    for input in (text, text.encode(), io.StringIO(text), io.BytesIO(text.encode())):
        store.load(input, m.RdfFormat.TURTLE, base_iri="http://e/", to_graph=m.NamedNode("urn:g"))
    assert str(store) == '<http://e/foo> <http://e/p> "1" <urn:g> .\n'
    file = tmp_path / "x.nq"
    store.dump(str(file))
    other = m.Store()
    other.bulk_load(path=str(file))
    assert set(other) == set(store)
    out = io.BytesIO()
    store.dump(out, m.RdfFormat.TURTLE, from_graph=m.NamedNode("urn:g"), prefixes={"e": "http://e/"})
    assert out.getvalue() == b'@prefix e: <http://e/> .\ne:foo e:p "1" .\n'
    with pytest.raises(ValueError):
        store.dump(format=m.RdfFormat.TURTLE)
    with pytest.raises(ValueError):
        store.dump(str(tmp_path / "x.unknown"))
    quads = list(m.parse(input=text, format=m.RdfFormat.TURTLE, base_iri="http://e/"))
    assert m.serialize(quads, format=m.RdfFormat.N_TRIPLES) == b'<http://e/foo> <http://e/p> "1" .\n'
    with pytest.raises(ValueError):
        m.serialize(list(store), format=m.RdfFormat.TURTLE)
    assert m.RdfFormat.from_extension("ttl") == m.RdfFormat.TURTLE
    assert m.RdfFormat.from_media_type("application/n-quads").supports_datasets
    assert repr(m.RdfFormat.N_TRIPLES) == "<RdfFormat N-Triples>"


@pytest.mark.parametrize("format", ["JSON", "XML", "CSV", "TSV"])
def test_answers_as_documents(m, format):
    format = getattr(m.QueryResultsFormat, format)
    store = m.Store()
    store.update("INSERT DATA { <urn:s> <urn:p> 1, 'a\\n<b>', 'x'@en }")
    text = store.query("SELECT ?o { ?s ?p ?o }").serialize(format=format).decode()
    assert text.count("en") >= 1 or format == m.QueryResultsFormat.CSV
    if m is snowmelt and len(MODULES) == 2:
        other = pyoxigraph.Store()
        other.load(store.dump(format=m.RdfFormat.N_QUADS), pyoxigraph.RdfFormat.N_QUADS)
        same = getattr(pyoxigraph.QueryResultsFormat, format.name.split()[-1], None)
        ordered = "SELECT ?o { ?s ?p ?o } ORDER BY STR(?o)"
        for ours in (format,):
            theirs = pyoxigraph.QueryResultsFormat.from_media_type(ours.media_type)
            assert store.query(ordered).serialize(format=ours) == other.query(ordered).serialize(
                format=theirs
            )
            ask = "ASK { ?s ?p 1 }"
            if ours.file_extension in ("srj", "srx"):
                assert store.query(ask).serialize(format=ours) == other.query(ask).serialize(format=theirs)


def test_files(m, tmp_path):
    path = str(tmp_path / "db")
    store = m.Store(path)
    store.extend(some(m))
    store.flush()
    store.optimize()
    store.backup(str(tmp_path / "copy"))
    del store
    for place in (path, str(tmp_path / "copy")):
        store = m.Store.read_only(place)
        assert len(store) == 5
        with pytest.raises(OSError if m is snowmelt else RuntimeError):
            store.add(some(m)[0])
        del store


def test_terms_look_alike():
    if len(MODULES) == 1:
        pytest.skip("pyoxigraph is not installed")

    def looks(m):
        p = m.NamedNode("urn:p")
        terms = [
            p, m.BlankNode("b"), m.Literal("x"), m.Literal("x", language="EN"), m.Literal(1),
            m.Literal(1.5), m.Literal(True), m.Literal("1", datatype=p), m.DefaultGraph(),
            m.Variable("v"), m.Triple(p, p, m.Literal("1")), m.Quad(p, p, m.Literal("1"), p),
            m.Quad(p, p, p),
        ]
        return [(str(t), repr(t), getattr(t, "__match_args__", None)) for t in terms]

    ours, theirs = looks(snowmelt), looks(pyoxigraph)
    assert ours == theirs
    for make in (
        lambda m: m.NamedNode("no iri"),
        lambda m: m.BlankNode("not a label"),
        lambda m: m.Literal("x", language="not a tag"),
        lambda m: m.Variable("no name"),
    ):
        for m in MODULES:
            with pytest.raises(ValueError):
                make(m)


def test_what_it_has_not_is_said():
    store = snowmelt.Store()
    for options in (
        {"use_default_graph_as_union": True},
        {"custom_aggregate_functions": {snowmelt.NamedNode("urn:f"): print}},
        {"default_graph": [snowmelt.BlankNode()]},
        {"default_graph": [snowmelt.DefaultGraph()]},
    ):
        with pytest.raises(NotImplementedError):
            store.query("ASK {}", **options)


def test_many_are_removed_at_once():
    store = filled(snowmelt)
    store.remove_all(iter(some(snowmelt)[1:]))
    assert list(store) == some(snowmelt)[:1]


def test_a_writer_within_a_writer_is_refused():
    store = snowmelt.Store()

    def quads():
        yield some(snowmelt)[0]
        store.add(some(snowmelt)[1])

    with pytest.raises(snowmelt.TransactionError):
        store.extend(quads())
    assert len(store) == 0
    store.add(some(snowmelt)[1])
    assert len(store) == 1


def test_functions_of_python_are_called():
    """As pyoxigraph calls them: each row, with terms."""
    for m in MODULES:
        store = filled(m)
        shout = m.NamedNode("urn:shout")
        seen = []

        def call(term, seen=seen, m=m):
            seen.append(term)
            return m.Literal(term.value.upper() + "!")

        text = "SELECT ?x { VALUES ?t { 'a' 'b' } BIND(<urn:shout>(?t) AS ?x) }"
        rows = store.query(text, custom_functions={shout: call})
        assert sorted(row["x"].value for row in rows) == ["A!", "B!"]
        assert seen and all(isinstance(term, m.Literal) for term in seen)

        def fails(term):
            raise ValueError(term)

        for function in (fails, lambda term: None, lambda: m.Literal("too few arguments")):
            rows = store.query(text, custom_functions={shout: function})
            assert [row["x"] for row in rows] == [None, None]


def test_functions_see_the_labels_of_the_store():
    store = snowmelt.Store()
    node = snowmelt.BlankNode("given")
    name = snowmelt.NamedNode("urn:name")
    store.add(snowmelt.Quad(node, name, snowmelt.Literal("x")))
    same = {snowmelt.NamedNode("urn:same"): lambda term: term}
    text = "SELECT ?s ?t { ?s <urn:name> ?o BIND(<urn:same>(?s) AS ?t) ?t <urn:name> ?o }"
    assert [(row["s"], row["t"]) for row in store.query(text, custom_functions=same)] == [(node, node)]
    update = "INSERT { ?s <urn:loud> ?t } WHERE { ?s <urn:name> ?o BIND(<urn:loud>(?o) AS ?t) }"
    store.update(update, custom_functions={snowmelt.NamedNode("urn:loud"): lambda term: snowmelt.Literal(term.value * 2)})
    assert [quad.object for quad in store.quads_for_pattern(node, snowmelt.NamedNode("urn:loud"), None)] == [
        snowmelt.Literal("xx")
    ]
