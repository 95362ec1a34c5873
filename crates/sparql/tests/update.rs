//! Updates and what the engine keeps between queries: an engine that has answered before
//! answers as one that has just been made. And what the W3C's tests leave out: sequences,
//! limits, LOAD.
//!
//! The random test prints its seed; `SNOWMELT_SEED` gives another one.

mod support;

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{CompactOptions, CompactTerms, GraphDatabase, Term};
use snowmelt_sparql::{
    LoadPermission, QueryEngine, QueryError, QueryOptions, RemoteFaultKind, ResultFormat, UpdateOptions,
};
use tempfile::TempDir;

struct Bench {
    db: Arc<GraphDatabase>,
    engine: QueryEngine,
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options =
            OpenOptions { memory_bytes: 256 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
        let db = GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap();
        Bench { engine: QueryEngine::new(db.clone()), db, dir }
    }

    fn update(&self, text: &str) -> (u64, u64) {
        let updated =
            self.engine.update(text, &UpdateOptions::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
        (updated.changed.inserted, updated.changed.deleted)
    }

    fn rows(&self, query: &str) -> Vec<String> {
        rows(&self.engine, query)
    }

    /// Gives all terms other ids.
    fn compact(&self) {
        let options = CompactOptions { terms: CompactTerms::Always, threads: 1, ..CompactOptions::default() };
        self.db.compact(&options, |_| ControlFlow::Continue(())).unwrap();
    }
}

/// The rows of an answer, sorted.
fn rows(engine: &QueryEngine, query: &str) -> Vec<String> {
    let mut bytes = Vec::new();
    let result = engine.query(query, &QueryOptions::default()).unwrap_or_else(|e| panic!("{query}: {e}"));
    result.write(ResultFormat::Tsv, &mut bytes).unwrap();
    let mut rows: Vec<String> =
        String::from_utf8(bytes).unwrap().lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}

#[test]
fn a_constant_that_was_unknown_becomes_known() {
    let bench = Bench::new();
    let (by_name, by_iri) = ("PREFIX : <urn:> SELECT ?o { :a :p ?o }", "SELECT ?o { <urn:a> <urn:p> ?o }");
    assert!(bench.rows(by_name).is_empty() && bench.rows(by_iri).is_empty());
    bench.update("INSERT DATA { <urn:a> <urn:p> 1 }");
    assert_eq!((bench.rows(by_name).len(), bench.rows(by_iri).len()), (1, 1));
    bench.update("DELETE DATA { <urn:a> <urn:p> 1 }");
    assert!(bench.rows(by_name).is_empty() && bench.rows(by_iri).is_empty());
}

#[test]
fn a_predicate_gets_its_first_literal() {
    let bench = Bench::new();
    bench.update("PREFIX : <urn:> INSERT DATA { :a :p :x . :b :q :x }");
    let equal = "PREFIX : <urn:> SELECT ?a ?b { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) }";
    assert_eq!(bench.rows(equal).len(), 1);
    bench.update("PREFIX : <urn:> INSERT DATA { :c :p 1 . :d :q 1.0 }");
    assert_eq!(bench.rows(equal).len(), 2, "1 = 1.0, although they are not the same term");
}

#[test]
fn the_first_named_graph() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:a> <urn:p> 1 }");
    let all = "SELECT * { ?s ?p ?o }";
    assert_eq!(bench.rows(all).len(), 1);
    bench.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 1, 2 } }");
    assert_eq!(bench.rows(all).len(), 1);
    bench.update("DROP DEFAULT");
    assert!(bench.rows(all).is_empty());
    bench.update("DROP NAMED ; INSERT DATA { <urn:a> <urn:p> 3 }");
    assert_eq!(bench.rows(all).len(), 1);
}

