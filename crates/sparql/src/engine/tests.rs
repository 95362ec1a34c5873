//! Queries on a small graph, each with its answer: what the algebra, the rewrites and the
//! operators must get right together.
//!
//! Every case is run with the default batches and with batches of one row.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use snowmelt_database::{OpenOptions, WaitFor};
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_graph::{GraphDatabase, Term, TermId};
use snowmelt_query::looks;

use super::{PlanStep, QueryEngine, QueryOptions, QueryText};
use crate::{QueryError, ResultFormat, UpdateOptions};

const DATA: &str = r#"
<e:a> <e:p> <e:b> . <e:a> <e:p> <e:c> . <e:b> <e:p> <e:c> . <e:c> <e:p> <e:d> .
<e:a> <e:n> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<e:b> <e:n> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .
<e:c> <e:n> "3.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<e:d> <e:n> "04"^^<http://www.w3.org/2001/XMLSchema#integer> .
<e:a> <e:l> "alpha" . <e:b> <e:l> "beta"@en . <e:c> <e:l> "a longer label, beyond seven bytes" .
<e:a> <e:q> _:x . _:x <e:r> <e:z> . _:x <e:r> _:y . _:y <e:r> "deep" .
<e:a> <e:p> <e:b> <e:g1> . <e:b> <e:p> <e:c> <e:g1> . <e:a> <e:p> <e:b> <e:g2> . <e:z> <e:p> <e:z> <e:g2> .
"#;

struct Fixture {
    _dir: tempfile::TempDir,
    engine: QueryEngine,
}

fn open(data: &str) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = LoadOptions {
        format: Some(snowmelt_graph::load::format_named("nq").unwrap()),
        ..LoadOptions::default()
    };
    let text = data.replace(" . ", " .\n");
    let source =
        Source::Reader { name: "test".into(), read: Box::new(std::io::Cursor::new(text.into_bytes())) };
    load(&path, vec![source], &options, &(), &AtomicBool::new(false)).unwrap();
    let engine = QueryEngine::new(GraphDatabase::open(&path, &OpenOptions::default()).unwrap());
    Fixture { _dir: dir, engine }
}

fn show(term: &Option<Term>) -> String {
    match term {
        None => "-".into(),
        Some(Term::Iri(iri)) => iri.replace("e:", ""),
        Some(Term::Blank(_)) => "_".into(),
        Some(Term::Literal { lexical, .. }) => lexical.clone(),
        Some(term @ Term::Triple(_)) => term.to_string().replace("e:", ""),
    }
}

#[test]
fn the_time_is_now_wherever_it_is_asked_for() {
    let Fixture { engine, _dir } = open(DATA);
    for text in [
        "SELECT (YEAR(NOW()) AS ?y) {}",
        "SELECT ?y { BIND(YEAR(NOW()) AS ?y) }",
        "SELECT (MAX(YEAR(NOW())) AS ?y) { ?s <e:p> ?o }",
        "SELECT ?y { ?s <e:n> 1 } GROUP BY (YEAR(NOW()) AS ?y)",
        "SELECT (2026 AS ?y) { ?s <e:n> 1 FILTER(YEAR(NOW()) > 2000) }",
        "SELECT (2026 AS ?y) { ?s <e:n> 1 FILTER EXISTS { ?s <e:p> ?o FILTER(YEAR(NOW()) > 2000) } }",
        "SELECT (2026 AS ?y) { ?s <e:n> 1 MINUS { ?s <e:n> 1 FILTER(YEAR(NOW()) < 2000) } }",
        "SELECT (IF(BOUND(?o), 2026, 0) AS ?y) { ?s <e:n> 1 OPTIONAL { ?s <e:l> ?o FILTER(YEAR(NOW()) > 2000) } }",
        "SELECT ?y { { SELECT (YEAR(NOW()) AS ?y) {} } }",
        "SELECT (2026 AS ?y) { ?s <e:n> 1 } GROUP BY ?s HAVING(YEAR(NOW()) > 2000)",
        "SELECT (SAMPLE(?n) + 2025 AS ?y) { ?s <e:n> ?n FILTER(?n = IF(YEAR(NOW()) > 2000, 1, 2)) }",
        "SELECT (IF(?n = 1, 2026, 0) AS ?y) { ?s <e:n> ?n } ORDER BY (?n * (YEAR(NOW()) - 2000)) LIMIT 1",
    ] {
        let found = rows(&engine, text, &QueryOptions::default()).unwrap();
        assert!(found.len() == 1 && found[0].parse::<u32>().is_ok_and(|y| y > 2000), "{text}: {found:?}");
    }
}

#[test]
fn how_long_a_shape_took_is_remembered() {
    let Fixture { engine, _dir } = open(DATA);
    let options = QueryOptions::default();
    let expected = |text: &str| engine.expected(&QueryText::new(text), &options);
    assert_eq!(expected("SELECT * { <e:a> <e:p> ?o }"), None);
    rows(&engine, "SELECT * { <e:a> <e:p> ?o }", &options).unwrap();
    assert!(expected("SELECT * { <e:b> <e:p> ?o }").is_some(), "another constant");
    assert_eq!(expected("SELECT * { <e:b> ?p ?o }"), None);
    engine.explain("ASK { <e:c> <e:p> ?o }", &options).unwrap();
    assert_eq!(expected("ASK { <e:c> <e:p> ?o }"), None, "nothing was run");
}

#[test]
fn a_template_serves_texts_of_its_shape_alone() {
    let Fixture { engine, _dir } = open(DATA);
    let options = QueryOptions::default();
    let kept = || engine.templates.read().len();
    for (limit, templates) in [(1, 1), (2, 2), (1, 2)] {
        for subject in ["e:a", "e:b"] {
            let text =
                format!("SELECT * {{ VALUES ?x {{ 7 8 9 }} FILTER(?x != <{subject}>) }} LIMIT {limit}");
            assert_eq!(rows(&engine, &text, &options).unwrap().len(), limit, "{text}");
            assert_eq!(kept(), templates, "{text}");
        }
    }
    // none of these stands for a parameter
    for text in [
        "SELECT (<snowmelt-param:0> AS ?x) {}",
        "PREFIX p: <snowmelt-param:> SELECT (p:0 AS ?x) { FILTER(1 = 1) }",
    ] {
        let found = rows(&engine, text, &options).unwrap();
        assert!(found.len() == 1 && found[0].contains("param:0"), "{text}: {found:?}");
    }
}

#[test]
fn a_property_that_is_a_path_is_no_parameter() {
    let text = |iri: &str| format!("ASK {{ <e:a> <{iri}> 1 }}");
    let params = |text: &str| QueryText::new(text).shape().params.len();
    assert_eq!(params(&text("http://jena.apache.org/ARQ/list#members")), 3);
    assert_eq!(params(&text("http://jena.apache.org/ARQ/list#member")), 0);
}

/// The rows, sorted, cells by spaces.
fn rows(engine: &QueryEngine, text: &str, options: &QueryOptions) -> Result<Vec<String>, QueryError> {
    let mut rows = Vec::new();
    engine
        .query(text, options)?
        .for_each(|row| rows.push(row.iter().map(show).collect::<Vec<_>>().join(" ")))?;
    Ok(rows)
}

#[track_caller]
fn case(engine: &QueryEngine, query: &str, expected: &[&str]) {
    for batch_rows in [None, Some(1)] {
        let options = QueryOptions { batch_rows, ..QueryOptions::default() };
        // twice: planned, and from the cache
        for _ in 0..2 {
            let mut got = rows(engine, query, &options).unwrap_or_else(|e| panic!("{query}: {e}"));
            if !query.contains("ORDER BY") {
                got.sort();
            }
            assert_eq!(got, expected, "{query}\n{}", engine.explain(query, &options).unwrap());
        }
    }
}

#[test]
fn patterns_and_joins() {
    let f = open(DATA);
    let e = &f.engine;
    case(e, "SELECT ?o { <e:a> <e:p> ?o }", &["b", "c"]);
    case(e, "SELECT ?s { ?s <e:p> <e:c> }", &["a", "b"]);
    case(e, "SELECT ?x ?z { ?x <e:p> ?y . ?y <e:p> ?z }", &["a c", "a d", "b d"]);
    case(e, "SELECT ?x { ?x <e:p> ?y . ?x <e:p> ?z }", &["a", "a", "a", "a", "b", "c"]);
    case(e, "SELECT DISTINCT ?x { ?x <e:p> ?y . ?x <e:p> ?z }", &["a", "b", "c"]);
    case(e, "SELECT ?p { <e:b> ?p ?o }", &["l", "n", "p"]);
    case(e, "SELECT ?p { ?s ?p <e:c> }", &["p", "p"]);
    case(e, "SELECT ?p { <e:a> ?p <e:b> }", &["p"]);
    case(e, "SELECT (COUNT(*) AS ?c) { ?s ?p ?o }", &["15"]);
    case(e, "SELECT * { <e:a> <e:p> <e:b> }", &[""]);
    case(e, "SELECT * { <e:a> <e:p> <e:nowhere> }", &[]);
    case(e, "SELECT ?x ?n { ?x <e:p> <e:c> ; <e:n> ?n . <e:c> <e:n> ?m }", &["a 1", "b 2"]);
}

