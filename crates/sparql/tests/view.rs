//! A view answers as a database that has nothing but its graphs; an update under it changes
//! nothing else.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{DumpFormat, GraphDatabase, GraphView};
use snowmelt_sparql::{QueryEngine, QueryError, QueryKind, QueryOptions, ResultFormat, UpdateOptions};
use tempfile::TempDir;

/// Graphs and their triples; hidden ones have the same subjects, predicates and classes, and some
/// of their own. Labels and properties are those of Explore's query 4, in which two sets of
/// products are united.
const GRAPHS: [(&str, &str); 6] = [
    ("", r#"<urn:s1> a <urn:Product> ; <urn:label> "default one" ; <urn:next> <urn:s2> ."#),
    (
        "http://open/a",
        r#"<urn:s1> a <urn:Product> ; <urn:label> "one" ; <urn:feature> <urn:f1> , <urn:f2> ; <urn:num> 5 ; <urn:next> <urn:s2> .
           <urn:s2> a <urn:Product> ; <urn:label> "two" ; <urn:feature> <urn:f1> ; <urn:num> 9 ; <urn:has> _:b . _:b <urn:note> "open note" ."#,
    ),
    (
        "http://open/b",
        r#"<urn:s3> a <urn:Product> ; <urn:label> "three" ; <urn:feature> <urn:f1> , <urn:f3> ; <urn:num> 700 .
           <urn:s2> <urn:next> <urn:s3> ."#,
    ),
    (
        "http://closed/a",
        r#"<urn:s1> <urn:label> "SECRET one" ; <urn:feature> <urn:f3> ; <urn:next> <urn:s9> ; <urn:has> _:c . _:c <urn:note> "SECRET note" .
           <urn:s9> a <urn:Product> , <urn:Hidden> ; <urn:label> "SECRET nine" ; <urn:feature> <urn:f1> , <urn:f2> ; <urn:num> 6 ."#,
    ),
    (
        "urn:closed",
        r#"<urn:s2> <urn:hidden> "SECRET" ; <urn:next> <urn:s1> . <http://open/a> <urn:label> "SECRET name" ."#,
    ),
    ("http://op", r#"<urn:s1> <urn:label> "SECRET prefix" ."#),
];

const QUERIES: &[&str] = &[
    "SELECT * { ?s ?p ?o }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?g { GRAPH ?g { } }",
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
    "SELECT (COUNT(DISTINCT ?s) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
    "SELECT DISTINCT ?p { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?p (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?p",
    "SELECT DISTINCT ?c { GRAPH ?g { ?s a ?c } }",
    "SELECT (MAX(?n) AS ?m) { GRAPH ?g { ?s <urn:num> ?n } }",
    "ASK { GRAPH ?g { ?s <urn:hidden> ?o } }",
    "ASK { GRAPH <urn:closed> { ?s ?p ?o } }",
    "ASK { GRAPH <http://closed/a> { } }",
    "SELECT * { GRAPH <http://open/a> { ?s <urn:label> ?l } }",
    "SELECT * { GRAPH <http://closed/a> { ?s <urn:label> ?l } }",
    "SELECT * { VALUES ?g { <http://closed/a> <http://open/a> } GRAPH ?g { <urn:s1> <urn:label> ?l } }",
    "SELECT * { VALUES ?g { <http://closed/a> <http://open/a> } GRAPH ?g { ?s ?p ?o } }",
    "SELECT * { GRAPH ?g { ?s <urn:num> ?n } GRAPH ?h { ?s <urn:label> ?l } }",
    "SELECT * { GRAPH ?g { <urn:s1> <urn:next>* ?x } }",
    "SELECT * { GRAPH ?g { ?x <urn:next>+ ?y } }",
    "SELECT * { GRAPH <http://closed/a> { <urn:s1> <urn:next>+ ?x } }",
    "SELECT * { VALUES ?g { <urn:closed> <http://open/b> } GRAPH ?g { <urn:s2> (<urn:next>|<urn:none>)+ ?x } }",
    "SELECT * { <urn:s1> <urn:next>+ ?x }",
    "SELECT * { GRAPH ?g { ?s <urn:label> ?l OPTIONAL { ?s <urn:num> ?n } } }",
    "SELECT * { GRAPH ?g { ?s a <urn:Product> FILTER NOT EXISTS { ?s <urn:next> ?o } } }",
    "SELECT * { GRAPH ?g { ?s a <urn:Product> } MINUS { GRAPH ?h { ?s <urn:num> 700 } } }",
    "SELECT * FROM <http://closed/a> FROM <http://open/a> { ?s <urn:label> ?l }",
    "SELECT * FROM <http://open/a> FROM <http://open/b> { ?s ?p ?o }",
    "SELECT * FROM <http://closed/a> { ?s ?p ?o }",
    "SELECT * FROM NAMED <http://closed/a> FROM NAMED <http://open/b> { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * FROM NAMED <http://open/b> { GRAPH <http://open/b> { ?s ?p ?o } }",
    "SELECT * FROM NAMED <http://open/b> { GRAPH <http://open/a> { ?s ?p ?o } }",
    "SELECT DISTINCT ?s ?l { GRAPH ?g {
        { ?s <urn:label> ?l ; a <urn:Product> ; <urn:feature> <urn:f1> , <urn:f2> ; <urn:num> ?n FILTER (?n > 3) }
        UNION
        { ?s <urn:label> ?l ; a <urn:Product> ; <urn:feature> <urn:f1> , <urn:f3> ; <urn:num> ?n FILTER (?n > 100) }
     } } ORDER BY ?l LIMIT 10 OFFSET 0",
    "DESCRIBE <urn:s1>",
    "DESCRIBE ?s { GRAPH ?g { ?s a <urn:Product> } }",
    "DESCRIBE <urn:s1> <urn:s2> <urn:s9> FROM <http://open/a> FROM <http://closed/a>",
    "CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * { <http://open/a> ?p ?o }",
    "SELECT ?s { GRAPH ?g { ?s <urn:label> ?l } } ORDER BY ?l",
    "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s <urn:label> ?l FILTER (?l > \"S\") } }",
];