#[test]
fn what_the_engine_keeps_never_shows() {
    const QUERIES: [&str; 9] = [
        "SELECT * { ?s ?p ?o }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } }",
        "PREFIX : <urn:> SELECT ?o { :s1 :p1 ?o }",
        "PREFIX : <urn:> SELECT ?a ?b { ?a :p1 ?x . ?b :p2 ?y FILTER(?x = ?y) }",
        "PREFIX : <urn:> SELECT ?a (COUNT(*) AS ?n) { ?a :p0 ?x OPTIONAL { ?x :p1 ?y } } GROUP BY ?a",
        "PREFIX : <urn:> SELECT ?x { :s2 :p0/:p1* ?x }",
        "PREFIX : <urn:> SELECT * { ?s :p3 \"text 3\" ; :p0 ?o }",
        "SELECT ?s { ?s <urn:p0> <urn:s3> . ?s <urn:p3> ?t }",
        "PREFIX : <urn:> SELECT ?s { ?s :p2 ?n FILTER(?n > 2) FILTER NOT EXISTS { ?s :p1 ?n } }",
    ];
    let mut random = snowmelt_io::test_seed(1);
    let mut below = |n: u64| (snowmelt_base::random::lcg(&mut random) >> 33) % n;
    let bench = Bench::new();
    for round in 0..60 {
        let mut quads = String::new();
        for _ in 0..1 + below(12) * below(12) {
            let object = match below(4) {
                0 => below(6).to_string(),
                1 => format!("\"text {}\"", below(8)),
                2 => format!("{}.0", below(6)),
                _ => format!(":s{}", below(8)),
            };
            let triple = format!(":s{} :p{} {object} . ", below(8), below(4));
            quads += &if below(6) == 0 { format!("GRAPH :g{} {{ {triple} }} ", below(2)) } else { triple };
        }
        let what = match below(8) {
            0 => format!("CLEAR {}", ["DEFAULT", "NAMED", "GRAPH :g0", "ALL"][below(4) as usize]),
            1 => format!(
                "DELETE {{ ?s :p{} ?o }} INSERT {{ ?o :p0 ?s }} WHERE {{ ?s :p{} ?o FILTER(isIRI(?o)) }}",
                below(4),
                below(4)
            ),
            2 | 3 => format!("DELETE DATA {{ {quads} }}"),
            _ => format!("INSERT DATA {{ {quads} }}"),
        };
        let text = format!("PREFIX : <urn:> {what}");
        bench.update(&text);
        if below(4) == 0 {
            bench.compact();
        }
        let fresh = QueryEngine::new(bench.db.clone());
        for query in QUERIES {
            assert_eq!(bench.rows(query), rows(&fresh, query), "round {round}, after {text}: {query}");
        }
    }
    assert!(bench.db.check(&mut |_| {}).unwrap().is_sound());
}

/// An answer that was begun before terms got other ids ends as it began.
#[test]
fn answers_go_on_while_terms_are_reclaimed() {
    let bench = Bench::new();
    let triples = |what: &str, numbers: std::ops::Range<u32>| {
        let triple = |n| format!(":s{n} :p \"an object of the number {n}\" . ");
        bench
            .update(&format!("PREFIX : <urn:> {what} DATA {{ {} }}", numbers.map(triple).collect::<String>()))
    };
    triples("INSERT", 0..6000);
    triples("DELETE", 0..2000);
    let query = "PREFIX : <urn:> SELECT ?s ?o { ?s :p ?o FILTER(CONTAINS(?o, \"object\")) }";
    let want = bench.rows(query);
    assert_eq!(want.len(), 4000);
    let options = QueryOptions { batch_rows: Some(16), ..QueryOptions::default() };
    let mut under_way = bench.engine.query(query, &options).unwrap().into_rows();
    let mut got = 0;
    for round in 0..3 {
        for _ in 0..100 {
            let row = under_way.next_row().unwrap().unwrap();
            let [Some(Term::Iri(s)), Some(Term::Literal { lexical, .. })] = &row[..] else {
                panic!("{row:?}")
            };
            assert_eq!(s.strip_prefix("urn:s"), lexical.rsplit(' ').next());
            got += 1;
        }
        bench.compact();
        assert_eq!(bench.rows(query), want);
        triples("DELETE", 2000 + 100 * round..2001 + 100 * round);
        triples("INSERT", 2000 + 100 * round..2001 + 100 * round);
    }
    while under_way.next_row().unwrap().is_some() {
        got += 1;
    }
    assert_eq!(got, 4000);
}

