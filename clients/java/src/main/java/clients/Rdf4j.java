package clients;

import java.io.File;
import java.io.FileInputStream;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import org.eclipse.rdf4j.model.IRI;
import org.eclipse.rdf4j.model.Literal;
import org.eclipse.rdf4j.model.Model;
import org.eclipse.rdf4j.model.Resource;
import org.eclipse.rdf4j.model.Statement;
import org.eclipse.rdf4j.model.Value;
import org.eclipse.rdf4j.model.ValueFactory;
import org.eclipse.rdf4j.model.impl.LinkedHashModel;
import org.eclipse.rdf4j.model.impl.SimpleValueFactory;
import org.eclipse.rdf4j.model.util.Models;
import org.eclipse.rdf4j.query.BooleanQuery;
import org.eclipse.rdf4j.query.GraphQuery;
import org.eclipse.rdf4j.query.QueryEvaluationException;
import org.eclipse.rdf4j.query.QueryResults;
import org.eclipse.rdf4j.query.TupleQuery;
import org.eclipse.rdf4j.query.TupleQueryResult;
import org.eclipse.rdf4j.query.Update;
import org.eclipse.rdf4j.query.impl.SimpleDataset;
import org.eclipse.rdf4j.repository.RepositoryConnection;
import org.eclipse.rdf4j.repository.sparql.SPARQLRepository;
import org.eclipse.rdf4j.rio.RDFFormat;
import org.eclipse.rdf4j.rio.RDFParser;
import org.eclipse.rdf4j.rio.Rio;
import org.eclipse.rdf4j.rio.helpers.StatementCollector;

/** Eclipse RDF4J's SPARQLRepository: statements, queries with bindings, transactions. */
public final class Rdf4j {
    private static final ValueFactory VF = SimpleValueFactory.getInstance();
    private static final String EX = "http://example.org/";
    private static final IRI ANN = VF.createIRI(EX, "ann");
    private static final IRI NAME = VF.createIRI(EX, "name");
    private static final IRI KNOWS = VF.createIRI(EX, "knows");
    private static final IRI G1 = VF.createIRI(EX, "g1");
    private static final IRI GRAPH = VF.createIRI(EX, "граф");
    private static final int MANY = 100_000;

    public static void main(String[] args) throws Exception {
        String server = args[0];
        for (String query : new String[] {"query", "sparql"}) {
            SPARQLRepository repository = new SPARQLRepository(server + "/" + query, server + "/update");
            try (RepositoryConnection c = repository.getConnection()) {
                Model data = load(c, new File(args[1]));
                reads(c, data);
                quads(repository);
                statements(c);
                tupleQueries(c, data);
                otherQueries(c, data);
                transactions(c);
                many(c);
            } finally {
                repository.shutDown();
            }
        }
        Check.passed();
    }

    private static Model load(RepositoryConnection c, File file) throws Exception {
        c.clear();
        Check.yes("isEmpty", c.isEmpty());
        Check.same("size of nothing", 0L, c.size());
        c.add(file, RDFFormat.TRIG);
        Check.yes("not isEmpty", !c.isEmpty());
        Model data = new LinkedHashModel();
        RDFParser parser = Rio.createParser(RDFFormat.TRIG);
        parser.setRDFHandler(new StatementCollector(data));
        try (FileInputStream in = new FileInputStream(file)) {
            parser.parse(in);
        }
        return data;
    }

    private static void reads(RepositoryConnection c, Model data) {
        Model defaultGraph = new LinkedHashModel(data.filter(null, null, null, (Resource) null));
        Check.same("size of the default graph", (long) defaultGraph.size(), c.size());
        Check.same("size of a graph", 2L, size(c, G1));
        Check.same("size of two graphs", 4L, size(c, G1, GRAPH));
        Check.same("contexts", Set.of(G1, GRAPH), new HashSet<>(c.getContextIDs().stream().toList()));
        same("getStatements", defaultGraph,
                new LinkedHashModel(c.getStatements(null, null, null).stream().toList()));
        same("getStatements of a graph", withoutGraph(data, GRAPH),
                new LinkedHashModel(c.getStatements(null, null, null, GRAPH).stream().toList()));
        Model exported = new LinkedHashModel();
        c.export(new StatementCollector(exported));
        same("export", defaultGraph, exported);
        exported.clear();
        c.export(new StatementCollector(exported), G1);
        same("export of a graph", withoutGraph(data, G1), exported);
        for (Statement each : defaultGraph.filter(ANN, null, null)) {
            if (each.getObject().isLiteral()) {
                Check.yes("hasStatement " + each, c.hasStatement(each, false));
                same("getStatements " + each, new LinkedHashModel(Set.of(each)), new LinkedHashModel(
                        c.getStatements(ANN, each.getPredicate(), each.getObject()).stream().toList()));
            }
        }
        Check.yes("another language", !c.hasStatement(ANN, NAME, VF.createLiteral("Ann", "en"), false));
        Check.yes("another graph", !c.hasStatement(ANN, NAME, null, false, G1));
    }

