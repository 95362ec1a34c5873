package clients;

import java.util.Iterator;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.jena.atlas.web.HttpException;
import org.apache.jena.graph.Graph;
import org.apache.jena.graph.Node;
import org.apache.jena.graph.NodeFactory;
import org.apache.jena.graph.Triple;
import org.apache.jena.query.Dataset;
import org.apache.jena.query.DatasetFactory;
import org.apache.jena.query.QuerySolution;
import org.apache.jena.rdf.model.Model;
import org.apache.jena.rdf.model.ModelFactory;
import org.apache.jena.rdf.model.ResourceFactory;
import org.apache.jena.rdfconnection.RDFConnection;
import org.apache.jena.rdfconnection.RDFConnectionRemote;
import org.apache.jena.riot.RDFDataMgr;
import org.apache.jena.sparql.engine.http.QueryExceptionHTTP;
import org.apache.jena.sparql.core.DatasetGraph;
import org.apache.jena.sparql.exec.http.QueryExecutionHTTP;
import org.apache.jena.sparql.util.IsoMatcher;

/** Apache Jena's RDFConnection: queries, updates, graphs and whole datasets. */
public final class Jena {
    private static final String EX = "http://example.org/";
    private static final String G1 = EX + "g1";
    private static final String GRAPH = EX + "граф";
    private static final int MANY = 100_000;

    public static void main(String[] args) {
        String server = args[0];
        Dataset data = RDFDataMgr.loadDataset(args[1]);
        for (String query : new String[] {"query", "sparql"}) {
            try (RDFConnection c = RDFConnectionRemote.newBuilder()
                    .destination(server)
                    .queryEndpoint(query)
                    .updateEndpoint("update")
                    .gspEndpoint("graphs")
                    .build()) {
                datasets(c, data, args[1]);
                graphs(c, data);
                queries(c, data);
                updates(c);
                many(c);
                errors(server + "/" + query, c);
            }
        }
        Check.passed();
    }

    private static void datasets(RDFConnection c, Dataset data, String file) {
        c.update("CLEAR ALL");
        Check.yes("CLEAR ALL leaves nothing", c.fetchDataset().asDatasetGraph().isEmpty());
        c.putDataset(data);
        same("putDataset, fetchDataset", data, c.fetchDataset());
        c.putDataset(DatasetFactory.create());
        Check.yes("putDataset of nothing", c.fetchDataset().asDatasetGraph().isEmpty());
        c.loadDataset(file);
        same("loadDataset of a file", data, c.fetchDataset());
        Dataset more = DatasetFactory.create();
        more.addNamedModel(EX + "more", model("s", "p", "o"));
        c.loadDataset(more);
        Check.same("loadDataset adds", 4L, countGraphs(c) + 1);
        c.putDataset(file);
        same("putDataset of a file replaces", data, c.fetchDataset());
    }

    private static void graphs(RDFConnection c, Dataset data) {
        same("fetch of the default graph", data.getDefaultModel(), c.fetch());
        for (String name : new String[] {G1, GRAPH}) {
            same("fetch of " + name, data.getNamedModel(name), c.fetch(name));
        }
        Model one = model("s", "p", "one");
        Model two = model("s", "p", "two");
        String name = EX + "new graph?a=b&c#d".replace(" ", "%20");
        c.put(name, one);
        same("put", one, c.fetch(name));
        c.put(name, two);
        same("put replaces", two, c.fetch(name));
        c.load(name, one);
        Check.same("load adds", 2L, c.fetch(name).size());
        c.delete(name);
        fails("fetch of a deleted graph", 404, () -> c.fetch(name));
        fails("delete of a graph that is not there", 404, () -> c.delete(name));
        Model before = c.fetch();
        c.load(one);
        Check.same("load adds to the default graph", before.size() + 1, c.fetch().size());
        c.put(before);
        same("put of the default graph", before, c.fetch());
        c.delete();
        Check.same("delete of the default graph", 0L, c.fetch().size());
        same("and of no other", data.getNamedModel(G1), c.fetch(G1));
        c.putDataset(data);
    }

    private static void queries(RDFConnection c, Dataset data) {
        Check.yes("ASK", c.queryAsk("ASK { <" + EX + "ann> <" + EX + "age> 30 }"));
        Check.yes("ASK without an answer", !c.queryAsk("ASK { <" + EX + "ann> <" + EX + "age> 31 }"));
        same("CONSTRUCT", data.getDefaultModel(), c.queryConstruct("CONSTRUCT WHERE { ?s ?p ?o }"));
        same("CONSTRUCT of a graph", data.getNamedModel(GRAPH),
                c.queryConstruct("CONSTRUCT { ?s ?p ?o } { GRAPH <" + GRAPH + "> { ?s ?p ?o } }"));
        Model described = c.queryDescribe("DESCRIBE <" + EX + "Straße>");
        Check.same("DESCRIBE", 1L, described.size());
        // Each object of ann that is a literal comes back as the term it is.
        Graph expected = data.getDefaultModel().getGraph();
        Node ann = NodeFactory.createURI(EX + "ann");
        AtomicLong rows = new AtomicLong();
        c.querySelect("SELECT ?p ?o { <" + EX + "ann> ?p ?o FILTER isLiteral(?o) }", row -> {
            Node predicate = row.get("p").asNode();
            Node object = row.get("o").asNode();
            rows.incrementAndGet();
            boolean found = false;
            for (Iterator<Triple> i = expected.find(ann, predicate, Node.ANY); i.hasNext();) {
                found |= i.next().getObject().equals(object);
            }
            Check.yes("the term of " + predicate + ": " + object, found);
        });
        Check.same("literals of ann", 20L, rows.get());
        QuerySolution[] unbound = new QuerySolution[1];
        c.querySelect("SELECT ?a ?b { BIND(\"\" AS ?a) OPTIONAL { <urn:none> <urn:none> ?b } }",
                row -> unbound[0] = row);
        Check.same("an empty string", "", unbound[0].getLiteral("a").getLexicalForm());
        Check.yes("an unbound variable", !unbound[0].contains("b"));
        long joined = count(c, "SELECT * { GRAPH ?g { ?b <" + EX + "knows> ?a } ?a <" + EX + "age> ?age }");
        Check.same("a join of graphs", 1L, joined);
        String longQuery = "ASK { VALUES ?s { " + "<urn:a-long-query> ".repeat(5_000) + "} }";
        Check.yes("a query of 100 KB", c.queryAsk(longQuery));
    }