const VIEWS: [&[&str]; 5] =
    [&["http://open/"], &["default"], &["default", "http://open/"], &["http://open/a", "urn:none"], &[]];

fn engine(has: impl Fn(Option<&str>) -> bool) -> (TempDir, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    let options =
        OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
    for (name, triples) in GRAPHS {
        let graph = (!name.is_empty()).then_some(name);
        if has(graph) {
            let data =
                graph.map_or_else(|| triples.to_owned(), |graph| format!("GRAPH <{graph}> {{ {triples} }}"));
            engine.update(&format!("INSERT DATA {{ {data} }}"), &UpdateOptions::default()).unwrap();
        }
    }
    (dir, engine)
}

fn rows(engine: &QueryEngine, text: &str, view: Option<&Arc<GraphView>>) -> Vec<String> {
    let options = QueryOptions { view: view.cloned(), ..QueryOptions::default() };
    let result = engine.query(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    let format = match result.kind() {
        QueryKind::Graph => ResultFormat::NTriples,
        _ => ResultFormat::Tsv,
    };
    let mut bytes = Vec::new();
    result.write(format, &mut bytes).unwrap();
    sorted(&bytes)
}

/// Lines in order; blank nodes are told apart by number.
fn sorted(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let without_label = |word: &str| if word.starts_with("_:") { "_:".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split([' ', '\t']).map(without_label).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn a_view_answers_as_a_database_of_its_graphs_alone() {
    let (_dir, all) = engine(|_| true);
    for view in VIEWS {
        let of = Arc::new(GraphView::new(view));
        let (_dir, alone) = engine(|graph| of.has(graph));
        // Twice: what is kept of the first must be right for the second.
        for text in QUERIES.iter().chain(QUERIES) {
            assert_eq!(rows(&all, text, Some(&of)), rows(&alone, text, None), "{view:?}: {text}");
        }
        let dump = |engine: &QueryEngine, view| {
            let mut out = Vec::new();
            let session = engine.graph().session().unwrap();
            session.dump(DumpFormat::NQuads, view, &mut out, &AtomicBool::new(false)).unwrap();
            sorted(&out)
        };
        assert_eq!(dump(&all, Some(&*of)), dump(&alone, None), "{view:?}");
    }
}

#[test]
fn a_view_follows_changes_and_is_not_mistaken_for_another() {
    let (_dir, engine) = engine(|_| true);
    let [open, closed] = [["http://open/"], ["http://closed/"]].map(|list| Arc::new(GraphView::new(&list)));
    let count = |view| rows(&engine, "SELECT ?s { GRAPH ?g { ?s <urn:label> ?l } }", view).len();
    let (before, hidden, all) = (count(Some(&open)), count(Some(&closed)), count(None));
    assert!(before != hidden && hidden < all);
    for graph in ["http://open/new", "http://closed/new"] {
        let update = format!("INSERT DATA {{ GRAPH <{graph}> {{ <urn:new> <urn:label> 1 }} }}");
        engine.update(&update, &UpdateOptions::default()).unwrap();
    }
    assert_eq!(count(Some(&open)), before + 1);
    assert_eq!(count(Some(&closed)), hidden + 1);
    assert_eq!(count(None), all + 2);
}

#[test]
fn plans_are_not_shown_under_a_view() {
    let (_dir, engine) = engine(|_| true);
    let view = Some(Arc::new(GraphView::new(&["http://open/"])));
    let options = QueryOptions { view, ..QueryOptions::default() };
    for shown in [engine.explain("ASK {}", &options), engine.analyze("ASK {}", &options)] {
        assert!(matches!(shown, Err(QueryError::Forbidden { .. })), "{shown:?}");
    }
}

#[test]
fn an_update_changes_graphs_of_its_view_alone() {
    let (_dir, engine) = engine(|_| true);
    let view = Arc::new(GraphView::new(&["http://open/"]));
    let all = |engine: &QueryEngine| {
        rows(engine, "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", None)
    };
    let run = |text: &str| {
        engine.update(text, &UpdateOptions { view: Some(view.clone()), ..UpdateOptions::default() })
    };
    let before = all(&engine);
    for text in [
        "INSERT DATA { <urn:x> <urn:p> 1 }",
        "INSERT DATA { GRAPH <http://open/a> { <urn:x> <urn:p> 1 } GRAPH <urn:closed> { <urn:x> <urn:p> 1 } }",
        "DELETE DATA { GRAPH <urn:closed> { <urn:s2> <urn:hidden> \"SECRET\" } }",
        "DELETE DATA { <urn:s1> <urn:next> <urn:s2> }",
        "INSERT { GRAPH <urn:closed> { ?s ?p ?o } } WHERE { GRAPH <http://open/a> { ?s ?p ?o } }",
        "INSERT { GRAPH <urn:closed> { <urn:a> <urn:b> 1 } } WHERE { FILTER (false) }",
        "INSERT { ?s ?p ?o } WHERE { GRAPH <http://open/a> { ?s ?p ?o } }",
        "INSERT { GRAPH ?h { ?s ?p ?o } } WHERE { GRAPH <http://open/a> { ?s ?p ?o } VALUES ?h { <urn:closed> } }",
        "INSERT { GRAPH ?h { ?s ?p ?o } } WHERE { GRAPH <http://open/a> { ?s ?p ?o } BIND (IRI(\"urn:made\") AS ?h) }",
        "DELETE { GRAPH ?h { ?s ?p ?o } } WHERE { GRAPH <http://open/a> { ?s ?p ?o } VALUES ?h { <http://closed/a> } }",
        "DELETE WHERE { GRAPH <urn:closed> { ?s ?p ?o } }",
        "WITH <urn:closed> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "CLEAR ALL",
        "CLEAR NAMED",
        "DROP DEFAULT",
        "CLEAR GRAPH <urn:closed>",
        "CLEAR SILENT GRAPH <urn:closed>",
        "CREATE GRAPH <urn:another>",
        "COPY <http://open/a> TO <urn:closed>",
        "MOVE <http://closed/a> TO <http://open/c>",
        "ADD <http://open/a> TO DEFAULT",
        "LOAD <file:///etc/hostname> INTO GRAPH <http://open/a>",
    ] {
        let done = run(text);
        assert!(matches!(done, Err(QueryError::Forbidden { .. })), "{text}: {done:?}");
        assert_eq!(all(&engine), before, "{text}");
    }
    // A hidden graph has nothing to be copied.
    run("COPY <http://closed/a> TO <http://open/c>").unwrap();
    run("INSERT { GRAPH <http://open/c> { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o FILTER (CONTAINS(STR(?o), \"SECRET\")) } }").unwrap();
    assert_eq!(all(&engine), before);
    run("INSERT { GRAPH <http://open/c> { ?s <urn:from> ?g } } WHERE { GRAPH ?g { ?s <urn:num> ?n } }")
        .unwrap();
    run("DELETE { GRAPH ?g { ?s <urn:num> ?n } } WHERE { GRAPH ?g { ?s <urn:num> ?n } }").unwrap();
    assert_eq!(rows(&engine, "SELECT ?s { GRAPH ?g { ?s <urn:num> ?n } }", None), ["<urn:s9>", "?s"]);
    assert_eq!(rows(&engine, "SELECT ?s { GRAPH <http://open/c> { ?s ?p ?o } }", None).len(), 4);
}