#[test]
fn filters_in_ranges_find_every_kind_of_number() {
    let f = open(DATA);
    let e = &f.engine;
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER(?n > 1) }", &["b", "c", "d"]);
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER(3.5 <= ?n) }", &["c", "d"]);
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER(?n = 4) }", &["d"]);
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER(?n > 1 && ?n < 4) }", &["b", "c"]);
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER(?n != 2) }", &["a", "c", "d"]);
    case(e, "SELECT ?a ?b { ?a <e:n> ?x . ?b <e:n> ?y FILTER(?x + 1 = ?y) }", &["a b"]);
}

#[test]
fn optionals_keep_bottom_up_scopes() {
    let f = open(DATA);
    let e = &f.engine;
    case(
        e,
        "SELECT ?s ?l { ?s <e:n> ?n OPTIONAL { ?s <e:l> ?l } }",
        &["a alpha", "b beta", "c a longer label, beyond seven bytes", "d -"],
    );
    case(
        e,
        "SELECT ?s ?l { ?s <e:n> ?n OPTIONAL { ?s <e:l> ?l FILTER(?n > 1) } FILTER(?n < 3) }",
        &["a -", "b beta"],
    );
    // an inner filter does not see the outer variable
    case(
        e,
        "SELECT ?s ?l { ?s <e:n> ?n OPTIONAL { { ?s <e:l> ?l FILTER(?n > 1) } } FILTER(?n < 3) }",
        &["a -", "b -"],
    );
    case(e, "SELECT ?s { ?s <e:n> ?n OPTIONAL { ?s <e:l> ?l } FILTER(!bound(?l)) }", &["d"]);
    case(e, "SELECT ?s { ?s <e:n> ?n OPTIONAL { ?s <e:l> ?l } FILTER(lang(?l) = 'en') }", &["b"]);
    // not well-designed: the inner OPTIONAL binds ?y before the outer value is known
    case(
        e,
        "SELECT ?y ?n { VALUES ?y { <e:d> } OPTIONAL { <e:a> <e:n> ?n OPTIONAL { <e:b> <e:p> ?y } } }",
        &["d -"],
    );
    case(
        e,
        "SELECT ?x ?y ?z { ?x <e:p> <e:c> OPTIONAL { ?x <e:l> ?y } OPTIONAL { ?x <e:q> ?z } }",
        &["a alpha _", "b beta -"],
    );
    // a join on a variable that one side leaves open
    case(
        e,
        "SELECT ?v ?w { VALUES (?v ?w) { (<e:a> UNDEF) (UNDEF <e:c>) } ?v <e:p> ?w }",
        &["a b", "a c", "a c", "b c"],
    );
    case(
        e,
        "SELECT ?s ?v { { SELECT ?s ?v { ?s <e:n> 1 OPTIONAL { ?s <e:none> ?v } } } ?v <e:n> 2 }",
        &["a b"],
    );
}

#[test]
fn minus_union_and_exists() {
    let f = open(DATA);
    let e = &f.engine;
    case(e, "SELECT ?s { ?s <e:n> ?n MINUS { ?s <e:p> <e:c> } }", &["c", "d"]);
    case(e, "SELECT ?s { ?s <e:n> ?n MINUS { ?x <e:p> <e:c> } }", &["a", "b", "c", "d"]);
    case(e, "SELECT ?x { { ?x <e:p> <e:c> } UNION { <e:c> <e:p> ?x } }", &["a", "b", "d"]);
    case(
        e,
        "SELECT ?x ?y { ?x <e:n> ?n { ?x <e:p> ?y } UNION { ?y <e:p> ?x } FILTER(?n = 2) }",
        &["b a", "b c"],
    );
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER EXISTS { ?s <e:p> <e:c> } }", &["a", "b"]);
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER NOT EXISTS { ?s <e:p> ?o } }", &["d"]);
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER EXISTS { ?o <e:n> ?m FILTER(?m > ?n + 1) } }", &["a", "b"]);
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER(?n = 1 || EXISTS { ?s <e:p> <e:d> }) }", &["a", "c"]);
    case(
        e,
        "SELECT ?s ?x { ?s <e:n> ?n BIND(EXISTS { ?s <e:p> ?o } AS ?x) }",
        &["a true", "b true", "c true", "d false"],
    );
    case(e, "SELECT ?s { ?s <e:n> ?n FILTER NOT EXISTS { <e:a> <e:p> <e:b> } }", &[]);
    let marks = "?s <e:p> ?o BIND(EXISTS { ?o <e:p> <e:d> } AS ?x)";
    case(e, &format!("SELECT DISTINCT ?s {{ {marks} }}"), &["a", "b", "c"]);
}

#[test]
fn equalities_become_substitutions_only_where_that_is_the_same() {
    let f = open(DATA);
    let e = &f.engine;
    case(e, "SELECT ?x ?y { ?x <e:p> ?y FILTER(?y = <e:c>) }", &["a c", "b c"]);
    case(e, "SELECT ?x ?y ?z { ?x <e:p> ?y . ?z <e:p> ?w FILTER(?y = ?z) }", &["a b b", "a c c", "b c c"]);
    // 04 equals 4 in value, and is another term
    case(e, "SELECT ?x { ?x <e:n> ?n FILTER(?n = 4.0) }", &["d"]);
    case(e, "SELECT ?x { ?x <e:n> ?n FILTER(sameTerm(?n, 4)) }", &[]);
}

#[test]
fn groups_and_order() {
    let f = open(DATA);
    let e = &f.engine;
    case(
        e,
        "SELECT ?s (COUNT(?o) AS ?c) { ?s <e:p> ?o } GROUP BY ?s ORDER BY DESC(?c) ?s",
        &["a 2", "b 1", "c 1"],
    );
    case(e, "SELECT ?s { ?s <e:p> ?o } GROUP BY ?s HAVING(COUNT(*) > 1)", &["a"]);
    case(e, "SELECT (SUM(?n) AS ?t) { ?s <e:n> ?n }", &["10.5"]);
    case(e, "SELECT (COUNT(*) AS ?c) { ?s <e:none> ?n }", &["0"]);
    case(e, "SELECT ?s { ?s <e:none> ?n } GROUP BY ?s", &[]);
    case(e, "SELECT (COUNT(DISTINCT *) AS ?c) { { ?s <e:p> ?o } UNION { ?s <e:p> ?o } }", &["4"]);
    case(e, "SELECT ?s ?n { ?s <e:n> ?n } ORDER BY ?n LIMIT 2 OFFSET 1", &["b 2", "c 3.5"]);
    case(e, "SELECT DISTINCT ?n { ?s <e:n> ?n } ORDER BY DESC(?n) LIMIT 2", &["04", "3.5"]);
    case(e, "SELECT ?s { ?s <e:n> ?n } ORDER BY DESC(?n)", &["d", "c", "b", "a"]);
    case(
        e,
        "SELECT ?x { { SELECT ?s (MAX(?n) AS ?x) { ?s <e:p>/<e:n> ?n } GROUP BY ?s } ?s <e:l> 'alpha' }",
        &["3.5"],
    );
    case(e, "SELECT ?d { BIND(IRI(CONCAT('e:', 'c')) AS ?c) ?c <e:p> ?d }", &["d"]);
}