#[test]
fn operations_see_those_before_them() {
    let bench = Bench::new();
    let done = bench.update(
        "PREFIX : <urn:> INSERT DATA { :a :p 1 } ; INSERT { ?s :q ?o } WHERE { ?s :p ?o } ; \
         DELETE { ?s :p ?o } INSERT { ?s :p ?n } WHERE { ?s :q ?o BIND(?o + 1 AS ?n) }",
    );
    assert_eq!(done, (3, 1));
    assert_eq!(bench.rows("SELECT ?p ?o { ?s ?p ?o }"), ["<urn:p>\t2", "<urn:q>\t1"]);
    // A quad deleted and inserted by one operation stays.
    assert_eq!(bench.update("DELETE { ?s ?p ?o } INSERT { ?s ?p ?o } WHERE { ?s ?p ?o }"), (0, 0));
    assert_eq!(bench.rows("SELECT ?p ?o { ?s ?p ?o }").len(), 2);
    // Templates that make no quad, and blank nodes: one for each solution.
    bench.update("INSERT { ?o <urn:p> ?s . ?s ?o ?s . ?s <urn:b> _:b . _:b <urn:c> ?o } WHERE { ?s ?p ?o }");
    assert_eq!(bench.rows("SELECT ?b { ?s <urn:b> ?b . ?b <urn:c> ?o }").len(), 2);
    assert_eq!(bench.rows("SELECT * { ?s ?p ?o }").len(), 6);
}

#[test]
fn blank_nodes_of_a_where_are_variables() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:a> <urn:p> [ <urn:q> 1 ] . <urn:b> <urn:p> 5 }");
    let text = "DELETE { ?s <urn:p> ?o } INSERT { ?s <urn:r> ?x } WHERE { ?s <urn:p> ?o . ?o <urn:q> ?x . \
                [] <urn:q> ?x }";
    assert_eq!(bench.update(text), (1, 1));
    assert_eq!(bench.rows("SELECT ?s ?x { ?s <urn:r> ?x }"), ["<urn:a>\t1"]);
    assert_eq!(bench.rows("SELECT ?s ?x { ?s <urn:p> ?x }"), ["<urn:b>\t5"]);
}

#[test]
fn a_graph_exists_while_it_has_a_quad() {
    let bench = Bench::new();
    let insert = "INSERT { GRAPH <urn:g> { <urn:a> <urn:p> ?x } } WHERE { GRAPH <urn:g> { BIND(1 AS ?x) } }";
    assert_eq!(bench.update(insert), (0, 0));
    bench.update("INSERT DATA { GRAPH <urn:g> { <urn:b> <urn:p> 2 } }");
    assert_eq!(bench.update(insert), (1, 0));
    let names = "SELECT ?g { GRAPH ?g { BIND(1 AS ?x) } }";
    assert_eq!(bench.rows(names), ["<urn:g>"]);
    bench.update("DELETE WHERE { GRAPH <urn:g> { ?s ?p ?o } }");
    assert_eq!(bench.update(insert), (0, 0));
    assert!(bench.rows(names).is_empty());
    assert!(bench.rows("SELECT ?x { GRAPH <urn:g> { ?x <urn:p>* 1 } }").is_empty());
}

