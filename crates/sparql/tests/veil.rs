//! A hidden graph costs the same as a name that no database has: the same answer, the same lookups
//! and the same reads, cold and warm. Two differences are allowed. A row that is found in the
//! dictionary is one more row that is moved over. A string that is read lies on a page with other
//! terms of the query, or not: that is chance, and one page at most.

use std::path::Path;
use std::sync::Arc;

use snowmelt_database::meters::Activity;
use snowmelt_database::{Account, OpenOptions};
use snowmelt_graph::{GraphDatabase, GraphView};
use snowmelt_sparql::{QueryEngine, QueryKind, QueryOptions, ResultFormat, UpdateOptions};
use snowmelt_store::ReadAhead;

/// A graph that is there and hidden, and two names of nothing. All are equally long.
const HIDDEN: &str = "http://closed/ledger/of/accounts";
const UNKNOWN: [&str; 2] = ["http://closed/nobody/made/this/1", "http://absent/nobody/made/this/2"];

/// Every place of a query in which the name of a graph can stand, alone and beside what is seen.
fn queries() -> Vec<String> {
    let patterns = [
        "{ GRAPH <@> { ?s ?p ?o } }",
        "{ GRAPH <@> { <urn:s1> <urn:p1> ?o } }",
        "{ GRAPH <@> { ?s <urn:p1> ?o . ?o <urn:p2> ?x . ?y ?z ?x } }",
        "{ GRAPH <@> { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } }",
        "{ GRAPH <@> { ?s <urn:p1>+ ?o } }",
        "{ GRAPH <@> { <urn:s1> (<urn:p1>|<urn:p2>)* ?o } }",
        "{ GRAPH <@> { } }",
        "{ GRAPH <@> { BIND (1 AS ?o) } }",
        "{ ?s <urn:p1> ?o OPTIONAL { GRAPH <@> { ?s ?p ?x } } }",
        "{ ?s <urn:p1> ?o MINUS { GRAPH <@> { ?s ?p ?x } } }",
        "{ ?s <urn:p1> ?o FILTER NOT EXISTS { GRAPH <@> { ?s ?p ?x } } }",
        "{ { ?s <urn:p1> ?o } UNION { GRAPH <@> { ?s ?p ?o } } }",
        "{ VALUES ?g { <@> } GRAPH ?g { ?s ?p ?o } }",
        "{ VALUES ?g { <@> <http://open/a> } GRAPH ?g { ?s <urn:p1> ?o } }",
        "{ VALUES ?g { <@> } GRAPH ?g { } }",
        "{ GRAPH ?g { ?s <urn:p1> ?o } FILTER (?g = <@>) }",
        "{ GRAPH ?g { ?s <urn:p1> ?o } FILTER (?g IN (<@>, <http://open/b>)) }",
        "{ BIND (<@> AS ?g) GRAPH ?g { ?s ?p ?o } }",
        "{ BIND (IRI(\"@\") AS ?g) GRAPH ?g { ?s ?p ?o } }",
        "{ <@> ?p ?o }",
        "{ ?s ?p <@> }",
        "{ ?s <@> ?o }",
        "{ <urn:s1> <urn:p1>* <@> }",
        "{ { SELECT ?s { GRAPH <@> { ?s ?p ?o } } } }",
    ];
    let mut all = Vec::new();
    for pattern in patterns {
        all.push(format!("ASK {pattern}"));
        all.push(format!("SELECT (COUNT(*) AS ?n) {pattern}"));
        all.push(format!("SELECT * {pattern} ORDER BY ?s LIMIT 7"));
    }
    for from in ["FROM <@>", "FROM NAMED <@>", "FROM <@> FROM <http://open/a>", "FROM <@> FROM NAMED <@>"] {
        for pattern in ["{ ?s ?p ?o }", "{ GRAPH ?g { ?s ?p ?o } }", "{ GRAPH <@> { ?s ?p ?o } }"] {
            all.push(format!("SELECT (COUNT(*) AS ?n) {from} {pattern}"));
        }
    }
    for text in ["DESCRIBE <@>", "DESCRIBE <@> FROM <@>", "CONSTRUCT { ?s ?p ?o } { GRAPH <@> { ?s ?p ?o } }"]
    {
        all.push(text.to_owned());
    }
    all
}

fn options() -> OpenOptions {
    // Read ahead is what there is time for.
    let read_ahead = ReadAhead::parse("none").unwrap();
    OpenOptions {
        memory_bytes: 64 << 20,
        direct: false,
        extent_pages: 8,
        read_ahead,
        ..OpenOptions::default()
    }
}