#[test]
fn graphs() {
    let f = open(DATA);
    let e = &f.engine;
    case(e, "SELECT ?g ?s { GRAPH ?g { ?s <e:p> <e:b> } }", &["g1 a", "g2 a"]);
    case(e, "SELECT ?s ?o { GRAPH <e:g1> { ?s <e:p> ?o } }", &["a b", "b c"]);
    case(e, "SELECT ?g { GRAPH ?g { } }", &["g1", "g2"]);
    case(e, "SELECT ?g ?x { GRAPH ?g { ?s ?p ?o } BIND(1 AS ?x) }", &["g1 1", "g1 1", "g2 1", "g2 1"]);
    case(e, "SELECT ?s ?o FROM <e:g1> FROM <e:g2> { ?s <e:p> ?o }", &["a b", "b c", "z z"]);
    case(e, "SELECT ?g ?s FROM NAMED <e:g2> { GRAPH ?g { ?s <e:p> ?o } }", &["g2 a", "g2 z"]);
    case(e, "SELECT ?s FROM NAMED <e:g2> { ?s <e:p> ?o }", &[]);
    case(e, "SELECT ?s { GRAPH <e:g1> { <e:b> ?p ?s } }", &["c"]);
    // inside, the graph's variable is one like any other
    case(e, "SELECT ?g { GRAPH ?g { ?g <e:p> ?o } }", &[]);
    let open = "SELECT ?g ?o { GRAPH ?g { ?s <e:p> ?o OPTIONAL { ?g <e:none> ?o } } }";
    case(e, open, &["g1 b", "g1 c", "g2 b", "g2 z"]);
    case(e, "SELECT ?g ?c { GRAPH ?g { { SELECT (COUNT(*) AS ?c) { ?g <e:p> ?o } } } }", &["g1 2", "g2 2"]);
    case(e, "SELECT ?g { ?x <e:n> 1 . GRAPH ?g { ?x <e:p>+ ?y } }", &["g1", "g1", "g2"]);
}

#[test]
fn paths() {
    let f = open(DATA);
    let e = &f.engine;
    case(e, "SELECT ?y { <e:a> <e:p>+ ?y }", &["b", "c", "d"]);
    case(e, "SELECT ?y { <e:a> <e:p>* ?y }", &["a", "b", "c", "d"]);
    case(e, "SELECT ?x { ?x <e:p>+ <e:c> }", &["a", "b"]);
    case(e, "SELECT ?y { <e:a> <e:p>? ?y }", &["a", "b", "c"]);
    case(e, "SELECT ?y { <e:a> <e:p>/<e:p> ?y }", &["c", "d"]);
    case(e, "SELECT ?y { <e:c> ^<e:p> ?y }", &["a", "b"]);
    case(e, "SELECT ?y { <e:b> (<e:p>|<e:n>) ?y }", &["2", "c"]);
    case(e, "SELECT ?y { <e:b> !(<e:p>|<e:l>) ?y }", &["2"]);
    case(e, "SELECT ?y { <e:nowhere> <e:p>* ?y }", &["nowhere"]);
    case(e, "SELECT ?x ?y { ?x <e:p>+ ?y FILTER(?x = <e:b>) }", &["b c", "b d"]);
    case(e, "SELECT ?y { <e:a> (<e:p>/<e:p>)+ ?y }", &["c", "d"]);
}

#[test]
fn forms() {
    let f = open(DATA);
    let e = &f.engine;
    case(e, "ASK { <e:a> <e:p> <e:b> }", &[""]);
    case(e, "ASK { <e:a> <e:p> <e:a> }", &[]);
    case(
        e,
        "CONSTRUCT { ?y <e:inverse> ?x } { ?x <e:p> ?y . ?x <e:p> ?z }",
        &["b inverse a", "c inverse a", "c inverse b", "d inverse c"],
    );
    case(e, "CONSTRUCT { _:b <e:of> ?x } { ?x <e:p> ?y }", &["_ of a", "_ of a", "_ of b", "_ of c"]);
    case(
        e,
        "DESCRIBE ?x { ?x <e:p> <e:d> }",
        &["c l a longer label, beyond seven bytes", "c n 3.5", "c p d"],
    );
    // through blank nodes
    case(
        e,
        "DESCRIBE <e:a>",
        &["_ r _", "_ r deep", "_ r z", "a l alpha", "a n 1", "a p b", "a p c", "a q _"],
    );
}

/// Constants of a text are parameters of its shape: a triple term of them has as many levels.
#[test]
fn triple_terms_with_parameters_have_so_many_levels() {
    let f = open("<e:s> <e:p> <e:o> .");
    let nested = |levels: usize, leaf: &str| {
        format!("{}{leaf}{}", "<<( <e:s> <e:p> ".repeat(levels), " )>>".repeat(levels))
    };
    for leaf in ["\"x\"", "17", "<e:o>", "\"x\"@en"] {
        for form in ["VALUES ?t { @ }", "?s ?p @", "FILTER EXISTS { ?s ?p @ }"] {
            let ask = |levels| {
                let text = format!("ASK {{ {} }}", form.replace('@', &nested(levels, leaf)));
                f.engine.query(&text, &QueryOptions::default()).map(drop)
            };
            ask(64).unwrap_or_else(|error| panic!("{form} {leaf}: {error}"));
            let refused = ask(65).map_err(|error| error.to_string());
            let says = refused.as_ref().is_err_and(|why| why.contains("64 levels"));
            assert!(says, "{form} {leaf}: {refused:?}");
        }
    }
}

#[test]
fn parameters_of_one_shape_do_not_mix() {
    let f = open(DATA);
    for (iri, expected) in [("a", &["b", "c"][..]), ("b", &["c"]), ("nowhere", &[]), ("a", &["b", "c"])] {
        case(&f.engine, &format!("SELECT ?o {{ <e:{iri}> <e:p> ?o }}"), expected);
    }
    // equal and different constants are different shapes
    case(&f.engine, "SELECT ?o { <e:a> <e:p> ?o . <e:b> <e:p> ?o }", &["c"]);
    case(&f.engine, "SELECT ?o { <e:a> <e:p> ?o . <e:a> <e:p> ?o }", &["b", "c"]);
    assert!(f.engine.templates.read().len() <= 5);
}

/// Bytes that queries have put aside so far, and read back.
fn spilled(engine: &QueryEngine) -> [u64; 2] {
    let stripe = &engine.graph().database().store().device_counters()[0];
    ["spill-write", "spill-read"].map(|name| {
        let class = stripe.classes.iter().find(|class| class.class.name() == name);
        class.expect("a class of the queue").bytes
    })
}

#[test]
fn operators_spill_and_give_the_same() {
    let lines: String = (0..60_000).map(|i| format!("<e:s{}> <e:v> <e:o{}> .\n", i % 40_022, i)).collect();
    let f = open(&lines);
    let tight = QueryOptions { memory: Some(1 << 20), ..QueryOptions::default() };
    let ample = QueryOptions::default();
    for query in [
        "SELECT ?o { ?s <e:v> ?o } ORDER BY DESC(?o)",
        "SELECT DISTINCT ?s { ?s <e:v> ?o }",
        "SELECT ?q (COUNT(*) AS ?c) { ?s <e:v> ?o . ?s <e:v> ?q } GROUP BY ?q",
        "SELECT ?s ?m ?n { { SELECT DISTINCT ?s ?m { ?s <e:v> ?m } } { SELECT DISTINCT ?s ?n { ?s <e:v> ?n } } }",
    ] {
        let before = spilled(&f.engine);
        let mut a = rows(&f.engine, query, &tight).unwrap_or_else(|e| panic!("{query}: {e}"));
        let aside = spilled(&f.engine);
        assert!(aside[0] > before[0] && aside[1] > before[1], "{query}: bytes written and read {aside:?}");
        let mut b = rows(&f.engine, query, &ample).unwrap();
        assert_eq!(spilled(&f.engine), aside, "{query}: what fits is not put aside");
        if !query.contains("ORDER BY") {
            a.sort();
            b.sort();
        }
        assert!(a == b && a.len() >= 40_000, "{query}: {} and {} rows", a.len(), b.len());
    }
    // groups that come one after the other are given out before there are many
    let before = spilled(&f.engine);
    let query = "SELECT ?s (COUNT(DISTINCT ?o) AS ?c) { ?s <e:v> ?o } GROUP BY ?s";
    let [a, b] = [&tight, &ample].map(|options| rows(&f.engine, query, options).unwrap());
    assert!(a == b && a.len() == 40_022 && spilled(&f.engine) == before, "{} and {} rows", a.len(), b.len());
    let none = QueryOptions { memory: Some(1000), ..QueryOptions::default() };
    let product = "SELECT ?s { ?s <e:v> ?o . ?a <e:v> ?b } LIMIT 1";
    assert!(matches!(rows(&f.engine, product, &none), Err(QueryError::Memory { .. })));
}

/// Data of which a join is worth several threads.
fn forkable() -> Fixture {
    let line = |i| format!("<e:s{}> <e:v> <e:o{}> .\n", i % 5_003, i % 241);
    open(&(0..17_000).map(line).collect::<String>())
}

#[test]
fn a_panic_of_a_forked_thread_is_no_end_of_the_answer() {
    let f = forkable();
    let query = "SELECT ?b (MAX(?a) AS ?c) { ?a <e:v> ?o . ?b <e:v> ?o } GROUP BY ?b";
    let options = QueryOptions { threads: 2, ..QueryOptions::default() };
    let mut result = f.engine.query(query, &options).unwrap();
    crate::exec::PANIC.set(true);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| result.next_batch().map(drop)));
    crate::exec::PANIC.set(false);
    assert!(ended.is_err(), "{ended:?}");
}