#[test]
fn computed_terms_are_stored() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:a> <urn:p> \"x\"@en , 1.5 , \"2020-01-01\"^^<http://www.w3.org/2001/XMLSchema#date> }");
    bench.update(
        "INSERT { ?i <urn:says> ?t ; <urn:twice> ?d } WHERE { ?s <urn:p> ?o \
         BIND(CONCAT(\"a computed text of some length: \", STR(?o)) AS ?t) BIND(IRI(CONCAT(\"urn:new:\", MD5(STR(?o)))) AS ?i) BIND(?o + ?o AS ?d) }",
    );
    assert_eq!(bench.rows("SELECT ?t { ?s <urn:says> ?t }").len(), 3);
    assert_eq!(bench.rows("SELECT ?d { ?s <urn:twice> ?d FILTER(?d = 3) }").len(), 1);
    let again = bench.update("DELETE { ?s ?p ?t } WHERE { ?s ?p ?o BIND(CONCAT(\"a computed text of some length: \", \"x\") AS ?t) }");
    assert_eq!(again, (0, 1));
}

#[test]
fn failures_change_nothing() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:a> <urn:p> 1 . GRAPH <urn:g> { <urn:a> <urn:p> 1 } }");
    let fails = |text: &str, options: &UpdateOptions| bench.engine.update(text, options).unwrap_err();
    let default = UpdateOptions::default();
    let error = fails(
        "CLEAR ALL ; CREATE GRAPH <urn:h> ; INSERT DATA { <urn:b> <urn:p> 1 } ; LOAD <http://example.org/>",
        &default,
    );
    assert_eq!(error.remote_fault(), Some(RemoteFaultKind::NoneAllowed), "{error}");
    assert!(matches!(fails("CLEAR DEFAULT ; CREATE GRAPH <urn:g>", &default), QueryError::GraphExists(_)));
    assert!(matches!(fails("INSERT DATA { ?x <urn:p> 1 }", &default), QueryError::Parse { line: 1, .. }));
    let cancelled =
        UpdateOptions { cancel: Some(Arc::new(AtomicBool::new(true))), ..UpdateOptions::default() };
    assert!(matches!(fails("CLEAR ALL", &cancelled), QueryError::Cancelled));
    let late = UpdateOptions { timeout: Some(Duration::ZERO), ..UpdateOptions::default() };
    assert!(matches!(fails("CLEAR ALL", &late), QueryError::Timeout(_)));
    let twice = UpdateOptions { using_graphs: vec!["urn:g".into()], ..UpdateOptions::default() };
    let with = "WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }";
    assert!(matches!(fails(with, &twice), QueryError::UsingTwice));
    assert_eq!(bench.rows("SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }").len(), 2);
    bench.update("CREATE SILENT GRAPH <urn:g> ; LOAD SILENT <http://example.org/>");
}

/// Texts that differ in their base direction alone are three terms.
#[test]
fn equality_of_texts_is_that_of_their_directions() {
    let texts = ["\"x\"@en", "\"x\"@en--ltr", "\"x\"@en--rtl"];
    for (at, text) in texts.iter().enumerate() {
        for condition in [format!("?o = {text}"), format!("?o IN ({text}, 1)"), format!("!(?o != {text})")] {
            let bench = Bench::new();
            bench.update(&format!("INSERT DATA {{ <urn:s> <urn:p> {} }}", texts.join(" , ")));
            let delete = format!("DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o FILTER({condition}) }}");
            assert_eq!(bench.update(&delete), (0, 1), "{delete}");
            let mut left = texts.to_vec();
            left.remove(at);
            assert_eq!(bench.rows("SELECT ?o { ?s ?p ?o }"), left, "{delete}");
        }
    }
}