    private static void statements(RepositoryConnection c) {
        IRI graph = VF.createIRI("urn:graph:new");
        Literal hard = VF.createLiteral("a \"quote\" \\ and\r\n\ttabs, 🎿 'x'", "en-GB");
        c.add(ANN, NAME, hard);
        Check.yes("add", c.hasStatement(ANN, NAME, hard, false));
        c.remove(ANN, NAME, hard);
        Check.yes("remove", !c.hasStatement(ANN, NAME, hard, false));
        c.add(ANN, NAME, hard, graph);
        Check.yes("add to a graph", c.hasStatement(ANN, NAME, hard, false, graph));
        Check.yes("and to no other", !c.hasStatement(ANN, NAME, hard, false));
        c.add(ANN, KNOWS, ANN, graph);
        c.remove(ANN, NAME, null, graph);
        Check.same("remove by a pattern", 1L, size(c, graph));
        c.clear(graph);
        Check.same("clear of a graph", 0L, size(c, graph));
        Check.yes("and of no other", size(c, G1) == 2);
    }

    private static void tupleQueries(RepositoryConnection c, Model data) {
        TupleQuery query = c.prepareTupleQuery("SELECT ?p ?o WHERE { ?s ?p ?o }");
        query.setBinding("s", ANN);
        Model got = new LinkedHashModel();
        try (TupleQueryResult rows = query.evaluate()) {
            Check.yes("variables", rows.getBindingNames().containsAll(Set.of("p", "o")));
            rows.forEach(row -> got.add(ANN, (IRI) row.getValue("p"), row.getValue("o")));
        }
        Model expected = new LinkedHashModel(data.filter(ANN, null, null));
        same("a query with a binding", expected, got);
        // Any literal may be bound, and finds what it was bound to.
        TupleQuery subjects = c.prepareTupleQuery("SELECT ?s ?p WHERE { ?s ?p ?o }");
        for (Value value : expected.objects()) {
            if (value.isLiteral()) {
                subjects.setBinding("o", value);
                try (TupleQueryResult rows = subjects.evaluate()) {
                    Check.same("subjects of " + value, ANN, rows.next().getValue("s"));
                    Check.yes("no second one", !rows.hasNext());
                }
            }
        }
        TupleQuery graphs = c.prepareTupleQuery("SELECT ?s WHERE { ?s ?p ?o }");
        SimpleDataset dataset = new SimpleDataset();
        dataset.addDefaultGraph(G1);
        graphs.setDataset(dataset);
        Check.same("setDataset, the default graph", 2L, count(graphs));
        graphs = c.prepareTupleQuery("SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o } }");
        dataset = new SimpleDataset();
        dataset.addNamedGraph(GRAPH);
        graphs.setDataset(dataset);
        Check.same("setDataset, named graphs", 2L, count(graphs));
        graphs.setMaxExecutionTime(60);
        Check.same("a query with a time limit", 2L, count(graphs));
        TupleQuery optional = c.prepareTupleQuery(
                "SELECT ?a ?b { BIND(\"\" AS ?a) OPTIONAL { <urn:none> <urn:none> ?b } }");
        try (TupleQueryResult rows = optional.evaluate()) {
            var row = rows.next();
            Check.same("an empty string", VF.createLiteral(""), row.getValue("a"));
            Check.yes("an unbound variable", !row.hasBinding("b"));
        }
        String largeIn = "SELECT ?s { VALUES ?s { " + "<urn:a-long-query> ".repeat(5_000) + "} }";
        Check.same("a query of 100 KB", 5_000L, count(c.prepareTupleQuery(largeIn)));
    }

    private static void otherQueries(RepositoryConnection c, Model data) {
        BooleanQuery ask = c.prepareBooleanQuery("ASK { ?s <" + EX + "age> ?age }");
        ask.setBinding("age", VF.createLiteral("30", VF.createIRI("http://www.w3.org/2001/XMLSchema#integer")));
        Check.yes("a boolean query", ask.evaluate());
        ask.setBinding("age", VF.createLiteral("31", VF.createIRI("http://www.w3.org/2001/XMLSchema#integer")));
        Check.yes("another binding", !ask.evaluate());
        GraphQuery construct =
                c.prepareGraphQuery("CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }");
        construct.setBinding("g", GRAPH);
        same("a graph query", withoutGraph(data, GRAPH), QueryResults.asModel(construct.evaluate()));
        Model straße = QueryResults.asModel(c.prepareGraphQuery("DESCRIBE <" + EX + "Straße>").evaluate());
        Check.same("DESCRIBE", 1, straße.size());
        Update update = c.prepareUpdate("INSERT { ?s <urn:copied> ?o } WHERE { ?s <" + EX + "quote> ?o }");
        update.setBinding("s", ANN);
        update.execute();
        Check.yes("an update with a binding", c.hasStatement(ANN, VF.createIRI("urn:copied"),
                data.filter(ANN, VF.createIRI(EX, "quote"), null).objects().iterator().next(), false));
        c.prepareUpdate("DELETE WHERE { ?s <urn:copied> ?o }").execute();
        Check.yes("DELETE WHERE", !c.hasStatement(null, VF.createIRI("urn:copied"), null, false));
        Update using = c.prepareUpdate("INSERT { GRAPH <urn:using> { ?s ?p ?o } } WHERE { ?s ?p ?o }");
        SimpleDataset dataset = new SimpleDataset();
        dataset.addDefaultGraph(G1);
        using.setDataset(dataset);
        using.execute();
        Check.same("an update with a dataset", 2L, size(c, VF.createIRI("urn:using")));
        c.clear(VF.createIRI("urn:using"));
        try {
            c.prepareTupleQuery("SELECT nonsense").evaluate();
            throw new AssertionError("nonsense was answered");
        } catch (QueryEvaluationException e) {
            Check.yes("a wrong query: " + e, e.getMessage().contains("line 1, column 8"));
        }
    }