#[test]
fn forked_pipelines_give_the_same() {
    let f = forkable();
    let query = "SELECT ?b (MAX(?a) AS ?c) (SAMPLE(CONCAT(STR(?b), '!')) AS ?t) { ?a <e:v> ?o . ?b <e:v> ?o } GROUP BY ?b";
    let with = |threads| QueryOptions { threads, ..QueryOptions::default() };
    let run = |threads| {
        let mut result = f.engine.query(query, &with(threads)).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = result.next_batch().unwrap() {
            rows.extend((0..batch.rows).map(|r| (batch.cols[0][r], batch.cols[1][r])));
        }
        rows.sort();
        (rows, result.activity().fork)
    };
    let (one, two) = (run(1), run(2));
    assert_eq!((one.1, two.1), (0, 2), "{}", f.engine.explain(query, &with(1)).unwrap());
    assert!(one.0.len() == 5_003 && one.0 == two.0);
    // a thread's error is the query's
    let late = QueryOptions { timeout: Some(Duration::from_millis(2)), ..with(2) };
    assert!(matches!(rows(&f.engine, query, &late), Err(QueryError::Timeout(_))));
}

/// Threads group their parts, and the groups of the parts are grouped again: few rows come back.
#[test]
fn groups_of_parts_are_grouped_again() {
    let f = forkable();
    let pairs = "?a <e:v> ?o . ?b <e:v> ?o";
    let text = "CONCAT(STR(?a), STR(?b))";
    let with = |threads| QueryOptions { threads, ..QueryOptions::default() };
    for query in [
        format!(
            "SELECT (MAX({text}) AS ?m) (COUNT(?x) AS ?n) (COUNT(*) AS ?c) {{ {pairs} OPTIONAL {{ ?a <e:none> ?x }} }}"
        ),
        format!(
            "SELECT ?o (MIN({text}) AS ?m) (SUM(STRLEN({text})) AS ?s) (COUNT(?a) AS ?n) {{ {pairs} }} GROUP BY ?o"
        ),
        format!("SELECT ?o (MAX(DISTINCT {text}) AS ?m) (SUM(?a) AS ?failed) {{ {pairs} }} GROUP BY ?o"),
        format!(
            "SELECT (COUNT(*) AS ?n) (SUM(1) AS ?s) (MAX({text}) AS ?m) {{ {pairs} FILTER({text} = \"x\") }}"
        ),
        // of most parts no row is left
        format!(
            "SELECT (MAX({text}) AS ?m) (SAMPLE(?a) AS ?one) {{ {pairs} FILTER({text} = \"e:s7e:s7\") }}"
        ),
        format!("SELECT (SUM(IF({text} = \"e:s7e:s7\", ?a, 1)) AS ?failed) (COUNT(*) AS ?n) {{ {pairs} }}"),
    ] {
        let run = |threads| {
            let mut result = f.engine.query(&query, &with(threads)).unwrap();
            let mut rows = Vec::new();
            while let Some(batch) = result.next_batch().unwrap() {
                rows.extend((0..batch.rows).map(|r| batch.cols.iter().map(|c| c[r].0).collect::<Vec<u64>>()));
            }
            (rows.len(), result.activity())
        };
        let ((one, alone), (two, together)) = (run(1), run(2));
        assert_eq!((alone.fork, together.fork), (0, 2), "{}", f.engine.explain(&query, &with(1)).unwrap());
        assert!(one == two && together.messages < 40, "{one} and {two} rows, {} messages", together.messages);
        let [mut one, mut two] = [1, 2].map(|threads| rows(&f.engine, &query, &with(threads)).unwrap());
        one.sort();
        two.sort();
        assert_eq!(one, two, "{query}");
    }
}

/// Work that is cut by a value is done to its end in each part: any aggregates of groups that the
/// value is a key of, different rows that have it, the number of its values.
#[test]
fn parts_by_value_are_apart() {
    let f = forkable();
    let with =
        |threads| QueryOptions { threads, thread_work: Some(Duration::ZERO), ..QueryOptions::default() };
    for query in [
        "SELECT ?a (AVG(STRLEN(STR(?o))) AS ?x) (COUNT(DISTINCT ?o) AS ?n) { ?a <e:v> ?o } GROUP BY ?a",
        "SELECT ?a (COUNT(DISTINCT ?o) AS ?n) (SAMPLE(CONCAT(STR(?a), '!')) AS ?t) { ?a <e:v> ?o } GROUP BY ?a",
        "SELECT ?a ?o (COUNT(*) AS ?n) { ?a <e:v> ?o . ?b <e:v> ?o } GROUP BY ?a ?o",
        "SELECT DISTINCT ?a ?b { ?a <e:v> ?o . ?b <e:v> ?o FILTER(?a != ?b) }",
        "SELECT (COUNT(DISTINCT ?a) AS ?n) { ?a ?p ?o }",
        "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?a <e:v> ?o FILTER(?o != <e:o7>) }",
    ] {
        let [mut one, mut two] = [1, 2].map(|threads| rows(&f.engine, query, &with(threads)).unwrap());
        one.sort();
        two.sort();
        assert!(!one.is_empty() && one == two, "{query}: {} and {} rows", one.len(), two.len());
        let mut result = f.engine.query(query, &with(2)).unwrap();
        while result.next_batch().unwrap().is_some() {}
        let forks = result.activity().fork;
        assert_eq!(forks, 2, "{query}\n{}", f.engine.explain(query, &with(2)).unwrap());
    }
}

/// Without ORDER BY the rows of a plan's root come in any order: it is forked as well. What an
/// operator did is what all threads together did.
#[test]
fn a_root_without_order_is_forked_and_analysed() {
    let f = forkable();
    let query = "SELECT ?a ?b { ?a <e:v> ?o . ?b <e:v> ?o }";
    let with = |threads| QueryOptions { threads, ..QueryOptions::default() };
    let run = |threads| {
        let mut result = f.engine.query(query, &with(threads)).unwrap();
        let mut pairs: Vec<(TermId, TermId)> = Vec::new();
        while let Some(batch) = result.next_batch().unwrap() {
            pairs.extend((0..batch.rows).map(|r| (batch.cols[0][r], batch.cols[1][r])));
        }
        pairs.sort_unstable();
        (pairs, result.activity().fork)
    };
    let (one, two) = (run(1), run(2));
    assert_eq!((one.1, two.1), (0, 2), "{}", f.engine.explain(query, &with(1)).unwrap());
    assert!(one.0.len() > 1_000_000 && one.0 == two.0, "{} and {} pairs", one.0.len(), two.0.len());
    for few in ["ASK { ?a <e:v> ?o . ?b <e:v> ?o }", &format!("{query} LIMIT 10")] {
        let mut result = f.engine.query(few, &with(2)).unwrap();
        assert!(result.next_batch().unwrap().is_some());
        assert_eq!(result.activity().fork, 0, "few rows are enough: {few}");
    }
    let analysis = f.engine.analyze(query, &with(2)).unwrap();
    let counted = format!("rows {} ", one.0.len());
    let root = analysis.lines().next().unwrap();
    assert!(root.contains(&counted) && root.contains("| 2 threads"), "{analysis}");
    let scanned = analysis.lines().any(|line| line.contains("scan") && line.contains("| rows 17000 "));
    assert!(scanned, "the scan's rows of both threads: {analysis}");
    let grouped = query.replace("?a ?b", "(MAX(?a) AS ?m) (MAX(?b) AS ?n)");
    let analysis = f.engine.analyze(&grouped, &with(2)).unwrap();
    assert!(analysis.contains("| 2 threads"), "{analysis}");
    let root = analysis.lines().next().unwrap();
    assert!(
        root.contains(" seq") && !root.contains(" 0 seq"),
        "what the threads read is its, too: {analysis}"
    );
}

/// Nodes that are told apart by counting solutions are counted in one thread.
#[test]
fn each_solution_has_nodes_of_its_own_however_many_threads_there_are() {
    let lines: String = (0..6_000).map(|i| format!("<e:s{i}> <e:v> <e:o{}> .\n", i % 241)).collect();
    let f = open(&lines);
    let query = "SELECT (BNODE(\"x\") AS ?n) { ?a <e:v> ?o . ?b <e:v> ?o }";
    for threads in [1, 2] {
        let mut result = f.engine.query(query, &QueryOptions { threads, ..QueryOptions::default() }).unwrap();
        let (mut rows, mut nodes) = (0, std::collections::HashSet::new());
        while let Some(batch) = result.next_batch().unwrap() {
            rows += batch.rows;
            nodes.extend(batch.cols[0][..batch.rows].iter().copied());
        }
        assert!(rows > 140_000 && nodes.len() == rows, "{threads} threads: {} nodes for {rows}", nodes.len());
    }
}