/// Literals of datatypes that only tagged texts have do not come in, on whatever way.
#[test]
fn untagged_texts_are_not_inserted() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:s> <urn:p> 1 }");
    for name in ["langString", "dirLangString"] {
        let literal = format!("\"x\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}>");
        for update in [
            format!("INSERT DATA {{ <urn:s> <urn:q> {literal} }}"),
            format!("INSERT DATA {{ <urn:s> <urn:q> <<( <urn:s> <urn:q> {literal} )>> }}"),
            format!("INSERT {{ ?s <urn:q> {literal} }} WHERE {{ ?s <urn:p> ?o }}"),
            format!("INSERT {{ ?s <urn:q> <<( ?s <urn:q> {literal} )>> }} WHERE {{ ?s <urn:p> ?o }}"),
            format!("INSERT {{ ?s <urn:q> ?x }} WHERE {{ ?s <urn:p> ?o VALUES ?x {{ {literal} }} }}"),
            format!(
                "INSERT {{ ?s <urn:q> ?x }} \
                 WHERE {{ ?s <urn:p> ?o BIND(TRIPLE(?s, <urn:q>, {literal}) AS ?x) }}"
            ),
        ] {
            let error = bench.engine.update(&update, &UpdateOptions::default()).map(drop).unwrap_err();
            let told = format!("a literal without a language tag is no rdf:{name}: it cannot be inserted");
            assert_eq!(error.to_string(), told, "{update}");
        }
        assert_eq!(bench.update(&format!("DELETE DATA {{ <urn:s> <urn:p> {literal} }}")), (0, 0));
    }
    assert_eq!(bench.rows("SELECT * { ?s ?p ?o }").len(), 1);
}

/// Gives no more than some bytes at a time.
struct Slow<'a>(&'a [u8]);

impl std::io::Read for Slow<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = buf.len().min(4099);
        self.0.read(&mut buf[..len])
    }
}

/// Data of some batches, in which each third triple has the blank node of the first.
fn long_update(triples: usize) -> String {
    let data: String = (0..triples)
        .map(|n| match n % 3 {
            0 => format!("_:first <urn:p> {n} .\n"),
            1 => format!("_:n{n} a:p \"{n} . ; }}\" .\n"),
            _ => format!("<urn:s{n}> a:p true , false .\n"),
        })
        .collect();
    format!(
        "PREFIX a: <urn:> INSERT DATA {{\n{data}GRAPH a:g {{ {data} }} }} ;\n\
         DELETE {{ ?s a:p true }} WHERE {{ ?s a:p true }}"
    )
}

#[test]
fn a_streamed_update_is_one_update() {
    let bench = Bench::new();
    let text = long_update(90_000);
    assert!(text.len() > 4 << 20);
    let options = UpdateOptions::default();
    let updated = bench.engine.update_from(Slow(text.as_bytes()), 2 << 20, &options).unwrap();
    assert_eq!((updated.changed.inserted, updated.changed.deleted), (240_000, 30_000));
    for graph in ["", "GRAPH <urn:g>"] {
        let firsts = format!("SELECT DISTINCT ?s {{ {graph} {{ ?s <urn:p> ?n FILTER isNumeric(?n) }} }}");
        assert_eq!(bench.rows(&firsts).len(), 1, "one label, one node: {graph}");
    }
    let both = "ASK { ?s <urn:p> 0 . GRAPH <urn:g> { ?s <urn:p> 0 } }";
    let mut answer = Vec::new();
    let asked = bench.engine.query(both, &QueryOptions::default()).unwrap();
    asked.write(ResultFormat::Json, &mut answer).unwrap();
    assert!(String::from_utf8(answer).unwrap().contains("true"), "one operation, one node");

    // A second reading has other blank nodes, and the same of everything else.
    let again = bench.engine.update_from(text.as_bytes(), 2 << 20, &options).unwrap();
    assert_eq!((again.changed.inserted, again.changed.deleted), (150_000, 30_000));
}