    private static void transactions(RepositoryConnection c) {
        IRI graph = VF.createIRI("urn:graph:transaction");
        c.begin();
        c.add(ANN, NAME, VF.createLiteral("one"), graph);
        c.add(ANN, NAME, VF.createLiteral("two\n\"2\""), graph);
        c.remove(ANN, NAME, VF.createLiteral("one"), graph);
        Check.yes("active", c.isActive());
        Check.same("nothing before the commit", 0L, size(c, graph));
        c.commit();
        Check.yes("not active", !c.isActive());
        Check.same("the commit", Set.of("two\n\"2\""), objects(c, graph));
        c.begin();
        c.clear(graph);
        c.rollback();
        Check.same("the rollback", 1L, size(c, graph));
        c.clear(graph);
    }

    private static void many(RepositoryConnection c) {
        IRI graph = VF.createIRI("urn:graph:many");
        IRI number = VF.createIRI(EX, "n");
        c.begin();
        Model model = new LinkedHashModel();
        for (int n = 0; n < MANY; n++) {
            model.add(VF.createIRI(EX + "many/" + n), number, VF.createLiteral(n));
        }
        c.add(model, graph);
        c.commit();
        long sum = 0;
        long rows = 0;
        TupleQuery query = c.prepareTupleQuery("SELECT ?o { GRAPH <urn:graph:many> { ?s ?p ?o } }");
        try (TupleQueryResult result = query.evaluate()) {
            while (result.hasNext()) {
                sum += ((Literal) result.next().getValue("o")).longValue();
                rows++;
            }
        }
        Check.same("rows", (long) MANY, rows);
        Check.same("their sum", (long) MANY * (MANY - 1) / 2, sum);
        Check.same("triples of a large graph", (long) MANY, size(c, graph));
        // A client that goes away early does no harm.
        try (TupleQueryResult result = query.evaluate()) {
            Check.yes("a first row", result.hasNext());
        }
        c.clear(graph);
        Check.same("a query after one that was given up", 0L, size(c, graph));
    }

    /** RepositoryConnection.size(graphs) of 5.3.1 counts the default graph, except in quad mode. */
    private static long size(RepositoryConnection c, Resource... graphs) {
        return c.getStatements(null, null, null, graphs).stream().count();
    }

    /** In quad mode graphs can be counted, and statements have the graphs that were asked for. */
    private static void quads(SPARQLRepository repository) {
        repository.enableQuadMode(true);
        try (RepositoryConnection c = repository.getConnection()) {
            Check.yes("not isEmpty in quad mode", !c.isEmpty());
            Check.same("size of a graph in quad mode", 2L, c.size(G1));
            Check.same("size of two graphs in quad mode", 4L, c.size(G1, GRAPH));
        } finally {
            repository.enableQuadMode(false);
        }
    }

    private static Set<String> objects(RepositoryConnection c, IRI graph) {
        Set<String> objects = new TreeSet<>();
        c.getStatements(null, null, null, graph).forEach(each -> objects.add(each.getObject().stringValue()));
        return objects;
    }

    private static long count(TupleQuery query) {
        try (TupleQueryResult rows = query.evaluate()) {
            return rows.stream().count();
        }
    }

    /** The triples of a graph: a SPARQL endpoint does not say where a triple is from. */
    private static Model withoutGraph(Model data, IRI graph) {
        Model triples = new LinkedHashModel();
        data.filter(null, null, null, graph)
                .forEach(each -> triples.add(each.getSubject(), each.getPredicate(), each.getObject()));
        return triples;
    }

    /** Equal terms; blank nodes may have other names. */
    private static void same(String what, Model expected, Model got) {
        if (!Models.isomorphic(expected, got)) {
            Check.same(what, expected.toString(), got.toString());
        }
        Check.yes(what, true);
    }
}