#[test]
fn limits_end_a_query() {
    let lines: String = (0..3000).map(|i| format!("<e:s{i}> <e:v> <e:o{i}> .\n")).collect();
    let f = open(&lines);
    let endless =
        "SELECT (COUNT(*) AS ?c) { ?a <e:v> ?b . ?c <e:v> ?d . ?e <e:v> ?f FILTER(?b != ?d || ?d != ?f) }";
    let timeout = QueryOptions { timeout: Some(Duration::from_millis(30)), ..QueryOptions::default() };
    assert!(matches!(rows(&f.engine, endless, &timeout), Err(QueryError::Timeout(_))));
    let cancelled = QueryOptions { cancel: Some(Arc::new(AtomicBool::new(true))), ..QueryOptions::default() };
    assert!(matches!(rows(&f.engine, endless, &cancelled), Err(QueryError::Cancelled)));
    let few = QueryOptions { max_rows: Some(10), ..QueryOptions::default() };
    assert!(matches!(rows(&f.engine, "SELECT * { ?s ?p ?o }", &few), Err(QueryError::Rows(10))));
}

#[test]
fn a_wait_for_memory_is_shown_and_metered() {
    let Fixture { engine, _dir } = open(DATA);
    let (db, account) = (engine.graph(), engine.graph().database().account("who waits"));
    let waits = || db.database().report().memory_waits;
    let options = QueryOptions { account: Some(account.clone()), ..QueryOptions::default() };
    let ask = || rows(&engine, "SELECT * { ?s <e:l> ?o }", &options).unwrap().len();
    assert_eq!((ask(), waits().count), (3, 0), "who need not wait is not counted");
    let taken = db.database().memory().reserve("a test", db.database().memory().free()).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(ask);
        let begun = std::time::Instant::now();
        while account.sign().read() != Some(WaitFor::Memory) || waits().now == 0 {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", waits());
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(taken);
        assert_eq!(waiter.join().unwrap(), 3);
    });
    assert_eq!((waits().now, waits().count, account.sign().read()), (0, 1, None));
    assert!(waits().longest_ns > 0);
}

#[test]
fn bad_and_unknown_texts_name_their_place() {
    let f = open(DATA);
    let options = QueryOptions::default();
    let error = |text: &str| rows(&f.engine, text, &options).unwrap_err();
    assert!(matches!(error("SELECT ?x {\n ?x <e:p }"), QueryError::Parse { line: 2, .. }));
    let twice = error("SELECT * { { SELECT ?b { ?s ?p ?b } }\nBIND(1 AS ?b) }").to_string();
    assert_eq!(
        twice,
        "line 2, column 11: BIND gives ?b a value, which it may have before: take another name"
    );
    let service = error("SELECT * {\n  SERVICE <e:x> { ?s ?p ?o } }");
    assert_eq!(service.to_string(), "SERVICE <e:x>: no endpoint may be asked");
    let aggregate = error("SELECT (<e:sum>(DISTINCT ?o) AS ?x)\n{ ?s ?p ?o }");
    assert!(matches!(aggregate, QueryError::Parse { .. } | QueryError::Unsupported { .. }), "{aggregate}");
}

/// A function that is not there is an error of the expression, and told.
#[test]
fn unknown_functions_are_warned_of() {
    let f = open(DATA);
    let options = QueryOptions::default();
    let warned = |text: &str| {
        let result = f.engine.query(text, &options).unwrap();
        assert_eq!(f.engine.explanation(text, &options).unwrap().warnings, result.warnings());
        result.warnings().to_vec()
    };
    let text = "SELECT * { <e:a> <e:p> ?o BIND(COALESCE(<e:fun>(?o, 1), 'none') AS ?x) }";
    let sentence = "there is no function <e:fun> of 2 arguments: each call of it is an error";
    case(&f.engine, text, &["b none", "c none"]);
    // the second time from the template
    assert_eq!((warned(text), warned(text)), (vec![sentence.to_owned()], vec![sentence.to_owned()]));
    let explained = f.engine.explain(text, &options).unwrap();
    assert!(explained.contains(&format!("warning: {sentence}\n")), "{explained}");
    let json = f.engine.explanation(text, &options).unwrap().json();
    assert_eq!(json["warnings"], serde_json::json!([sentence]));
    case(&f.engine, "SELECT * { <e:a> <e:p> ?o FILTER(<e:fun>(?o) || true) }", &["b", "c"]);
    case(&f.engine, "SELECT * { <e:a> <e:p> ?o FILTER(!<e:fun>(?o)) }", &[]);
    let twice = warned(
        "SELECT * { ?s ?p ?o FILTER(<e:f>() && <e:f>() && <e:f>(1) && xsd:int('1', 2) && xsd:int('1')) }"
            .replace("xsd:int", "<http://www.w3.org/2001/XMLSchema#int>")
            .as_str(),
    );
    assert_eq!(twice.len(), 3, "each once: {twice:?}");
    assert_eq!(
        warned("SELECT * { ?s ?p ?o FILTER(<http://www.w3.org/2005/xpath-functions#true>()) }"),
        [""; 0]
    );
    let update = "INSERT { ?s <e:new> ?x } WHERE { ?s <e:p> <e:b> BIND(<e:fun>(?s) AS ?x) }";
    let updated = f.engine.update(update, &UpdateOptions::default()).unwrap();
    assert_eq!(
        updated.warnings,
        ["there is no function <e:fun> of one argument: each call of it is an error"]
    );
    assert_eq!(updated.changed.inserted, 0);
}

#[test]
fn functions_of_the_program_are_called() {
    let f = open(DATA);
    let call = |args: &[Term]| match args {
        [Term::Literal { lexical, .. }] => Some(Term::Iri(format!("e:{}", lexical.len()))),
        _ => None,
    };
    let function = |is_deterministic| crate::CustomFunction { call: Arc::new(call), is_deterministic };
    let mut functions = crate::CustomFunctions::default();
    functions.add("e:length", function(true));
    functions.add("e:other", function(false));
    let options = QueryOptions { functions: Arc::new(functions.clone()), ..QueryOptions::default() };
    let text = "SELECT ?x ?l { ?x <e:l> ?o BIND(<e:length>(?o) AS ?l) }";
    let mut found = rows(&f.engine, text, &options).unwrap();
    found.sort();
    assert_eq!(found, ["a 5", "b 4", "c 34"]);
    assert!(f.engine.query(text, &options).unwrap().warnings().is_empty());
    assert_eq!(f.engine.query(text, &QueryOptions::default()).unwrap().warnings().len(), 1);
    let is_volatile = |text: &str| f.engine.query(text, &options).unwrap().is_volatile();
    assert!(!is_volatile(text));
    assert!(is_volatile("SELECT * { BIND(<e:other>(1) AS ?x) }"));
    assert!(is_volatile("SELECT * { BIND(<http://jena.apache.org/ARQ/function#now>() AS ?x) }"));
    // what a function gives meets what is stored
    let joined = "SELECT ?x { BIND(<e:length>('x') AS ?l) ?x <e:of> ?l }";
    let update =
        "INSERT { ?x <e:of> ?l } WHERE { ?x <e:l> ?o BIND(<e:length>(SUBSTR(STR(?o), 1, 1)) AS ?l) }";
    let updates = UpdateOptions { functions: Arc::new(functions), ..UpdateOptions::default() };
    assert_eq!(f.engine.update(update, &updates).unwrap().changed.inserted, 3);
    assert_eq!(rows(&f.engine, joined, &options).unwrap().len(), 3);
}

#[test]
fn resources_are_described_in_three_forms() {
    let label = "<http://www.w3.org/2000/01/rdf-schema#label>";
    let f = open(&format!("{DATA}<e:p> {label} \"pp\" . <e:c> {label} \"cc\" . <e:d> {label} \"dd\" .\n"));
    let described = |text: &str, describe| {
        let options = QueryOptions { describe, ..QueryOptions::default() };
        let mut found = rows(&f.engine, text, &options).unwrap();
        found.sort();
        found.iter().map(|row| row.replace("http://www.w3.org/2000/01/rdf-schema#", "")).collect::<Vec<_>>()
    };
    use super::DescribeForm as Form;
    let concise = ["b l beta", "b n 2", "b p c"];
    assert_eq!(described("DESCRIBE <e:b>", Form::Concise), concise);
    assert_eq!(described("DESCRIBE <e:b>", Form::Symmetric), ["a p b", "b l beta", "b n 2", "b p c"]);
    assert_eq!(
        described("DESCRIBE <e:b>", Form::Labelled),
        ["b l beta", "b n 2", "b p c", "c label cc", "p label pp"]
    );
    // towards <e:z>, through blank nodes in both directions
    assert_eq!(described("DESCRIBE <e:z>", Form::Concise), [""; 0]);
    assert_eq!(described("DESCRIBE <e:z>", Form::Symmetric), ["_ r _", "_ r deep", "_ r z", "a q _"]);
    assert_eq!(
        described("DESCRIBE <e:b> FROM <e:g1>", Form::Symmetric),
        ["a p b", "b p c"],
        "within the dataset"
    );
    assert_eq!(Form::NAMES.map(|(name, _)| Form::named(name)), Form::NAMES.map(|(_, form)| Some(form)));
}