/// A blank node without a label is one, wherever its triples are cut; two are two.
#[test]
fn nodes_without_labels_are_told_apart_in_a_stream() {
    let bench = Bench::new();
    let (pairs, objects) = ("[ <urn:p> 1 ; <urn:q> 2 ] . ".repeat(20_000), "<urn:o>,".repeat(9_000));
    let text = format!("INSERT DATA {{ {pairs} [ <urn:r> {objects} 5 , 6 ; <urn:r> 7 ] }}");
    let updated = bench.engine.update_from(Slow(text.as_bytes()), 2 << 20, &UpdateOptions::default());
    assert_eq!(updated.unwrap().changed.inserted, 40_004);
    assert_eq!(bench.rows("SELECT DISTINCT ?s { ?s <urn:p> 1 ; <urn:q> 2 }").len(), 20_000);
    assert_eq!(bench.rows("SELECT DISTINCT ?s { ?s <urn:r> <urn:o> , 5 , 6 , 7 }").len(), 1);
}

/// Deletions wait as text, between insertions and other operations.
#[test]
fn operations_of_a_stream_run_in_their_order() {
    let bench = Bench::new();
    let values = |n: usize| match n % 4 {
        0 => format!("<urn:s{n}> <urn:p> \"a\\n'\\\"{n}\"@en--ltr . "),
        1 => format!("GRAPH <urn:g> {{ <urn:s{n}> <urn:p> {n}.5 }} "),
        2 => format!("<urn:s{n}> <urn:p> <<( <urn:a> <urn:é> \"\\u00e9{n}\"^^<urn:d> )>> . "),
        _ => format!("<urn:s{n}> <urn:p> true . "),
    };
    let all: String = (0..12_000).map(values).collect();
    let some: String = (0..8_000).map(values).collect();
    let text = format!(
        "INSERT DATA {{ {all} }} ; DELETE DATA {{ {some} }} ; INSERT DATA {{ <urn:s1> <urn:p> 1 }} ; \
         DELETE {{ ?s ?p true }} WHERE {{ ?s ?p true }} ; DELETE DATA {{ <urn:s1> <urn:p> 1 , 2 }}"
    );
    let updated = bench.engine.update_from(Slow(text.as_bytes()), 2 << 20, &UpdateOptions::default());
    let changed = updated.unwrap().changed;
    assert_eq!((changed.inserted, changed.deleted), (12_001, 8_000 + 1_000 + 1));
    assert_eq!(bench.rows("SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }").len(), 3_000);
}

#[test]
fn a_streamed_update_changes_all_or_nothing() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:a> <urn:p> 1 }");
    let text = long_update(90_000);
    let options = UpdateOptions::default();
    let fails =
        |text: String| bench.engine.update_from(Slow(text.as_bytes()), 2 << 20, &options).unwrap_err();
    let wrong = fails(format!("{text} ;\nINSERT DATA {{ b:s <urn:p> 1 }}"));
    assert_eq!(wrong.to_string(), "line 180004, column 15: the prefix b: is not declared");
    let missing = fails(text.replace("_:first <urn:p> 89997", "_:first <urn:p>"));
    assert!(matches!(missing, QueryError::Parse { line: 89999, .. }), "{missing}");
    let numbers = "1,".repeat(2 << 20);
    let long = fails(format!("{text} ; INSERT {{ <urn:s> <urn:p> {numbers} 1 }} WHERE {{}}"));
    assert!(matches!(long, QueryError::TooLarge { limit: "tree_bytes", .. }), "{long}");
    let blanks = " ".repeat(2 << 20);
    let long = fails(format!("{text} ; INSERT {{ <urn:s> <urn:p> 1 }} WHERE {{ {blanks} }}"));
    assert!(matches!(long, QueryError::OperationTooLong { .. }), "{long}");
    let long = fails(format!("{text} ; INSERT DATA {{ <urn:s> <urn:p> '{numbers}' }}"));
    assert!(matches!(long, QueryError::TooLarge { limit: "token_bytes", .. }), "{long}");
    let shared = fails(format!("{text} ; INSERT DATA {{ _:first <urn:p> 1 }}"));
    assert!(matches!(shared, QueryError::Parse { line: 180_003, .. }), "{shared}");
    assert_eq!(bench.rows("SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }").len(), 1);
}