    private static void updates(RDFConnection c) {
        String text = "\"line 1\\nline 2 \\\"q\\\" 🎿\"@en-GB";
        c.update("INSERT DATA { GRAPH <urn:u> { <urn:a> <urn:b> " + text + " , 1.0 } } ;"
                + " INSERT { <urn:copy> ?p ?o } WHERE { GRAPH <urn:u> { ?s ?p ?o } }");
        Check.yes("INSERT DATA", c.queryAsk("ASK FROM <urn:u> { <urn:a> <urn:b> " + text + " }"));
        Check.same("INSERT WHERE", 2L, count(c, "SELECT * { <urn:copy> ?p ?o }"));
        c.update("DELETE WHERE { <urn:copy> ?p ?o } ; DROP GRAPH <urn:u>");
        Check.same("DELETE WHERE", 0L, count(c, "SELECT * { <urn:copy> ?p ?o }"));
        Check.yes("DROP", !c.queryAsk("ASK { GRAPH <urn:u> { ?s ?p ?o } }"));
    }

    private static void many(RDFConnection c) {
        Model model = ModelFactory.createDefaultModel();
        for (int n = 0; n < MANY; n++) {
            model.add(ResourceFactory.createResource(EX + "many/" + n),
                    ResourceFactory.createProperty(EX, "n"), ResourceFactory.createTypedLiteral(n));
        }
        String name = EX + "many";
        c.put(name, model);
        AtomicLong rows = new AtomicLong();
        AtomicLong sum = new AtomicLong();
        String all = "SELECT * { GRAPH <" + name + "> { ?s ?p ?o } }";
        c.querySelect(all, row -> {
            rows.incrementAndGet();
            sum.addAndGet(row.getLiteral("o").getLong());
        });
        Check.same("rows", (long) MANY, rows.get());
        Check.same("their sum", (long) MANY * (MANY - 1) / 2, sum.get());
        Check.same("triples of a large graph", (long) MANY, c.fetch(name).size());
        // A client that goes away early does no harm.
        try (var execution = c.query(all)) {
            Check.yes("a first row", execution.execSelect().hasNext());
            execution.abort();
        }
        Check.yes("a query after one that was given up", c.queryAsk("ASK {}"));
        c.delete(name);
    }

    private static void errors(String endpoint, RDFConnection c) {
        try (QueryExecutionHTTP query =
                QueryExecutionHTTP.service(endpoint).queryString("SELECT nonsense").build()) {
            query.execSelect();
            throw new AssertionError("nonsense was answered");
        } catch (QueryExceptionHTTP e) {
            Check.same("the status of a wrong query", 400, e.getStatusCode());
            Check.yes("its message: " + e.getResponse(), e.getResponse() != null && !e.getResponse().isBlank());
        }
    }

    private static void fails(String what, int status, Runnable request) {
        int[] got = {0};
        Check.fails(what, status, () -> {
            try {
                request.run();
            } catch (HttpException e) {
                got[0] = e.getStatusCode();
                throw e;
            }
        }, () -> got[0]);
    }

    private static Model model(String subject, String predicate, String object) {
        Model model = ModelFactory.createDefaultModel();
        model.createResource(EX + subject).addProperty(ResourceFactory.createProperty(EX, predicate), object);
        return model;
    }

    private static long count(RDFConnection c, String query) {
        AtomicLong rows = new AtomicLong();
        c.querySelect(query, row -> rows.incrementAndGet());
        return rows.get();
    }

    private static long countGraphs(RDFConnection c) {
        return count(c, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }");
    }

    /** Equal terms, not only equal values; blank nodes may have other names. */
    private static void same(String what, Model expected, Model got) {
        if (!IsoMatcher.isomorphic(expected.getGraph(), got.getGraph())) {
            Check.same(what, expected.listStatements().toList().toString(),
                    got.listStatements().toList().toString());
        }
        Check.yes(what, true);
    }

    private static void same(String what, Dataset expected, Dataset got) {
        DatasetGraph left = expected.asDatasetGraph();
        DatasetGraph right = got.asDatasetGraph();
        if (!IsoMatcher.isomorphic(left, right)) {
            Check.same(what, left.toString(), right.toString());
        }
        Check.yes(what, true);
    }
}