#[test]
fn prefixes_may_be_assumed() {
    let f = open(DATA);
    let mut prefixes = snowmelt_graph::Namespaces::default();
    prefixes.set("x", "e:").unwrap();
    prefixes.set("y", "e:").unwrap();
    let options = QueryOptions { prefixes: Arc::new(prefixes), ..QueryOptions::default() };
    assert_eq!(rows(&f.engine, "SELECT ?o { x:a x:l ?o }", &options).unwrap(), ["alpha"]);
    assert!(rows(&f.engine, "SELECT ?o { x:a x:l ?o }", &QueryOptions::default()).is_err());
    assert_eq!(rows(&f.engine, "PREFIX x: <e:x> SELECT ?o { x:a x:l ?o }", &options).unwrap(), [""; 0]);
    let place = |text: &str| match rows(&f.engine, text, &options).unwrap_err() {
        QueryError::Parse { line, column, .. } => (line, column),
        other => panic!("{other}"),
    };
    assert_eq!(place("SELECT ?o { x:a y:p ?o } LIMT 3"), (1, 26));
    assert_eq!(place("SELECT ?o { x:a y:p ?o }\nLIMT 3"), (2, 1));
    assert_eq!(place("SELECT ?o { x:a z:p ?o }"), (1, 17));
}

#[test]
fn explain_and_analyze_show_the_operators() {
    let f = open(DATA);
    let query = "SELECT ?x ?l { ?x <e:p> <e:c> . ?x <e:l> ?l } ORDER BY ?l LIMIT 1";
    let plan = f.engine.explain(query, &QueryOptions::default()).unwrap();
    assert!(plan.contains("top 1") && plan.contains("lookup PSOG"), "{plan}");
    let analysis = f.engine.analyze(query, &QueryOptions::default()).unwrap();
    assert!(analysis.contains("rows 2 batches 1") && analysis.contains("1 rows;"), "{analysis}");
}

/// The q-errors of a query's operators: by how many times more or fewer rows came than expected.
fn q_errors(text: &str) -> Vec<(String, Option<f64>)> {
    let data: String = (0..400).map(|i| format!("<e:s{i}> <e:p> <e:o{}> .\n", i % 7)).collect();
    let f = open(&data);
    let options = QueryOptions { batch_rows: Some(8), threads: 1, ..QueryOptions::default() };
    let plan = f.engine.analysis(text, &options).unwrap();
    let json = plan.json();
    let of_json = json["operators"].as_array().unwrap().iter().map(|o| o["measured"]["q_error"].as_f64());
    assert!(of_json.eq(plan.steps.iter().map(PlanStep::q_error)), "{json:#}");
    for (line, step) in plan.to_string().lines().zip(&plan.steps) {
        assert_eq!(line.contains(" q-error "), step.q_error().is_some(), "{line}");
    }
    plan.steps.iter().map(|step| (step.operator.clone(), step.q_error())).collect()
}

#[test]
fn only_operators_that_came_to_their_end_have_q_errors() {
    let of = |operators: &[(&str, Option<f64>)]| -> Vec<(String, Option<f64>)> {
        operators.iter().map(|(name, error)| ((*name).to_owned(), *error)).collect()
    };
    assert_eq!(q_errors("SELECT ?s { ?s <e:p> ?o }"), of(&[("scan", Some(1.0))]));
    // a limit needs no more than the first batch of what is below it
    assert_eq!(q_errors("SELECT ?s { ?s <e:p> ?o } LIMIT 5"), of(&[("slice", Some(1.0)), ("scan", None)]));
    // a sort reads all, and is not asked for more than the limit
    let top = q_errors("SELECT ?s { ?s <e:p> ?o } ORDER BY ?o ?s LIMIT 5");
    assert_eq!(top, of(&[("slice", Some(1.0)), ("top", None), ("scan", Some(1.0))]));
    let asked = q_errors("ASK { ?s <e:p> ?o }");
    assert_eq!(asked.last().unwrap().1, None, "{asked:?}");
    // a right side is run once per batch of the left
    let nested = q_errors("SELECT ?s ?u { ?s <e:p> ?o OPTIONAL { ?t <e:p> ?o . ?t <e:p> ?u } }");
    assert!(nested.iter().all(|(_, error)| error.is_some()), "{nested:?}");
}

/// The operator of a line of a plan's text, up to the estimates, and the rows it put out.
fn of_line(line: &str) -> (String, Option<u64>) {
    let (operator, rest) = line.split_once(" rows≈").unwrap_or_else(|| panic!("no estimate: {line}"));
    let rows = rest.split_once("| rows ").map(|(_, rows)| rows.split(' ').next().unwrap().parse().unwrap());
    (operator.trim().to_owned(), rows)
}

#[test]
fn plans_say_the_same_as_text_and_as_json() {
    let f = open(DATA);
    for query in [
        "SELECT ?x ?l { ?x <e:p> <e:c> . ?x <e:l> ?l } ORDER BY ?l LIMIT 1",
        "SELECT * { ?s ?p ?o OPTIONAL { ?s <e:l> ?l } FILTER(?o != <e:c>) }",
        "SELECT ?p (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { ?o ?p ?s } } GROUP BY ?p",
        "SELECT DISTINCT ?x { ?x <e:p>+ ?y FILTER NOT EXISTS { ?x <e:l> 'none' } }",
        "SELECT * { VALUES ?x { <e:a> <e:b> } ?x ?p ?o BIND(STR(?o) AS ?t) }",
        "ASK { <e:unknown> ?p ?o }",
    ] {
        let options = QueryOptions::default();
        for plan in [f.engine.explanation(query, &options), f.engine.analysis(query, &options)] {
            let plan = plan.unwrap();
            let (text, json) = (plan.to_string(), plan.json());
            let operators = json["operators"].as_array().unwrap();
            let mut is_input = vec![0; operators.len()];
            for (id, (line, of)) in text.lines().zip(operators).enumerate() {
                let said = format!("{} {}", of["operator"].as_str().unwrap(), of["detail"].as_str().unwrap());
                assert_eq!(of_line(line), (said.trim().to_owned(), of["measured"]["rows"].as_u64()));
                assert_eq!(of["id"], id);
                let depth = of["depth"].as_u64().unwrap();
                assert_eq!(line.len() - line.trim_start().len(), 2 * depth as usize, "{text}");
                for input in of["inputs"].as_array().unwrap() {
                    let input = input.as_u64().unwrap() as usize;
                    assert!(operators[input]["depth"] == depth + 1 && input > id, "{json:#}");
                    is_input[input] += 1;
                }
            }
            assert!(is_input[0] == 0 && is_input[1..].iter().all(|n| *n == 1), "it is a tree: {json:#}");
            match plan.outcome {
                Some(_) => assert_eq!(operators[0]["measured"]["rows"], json["outcome"]["rows"], "{json:#}"),
                None => assert_eq!(text.lines().count(), operators.len(), "{text}"),
            }
        }
    }
    let json = f.engine.explanation("SELECT ?l { <e:a> <e:l> ?l }", &QueryOptions::default()).unwrap().json();
    let all = json["operators"].as_array().unwrap();
    let scan = all.iter().find(|of| of["operator"] == "scan").unwrap_or_else(|| panic!("{json:#}"));
    assert_eq!((&scan["index"], &scan["key"]), (&"PSOG".into(), &serde_json::json!(["<e:l>", "<e:a>"])));
}

/// Each row has 27 million matches, which would take minutes; one is enough. Some have none.
#[test]
fn exists_asks_for_no_more_than_it_needs() {
    let mut data = String::new();
    for i in 0..300 {
        data += &format!("<e:s{i}> <e:p> <e:o{}> . ", i % 7);
    }
    data += "<e:x> <e:q> <e:o1> . <e:y> <e:q> <e:s1> . ";
    let f = open(&data);
    let options = QueryOptions { timeout: Some(Duration::from_secs(120)), ..QueryOptions::default() };
    let all = "SELECT ?a { ?a <e:p> ?d FILTER EXISTS { ?b <e:p> ?x . ?c <e:p> ?y . ?e <e:p> ?z
        OPTIONAL { ?f <e:q> ?a } } }";
    assert_eq!(rows(&f.engine, all, &options).unwrap().len(), 300);
    // <e:s1> has a match at once, the others have none
    let one = "SELECT ?a { ?a <e:p> ?d FILTER NOT EXISTS { ?b <e:p> ?x OPTIONAL { ?f <e:q> ?a } FILTER(BOUND(?f)) } }";
    assert_eq!(rows(&f.engine, one, &options).unwrap().len(), 299);
}