#[test]
fn load_reads_what_is_allowed() {
    let bench = Bench::new();
    let folder = bench.dir.path().canonicalize().unwrap();
    let open = folder.join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::write(open.join("a b.ttl"), "<x> <urn:p> _:b . _:b <urn:p> 1 .").unwrap();
    std::fs::write(folder.join("secret.nt"), "<urn:s> <urn:p> 1 .\n").unwrap();
    std::os::unix::fs::symlink(folder.join("secret.nt"), open.join("link.nt")).unwrap();
    let allow_load = vec![LoadPermission::new(open.to_str().unwrap()).unwrap()];
    let options = UpdateOptions { allow_load, ..UpdateOptions::default() };
    let iri = |name: &str| format!("<file://{}/{name}>", open.display());
    let loaded =
        bench.engine.update(&format!("LOAD {} INTO GRAPH <urn:g>", iri("a%20b.ttl")), &options).unwrap();
    assert_eq!(loaded.changed.inserted, 2);
    let subject = bench.rows("SELECT ?s { GRAPH <urn:g> { ?s <urn:p> ?b . FILTER(isBlank(?b)) } }");
    assert_eq!(subject, [iri("x")], "relative to the document");
    for (refused, why) in
        [("link.nt", "no folder"), ("../secret.nt", "no folder"), ("missing.nt", "no folder")]
    {
        let error = bench.engine.update(&format!("LOAD {}", iri(refused)), &options).unwrap_err();
        assert!(error.to_string().contains(why), "{refused}: {error}");
    }
    std::fs::write(open.join("broken.nt"), "<urn:s> <urn:p> 1 .\noops\n").unwrap();
    let error = bench.engine.update(&format!("LOAD {}", iri("broken.nt")), &options).unwrap_err();
    assert!(error.to_string().contains("broken.nt:"), "{error}");
    bench.engine.update(&format!("LOAD SILENT {}", iri("broken.nt")), &options).unwrap();
    assert_eq!(bench.rows("SELECT * { GRAPH ?g { ?s ?p ?o } }").len(), 2);
}

/// A source without an end: a pipe into which a thread writes as long as it is read.
#[test]
fn load_ends_at_the_time_limit() {
    let bench = Bench::new();
    let folder = bench.dir.path().canonicalize().unwrap();
    let (pipe, allow_load) =
        (folder.join("endless.nt"), vec![LoadPermission::new(folder.to_str().unwrap()).unwrap()]);
    for silent in ["", "SILENT "] {
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut out = std::fs::File::create(pipe).unwrap();
                let line = "<urn:s> <urn:p> <urn:o> .\n".repeat(100);
                // so that a load that nothing ends does so after a while
                let begun = std::time::Instant::now();
                while begun.elapsed() < Duration::from_secs(20) {
                    if out.write_all(line.as_bytes()).is_err() {
                        return true;
                    }
                }
                false
            }
        });
        let timeout = Some(Duration::from_millis(200));
        let options = UpdateOptions { timeout, allow_load: allow_load.clone(), ..UpdateOptions::default() };
        let text = format!("LOAD {silent}<file://{}>", pipe.display());
        let error = bench.engine.update(&text, &options).unwrap_err();
        assert!(matches!(error, QueryError::Timeout(_)), "{silent}{error}");
        assert!(writer.join().unwrap(), "{silent}LOAD read on");
        std::fs::remove_file(&pipe).unwrap();
    }
    assert!(bench.rows("SELECT * { ?s ?p ?o }").is_empty());
}