/// A database whose indexes have several leaves; half of it is in the hidden graph, whose name is
/// in no quad besides.
fn fill(path: &Path) {
    let engine = QueryEngine::new(GraphDatabase::create(path, &[], &options()).unwrap());
    for graph in ["http://open/a", "http://open/b", HIDDEN] {
        let mut data = String::new();
        for i in 0..4000 {
            let (p, o) = (i % 5, (i * 7 + graph.len()) % 3000);
            data.push_str(&format!("<urn:s{i}> <urn:p{p}> <urn:s{o}> . "));
        }
        let update = format!("INSERT DATA {{ GRAPH <{graph}> {{ {data} [] <urn:p1> <urn:s1> }} }}");
        engine.update(&update, &UpdateOptions::default()).unwrap();
    }
}

/// Its answer, the rows that were moved over for it, and what else was done.
fn ask(engine: &QueryEngine, text: &str, view: &Arc<GraphView>) -> (String, u64, [u64; 3]) {
    let account = Account::alone();
    let options = QueryOptions {
        view: Some(view.clone()),
        account: Some(account.clone()),
        threads: 1,
        ..QueryOptions::default()
    };
    let result = engine.query(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    let format = match result.kind() {
        QueryKind::Graph => ResultFormat::NTriples,
        _ => ResultFormat::Tsv,
    };
    let mut out = Vec::new();
    result.write(format, &mut out).unwrap_or_else(|error| panic!("{text}: {error}"));
    let Activity { rnd, seq, disk, fork, .. } = account.activity();
    (String::from_utf8(out).unwrap(), seq, [rnd, disk, fork])
}

/// Labels of blank nodes are others in each engine.
fn without_labels(text: &str) -> String {
    let cell = |cell: &str| if cell.starts_with("_:") { "_:".to_owned() } else { cell.to_owned() };
    text.split_inclusive(['\t', '\n', ' ']).map(cell).collect()
}

#[test]
fn a_hidden_graph_costs_what_an_unknown_one_costs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    fill(&path);
    let view = Arc::new(GraphView::new(&["http://open/", "default"]));
    let mut unequal = Vec::new();
    let of_name = |name: &str| {
        // Each name on a database of its own that has just been opened: nothing is in memory.
        let mut found = Vec::new();
        for text in queries() {
            let engine = QueryEngine::new(GraphDatabase::open(&path, &options()).unwrap());
            let text = text.replace('@', name);
            // The name in the query may come back in the answer: it tells nothing of others.
            let mut cold = ask(&engine, &text, &view);
            cold.0 = without_labels(&cold.0).replace(name, "@");
            let warm = ask(&engine, &text, &view);
            found.push([cold, (String::new(), warm.1, warm.2)]);
        }
        found
    };
    let hidden = of_name(HIDDEN);
    for unknown in UNKNOWN.map(of_name) {
        for ((text, hidden), unknown) in queries().iter().zip(&hidden).zip(&unknown) {
            /// A name is looked up a few times: for its shape, its plan, its rows.
            const FOUND_ROWS: u64 = 8;
            let is_equal = hidden.iter().zip(unknown).all(|(hidden, unknown)| {
                let ([rnd, disk, fork], [other_rnd, other_disk, other_fork]) = (hidden.2, unknown.2);
                hidden.0 == unknown.0
                    && (rnd, fork) == (other_rnd, other_fork)
                    && disk.abs_diff(other_disk) <= 1
                    && hidden.1.abs_diff(unknown.1) <= FOUND_ROWS
            });
            if !is_equal {
                unequal.push(format!("{text}\n  hidden  {hidden:?}\n  unknown {unknown:?}"));
            }
        }
    }
    assert!(unequal.is_empty(), "{} differ:\n{}", unequal.len(), unequal.join("\n"));
}

#[test]
fn labels_of_blank_nodes_do_not_count_hidden_ones() {
    let dir = tempfile::tempdir().unwrap();
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options()).unwrap());
    let insert = |graph: &str| {
        let update = format!("INSERT DATA {{ GRAPH <{graph}> {{ [] <urn:p> 1 }} }}");
        engine.update(&update, &UpdateOptions::default()).unwrap();
    };
    let view = Arc::new(GraphView::new(&["http://open/"]));
    let labels = |view: Option<&Arc<GraphView>>| -> Vec<String> {
        let options = QueryOptions { view: view.cloned(), ..QueryOptions::default() };
        let result = engine.query("SELECT ?s { GRAPH ?g { ?s ?p ?o } } ORDER BY ?s", &options).unwrap();
        let mut out = Vec::new();
        result.write(ResultFormat::Tsv, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().skip(1).map(str::to_owned).collect()
    };
    insert("http://open/a");
    (0..3).for_each(|_| insert(HIDDEN));
    insert("http://open/a");
    let shown = labels(Some(&view));
    assert_eq!((shown.len(), labels(Some(&view))), (2, shown.clone()), "a node keeps its label");
    assert_ne!(shown[0], shown[1]);
    for label in &shown {
        assert!(label.len() == 35 && label.starts_with("_:h"), "{label}");
    }
    assert!(labels(None).contains(&"_:b4".to_owned()), "who sees all sees numbers");
}