/// A long list of IN is a set; what it says is what short lists say.
#[test]
fn in_a_long_list_is_in_one_of_short_lists() {
    let f = open(DATA);
    let members = [
        "<e:a>",
        "<e:unknown>",
        "<e:c>",
        "1",
        "04",
        "3.5",
        "2.0e0",
        "'alpha'",
        "'beta'@en",
        "'nobody'",
        "true",
        "'x'^^<e:type>",
        "<e:d>",
        "?n",
        "'a longer label, beyond seven bytes'",
        "<e:new2>",
        "7",
    ];
    let values = [
        "?s",
        "?o",
        "?p",
        "?nothing",
        "STR(?o)",
        "IRI(CONCAT('e:', 'new', '2'))",
        "IRI(CONCAT('e:', 'a'))",
        "CONCAT('nob', 'ody')",
        "CONCAT('al', 'pha')",
        "1.0 * 2",
        "2.5 + 1",
        "STRDT('x', <e:type>)",
        "BNODE()",
        "STRLANG('beta', 'en')",
        "(1 = 1)",
        "STRDT('1', <http://www.w3.org/2001/XMLSchema#int>)",
    ];
    let mut matched = 0;
    for skip in 0..members.len() {
        let list: Vec<&str> = (0..members.len()).filter(|i| *i != skip).map(|i| members[i]).collect();
        for value in values {
            for not in ["", "!"] {
                let short = list.chunks(3).map(|part| format!("({value} IN ({}))", part.join(", ")));
                let short = short.collect::<Vec<_>>().join(" || ");
                let ask = |condition: &str| {
                    let text = format!(
                        "SELECT ?s ?p ?o {{ ?s ?p ?o OPTIONAL {{ ?s <e:n> ?n }} FILTER({not}({condition})) }}"
                    );
                    let mut rows = rows(&f.engine, &text, &QueryOptions::default()).unwrap();
                    rows.sort();
                    rows
                };
                let (long, short) = (ask(&format!("{value} IN ({})", list.join(", "))), ask(&short));
                assert_eq!(long, short, "{not} {value} IN {list:?}");
                matched += long.len();
            }
        }
    }
    assert!(matched > 1000, "{matched} rows");
}

#[test]
fn large_texts_are_planned_and_run_at_once() {
    let f = open(DATA);
    let count = |text: &str| rows(&f.engine, text, &QueryOptions::default()).unwrap().len();
    let iris = |n: usize| (0..n).map(|i| format!("<e:iri{i}>")).collect::<Vec<_>>();
    assert_eq!(
        count(&format!("SELECT * {{ ?s <e:p> ?o FILTER(?o IN ({}, <e:c>)) }}", iris(10_000).join(", "))),
        2
    );
    assert_eq!(
        count(&format!("SELECT * {{ ?s <e:p> ?o VALUES ?o {{ {} <e:c> }} }}", iris(100_000).join(" "))),
        2
    );
    assert_eq!(count(&format!("SELECT * {{ VALUES ?o {{ {} <e:c> }} }}", iris(100_000).join(" "))), 100_001);
}

/// A token set before, or a deadline that has passed, ends the query before it is planned:
/// 2,000 patterns, 100,000 constants.
#[test]
fn planning_stops_when_it_must() {
    let f = open(DATA);
    let patterns: String = (0..1999).map(|i| format!("?v{i} <e:p> ?v{} . ", i * 7 % 1999 + 2000)).collect();
    let constants = (0..100_000).map(|i| format!("<e:iri{i}>")).collect::<Vec<_>>().join(" ");
    for text in [
        format!("SELECT * {{ {patterns} }}"),
        format!("SELECT * {{ ?s ?p ?o VALUES ?o {{ {constants} }} }}"),
        format!("SELECT * {{ ?s ?p ?o FILTER(?o IN ({})) }}", constants.replace(' ', ", ")),
    ] {
        let cancelled =
            QueryOptions { cancel: Some(Arc::new(AtomicBool::new(true))), ..QueryOptions::default() };
        assert!(matches!(f.engine.explain(&text, &cancelled), Err(QueryError::Cancelled)));
        let late = QueryOptions { timeout: Some(Duration::ZERO), ..QueryOptions::default() };
        assert!(matches!(f.engine.explain(&text, &late), Err(QueryError::Timeout(_))));
    }
}

/// Two sides with 70 columns in common, each unbound in some: rows meet where both are bound,
/// also beyond the 32nd and 64th.
#[test]
fn sides_with_many_columns_in_common_are_joined() {
    const COLUMNS: usize = 70;
    let f = open(DATA);
    let names: String = (0..COLUMNS).map(|i| format!("?v{i} ")).collect();
    // A row of ones, unbound at one column, and two at another.
    let row = |unbound: usize, two: usize| {
        let cell = |i: usize| if i == unbound { "UNDEF " } else { ["1 ", "2 "][usize::from(i == two)] };
        format!("({})", (0..COLUMNS).map(cell).collect::<String>())
    };
    for (left, right, expected) in [
        (row(99, 99), row(99, 99), 1),
        (row(40, 99), row(99, 40), 1),
        (row(99, 40), row(40, 99), 1),
        (row(99, 40), row(41, 99), 0),
        (row(69, 99), row(3, 69), 1),
        (row(3, 99), row(99, 69), 0),
        (row(33, 65), row(65, 33), 1),
    ] {
        let text =
            format!("SELECT * {{ VALUES ({names}) {{ {left} }} {{ VALUES ({names}) {{ {right} }} }} }}");
        let found = rows(&f.engine, &text, &QueryOptions::default()).unwrap();
        assert_eq!(found.len(), expected, "{text}");
    }
}