/// Triple terms of templates are made of solutions; their blank nodes are those of the template.
#[test]
fn templates_make_and_find_triple_terms() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:a> <urn:p> 1 , \"x\" . <urn:b> <urn:p> 2 . <urn:c> <urn:q> <urn:a> }");
    // subjects that are literals make no triple terms
    let made = bench.update(
        "INSERT { ?r <urn:t> <<( ?s <urn:p> ?o )>> } WHERE { BIND(<urn:r> AS ?r) \
                             { ?s <urn:p> ?o } UNION { ?o <urn:p> ?s } }",
    );
    assert_eq!(made, (3, 0));
    let all = "SELECT ?s ?o { <urn:r> <urn:t> <<( ?s <urn:p> ?o )>> }";
    assert_eq!(bench.rows(all), ["<urn:a>\t\"x\"", "<urn:a>\t1", "<urn:b>\t2"]);
    // again: the terms are there
    assert_eq!(
        bench.update("INSERT { <urn:r> <urn:t> <<( ?s ?p ?o )>> } WHERE { ?s ?p ?o FILTER(?p = <urn:p>) }"),
        (0, 0)
    );
    // one node of each solution, in the term and beside it
    bench.update(
        "INSERT { _:n <urn:of> ?s . <urn:m> <urn:t> <<( _:n <urn:is> <<( ?s <urn:is> _:n )>> )>> } \
                  WHERE { ?s <urn:p> 1 }",
    );
    let nodes = "SELECT ?s { <urn:m> <urn:t> <<( ?n <urn:is> <<( ?s <urn:is> ?n )>> )>> . ?n <urn:of> ?s }";
    assert_eq!(bench.rows(nodes), ["<urn:a>"]);
    // reified triples of INSERT DATA, and annotations
    bench.update("INSERT DATA { <urn:x> <urn:y> <urn:z> {| <urn:by> <urn:me> |} }");
    let by = "SELECT ?by { <urn:x> <urn:y> <urn:z> {| <urn:by> ?by |} }";
    assert_eq!(bench.rows(by), ["<urn:me>"]);
    assert_eq!(bench.update("DELETE WHERE { <urn:r> <urn:t> <<( <urn:a> <urn:p> ?o )>> }"), (0, 2));
    assert_eq!(bench.rows(all), ["<urn:b>\t2"]);
    // a term that is not stored is in no quad
    let none = "DELETE { <urn:r> <urn:t> <<( ?s <urn:none> ?o )>> } WHERE { ?s <urn:p> ?o }";
    assert_eq!(bench.update(none), (0, 0));
    assert_eq!(bench.update("DELETE DATA { <urn:r> <urn:t> <<( <urn:b> <urn:p> 2 )>> }"), (0, 1));
    bench.compact();
    assert_eq!(bench.rows(nodes), ["<urn:a>"]);
    assert_eq!(bench.rows(by), ["<urn:me>"]);
}

/// CONSTRUCT makes triple terms of solutions, each triple once.
#[test]
fn construct_makes_triple_terms() {
    let bench = Bench::new();
    bench.update("INSERT DATA { <urn:a> <urn:p> 1 , \"x\" . <urn:r> <urn:t> <<( <urn:a> <urn:p> 1 )>> }");
    let graph = |text: &str| {
        let mut bytes = Vec::new();
        let result = bench.engine.query(text, &QueryOptions::default()).unwrap();
        result.write(ResultFormat::NTriples, &mut bytes).unwrap();
        let mut lines: Vec<String> = String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let one = "<urn:r> <urn:t> <<( <urn:a> <urn:p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> )>> .";
    let text = "<urn:r> <urn:t> <<( <urn:a> <urn:p> \"x\" )>> .";
    // a made term is the stored one, and what would be a literal as subject is left out
    let construct = "CONSTRUCT { <urn:r> <urn:t> ?t , <<( ?s ?p ?o )>> , <<( ?o ?p ?s )>> } \
                     WHERE { <urn:r> <urn:t> ?t . ?s ?p ?o FILTER(?p = <urn:p>) }";
    assert_eq!(graph(construct), [one, text]);
}