/// DESCRIBE names as many resources as one likes, by names of all forms.
#[test]
fn a_long_list_is_described_as_each_of_its_members() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes: 256 << 20, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
    let data: String = (0..3000).map(|n| format!("<urn:r/{n}> <urn:p> {n} .")).collect();
    engine
        .update(
            &format!("INSERT DATA {{ {data} GRAPH <urn:g> {{ <urn:r/7> <urn:q> 7 }} }}"),
            &UpdateOptions::default(),
        )
        .unwrap();
    let triples = |text: &str| {
        let result = engine.query(text, &QueryOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut out = Vec::new();
        result.write(ResultFormat::NTriples, &mut out).unwrap();
        let mut lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    for most in [500, 1500, 25_000] {
        let name = |n: usize| match n % 3 {
            0 => format!("<urn:r/{n}> "),
            1 => format!("r:{n}\n"),
            _ => format!("<{n}> "),
        };
        let iris: String = (0..most).map(name).collect();
        let text = format!("BASE <http://b/> PREFIX r: <urn:r/> DESCRIBE {iris}");
        assert_eq!(triples(&text).len(), (0..most.min(3000)).filter(|n| n % 3 < 2).count());
        let absolute: String = (0..most).map(|n| format!("<urn:r/{n}>")).collect();
        assert_eq!(triples(&format!("DESCRIBE {absolute}")).len(), most.min(3000));
        assert_eq!(triples(&format!("DESCRIBE {absolute} FROM <urn:g>")).len(), 1);
        // variables beside them, and no solution
        let with = format!("DESCRIBE ?s {absolute} {{ ?s <urn:p> 2999 }}");
        assert_eq!(triples(&with).len(), (most + 1).min(3000));
        assert_eq!(triples(&format!("DESCRIBE ?s {absolute} {{ ?s <urn:none> ?o }}")).len(), 0);
    }
}

/// Triple terms of which any part may be known; `_:n` is a node of the data.
const REIFIED: &str = r#"
<e:r1> <e:reifies> <<( <e:a> <e:p> <e:b> )>> .
<e:r2> <e:reifies> <<( <e:a> <e:q> "x"@en--ltr )>> .
<e:r3> <e:reifies> <<( _:n <e:p> <<( <e:a> <e:p> <e:b> )>> )>> .
<e:r4> <e:reifies> <<( <e:c> <e:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> )>> .
<e:a> <e:p> <e:b> . _:n <e:l> "node" .
"#;

#[test]
fn a_pattern_inside_a_triple_term_is_a_range_of_a_tree() {
    let f = open(REIFIED);
    for (term, index, expected) in [
        ("<<( <e:a> ?p ?o )>>", "TRIPLE-SPO[…e:a]", vec!["r1", "r2"]),
        ("<<( ?s <e:q> ?o )>>", "TRIPLE-POS[…e:q]", vec!["r2"]),
        ("<<( ?s ?p <e:b> )>>", "TRIPLE-OSP[…e:b]", vec!["r1"]),
        ("<<( <e:a> <e:p> ?o )>>", "TRIPLE-SPO[…e:a …e:p]", vec!["r1"]),
        ("<<( ?s <e:p> 1 )>>", "TRIPLE-POS[…e:p ", vec!["r4"]),
        ("<<( ?s ?p <<( <e:a> <e:p> <e:b> )>> )>>", "TRIPLE-OSP[<<( ", vec!["r3"]),
        ("<<( ?s ?p <<( <e:a> ?p ?o )>> )>>", "TRIPLE-", vec!["r3"]),
    ] {
        let query = format!("SELECT ?r {{ ?r <e:reifies> {term} }}");
        let plan = f.engine.explain(&query, &QueryOptions::default()).unwrap();
        assert!(plan.contains(index) && !plan.contains("filter"), "{query}\n{plan}");
        for batch_rows in [None, Some(1)] {
            let options = QueryOptions { batch_rows, ..QueryOptions::default() };
            let mut found = rows(&f.engine, &query, &options).unwrap();
            found.sort();
            assert_eq!(found, expected, "{query}\n{plan}");
        }
    }
    // a constant is an id from the start
    let constant = "SELECT ?r { ?r <e:reifies> <<( <e:a> <e:p> <e:b> )>> }";
    let plan = f.engine.explain(constant, &QueryOptions::default()).unwrap();
    assert!(plan.contains("POSG[…e:reifies <<( ") && !plan.contains("TRIPLE-"), "{plan}");
    assert_eq!(rows(&f.engine, constant, &QueryOptions::default()).unwrap(), ["r1"]);
}

#[test]
fn triple_terms_are_made_and_taken_apart() {
    let f = open(REIFIED);
    for (text, expected) in [
        ("SELECT ?x { <e:r2> <e:reifies> ?t BIND(OBJECT(?t) AS ?x) }", vec!["x"]),
        ("SELECT (LANGDIR(OBJECT(?t)) AS ?x) { <e:r2> <e:reifies> ?t }", vec!["ltr"]),
        // a component is the stored term: what is joined with it is found
        ("SELECT ?x { ?r <e:reifies> ?t BIND(SUBJECT(?t) AS ?n) ?n <e:l> ?x }", vec!["node"]),
        // of a term that is made and not stored, too
        ("SELECT ?x { ?m <e:l> ?l BIND(SUBJECT(TRIPLE(?m, <e:new>, 7)) AS ?n) ?n <e:l> ?x }", vec!["node"]),
        // a made term that is stored meets the stored one
        ("SELECT ?x { ?s <e:p> ?o BIND(TRIPLE(?s, <e:p>, ?o) AS ?t) ?x <e:reifies> ?t }", vec!["r1"]),
        ("SELECT ?x { VALUES ?t { <<( <e:a> <e:p> <e:b> )>> } ?x <e:reifies> ?t }", vec!["r1"]),
        ("SELECT (TRIPLE(1, <e:p>, 2) AS ?x) {}", vec!["-"]),
        ("SELECT (TRIPLE(<e:a>, 1, 2) AS ?x) {}", vec!["-"]),
        ("SELECT (SUBJECT(<e:a>) AS ?x) {}", vec!["-"]),
        ("SELECT (STR(?t) AS ?x) { <e:r1> <e:reifies> ?t }", vec!["-"]),
        ("SELECT (DATATYPE(?t) AS ?x) { <e:r1> <e:reifies> ?t }", vec!["-"]),
        ("SELECT (isLITERAL(?t) AS ?x) { <e:r1> <e:reifies> ?t }", vec!["false"]),
        ("SELECT (<<( <e:a> <e:p> 1 )>> = <<( <e:a> <e:p> 1.0 )>> AS ?x) {}", vec!["true"]),
        ("SELECT (sameTerm(<<( <e:a> <e:p> 1 )>>, <<( <e:a> <e:p> 1.0 )>>) AS ?x) {}", vec!["false"]),
        ("SELECT (<<( <e:a> <e:p> 1 )>> = 1 AS ?x) {}", vec!["false"]),
        (
            "SELECT ?x { VALUES ?x { <<( <e:b> <e:p> 1 )>> <<( <e:a> <e:p> 10 )>> 5 <e:z> \
             <<( <e:a> <e:p> 9 )>> } } ORDER BY ?x",
            vec!["z", "5", "<<( <a> <p> 9 )>>", "<<( <a> <p> 10 )>>", "<<( <b> <p> 1 )>>"],
        ),
        (
            "SELECT (COUNT(DISTINCT ?t) AS ?x) { { ?r <e:reifies> ?t } UNION { ?r <e:reifies> ?t } }",
            vec!["4"],
        ),
        ("SELECT (STRLANGDIR(\"a\", \"en\", \"rtl\") = \"a\"@en AS ?x) {}", vec!["false"]),
    ] {
        for batch_rows in [None, Some(1)] {
            let options = QueryOptions { batch_rows, ..QueryOptions::default() };
            let found = rows(&f.engine, text, &options).unwrap_or_else(|e| panic!("{text}: {e}"));
            let found: Vec<String> = found
                .into_iter()
                .map(|row| row.replace("\"^^<http://www.w3.org/2001/XMLSchema#integer>", "").replace('"', ""))
                .collect();
            assert_eq!(found, expected, "{text}\n{}", f.engine.explain(text, &options).unwrap());
        }
    }
}

/// Texts that differ in the constants of a triple term share a plan and have their own answers.
#[test]
fn constants_in_triple_terms_are_parameters() {
    let f = open(REIFIED);
    for (object, expected) in [("<e:b>", vec!["r1"]), ("<e:none>", Vec::new()), ("<e:b>", vec!["r1"])] {
        let query = format!("SELECT ?r {{ ?r <e:reifies> <<( <e:a> <e:p> {object} )>> }}");
        assert_eq!(rows(&f.engine, &query, &QueryOptions::default()).unwrap(), expected);
    }
    // a parameter by name may be a triple term, and a part of one
    let triple = oxrdf::Triple::new(
        oxrdf::NamedNode::new_unchecked("e:a"),
        oxrdf::NamedNode::new_unchecked("e:p"),
        oxrdf::NamedNode::new_unchecked("e:b"),
    );
    let bound = |name: &str, term: Term| QueryOptions {
        bindings: vec![(name.to_owned(), term)],
        ..QueryOptions::default()
    };
    let whole = bound("t", Term::Triple(Box::new(triple)));
    for query in ["SELECT ?r { ?r <e:reifies> ?t }", "SELECT ?r { ?r <e:reifies> ?u FILTER(?u = ?t) }"] {
        assert_eq!(rows(&f.engine, query, &whole).unwrap(), ["r1"], "{query}");
    }
    let part = "SELECT ?r { ?r <e:reifies> <<( ?s <e:p> <e:b> )>> }";
    assert_eq!(rows(&f.engine, part, &bound("s", Term::Iri("e:a".into()))).unwrap(), ["r1"]);
    let literal = Term::Literal {
        lexical: "a".into(),
        lang: None,
        direction: None,
        datatype: "http://www.w3.org/2001/XMLSchema#string".into(),
    };
    assert!(rows(&f.engine, part, &bound("s", literal)).unwrap().is_empty(), "a literal is no subject");
}

/// An expression is tried on a few rows while a query is planned, but not for as long as it takes:
/// here a second each.
#[test]
fn planning_does_little_of_an_expressions_work() {
    let backtracking = "ab".repeat(40);
    let data: String = (0..200).map(|i| format!("<e:s{i}> <e:p> \"{backtracking}d{i}\" .\n")).collect();
    let Fixture { engine, _dir } = open(&data);
    let growing = (0..6).fold("?o".to_owned(), |text, _| format!("REPLACE({text}, \"b\", \"abab\")"));
    for condition in ["REGEX(?o, \"([ab]+)+(c)\\\\2$\")", &format!("CONTAINS({growing}, \"c\")")] {
        let looked = looks::so_far();
        let plan = engine
            .explain(&format!("SELECT * {{ ?s <e:p> ?o FILTER({condition}) }}"), &QueryOptions::default());
        assert!(plan.is_ok());
        let looked = looks::so_far() - looked;
        assert!(looked < 100, "{condition}: planning looked {looked} times whether it may go on");
    }
}
