//! Rows that are equal in what is wanted are read and counted as one: counts of look-ups and of
//! rows scanned, not times; and weights agree with the rows they stand for.

use std::path::PathBuf;

use snowmelt_database::meters::Activity;
use snowmelt_database::{Account, OpenOptions};
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{QueryEngine, QueryOptions, UpdateOptions};

const THINGS: usize = 20_000;
const KINDS: usize = 10;
const TAGS: usize = 100;
/// of a thing: its kind, label, number and two tags
const QUADS: usize = 5 * THINGS;

/// Things of few kinds, each with a label, a number and two of the tags; some are liked.
fn data(graph: &str) -> String {
    let mut data = String::new();
    for i in 0..THINGS {
        data.push_str(&format!(
            "<e:x{i}> a <e:k{}> ; <e:label> \"thing {}\" ; <e:number> {} ; <e:tag> <e:t{}>, <e:t{}> . ",
            i % KINDS,
            i / 2,
            i % 1000,
            i % TAGS,
            (i + 1 + i / TAGS % 7) % TAGS,
        ));
    }
    for i in 0..200 {
        data.push_str(&format!("<e:x{}> <e:likes> <e:x{}> . ", i * 50, i));
    }
    if graph.is_empty() { data } else { format!("GRAPH <{graph}> {{ {data} }}") }
}

fn engine(graphs: &[&str]) -> (tempfile::TempDir, PathBuf, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = OpenOptions { memory_bytes: 64 << 20, direct: false, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&path, &[], &options).unwrap());
    for graph in graphs {
        let text = format!("INSERT DATA {{ {} }}", data(graph));
        engine.update(&text, &UpdateOptions::default()).unwrap();
    }
    (dir, path, engine)
}

/// Rows, with look-ups and rows scanned.
fn ask(engine: &QueryEngine, text: &str) -> (Vec<String>, usize, usize) {
    let account = Account::alone();
    let options = QueryOptions { account: Some(account.clone()), threads: 1, ..QueryOptions::default() };
    let mut rows = Vec::new();
    let found = engine.query(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    found.for_each(|row| rows.push(format!("{row:?}"))).unwrap_or_else(|error| panic!("{text}: {error}"));
    let Activity { rnd, seq, .. } = account.activity();
    (rows, rnd as usize, seq as usize)
}

/// The one value of an answer.
fn value(engine: &QueryEngine, text: &str) -> String {
    let (rows, ..) = ask(engine, text);
    assert_eq!(rows.len(), 1, "{text}: {rows:?}");
    rows[0].clone()
}

#[test]
fn aggregates_read_no_more_than_they_must() {
    let (_dir, _path, engine) = engine(&[""]);
    // text, rows, most look-ups, most rows scanned
    let cases = [
        ("all rows", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", 1, 20, 10),
        ("of a predicate", "SELECT (COUNT(?o) AS ?n) { ?s <e:tag> ?o }", 1, 20, 10),
        ("predicates", "SELECT DISTINCT ?p { ?s ?p ?o }", 5, 100, 10_000),
        ("by predicate", "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p", 5, 100, 10_000),
        ("by few objects", "SELECT ?k (COUNT(*) AS ?n) { ?s a ?k } GROUP BY ?k", KINDS, 100, 12_000),
        ("few objects", "SELECT DISTINCT ?k { ?s a ?k }", KINDS, 100, 12_000),
        ("subjects", "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o }", 1, 20, QUADS),
        ("objects", "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o }", 1, 20, QUADS / 2),
        (
            "pairs by a tag: degrees are summed, not multiplied out",
            "SELECT (COUNT(*) AS ?n) { ?a <e:tag> ?t . ?b <e:tag> ?t }",
            1,
            200,
            5 * THINGS,
        ),
        (
            "a few without something, of which there is much",
            "SELECT (COUNT(*) AS ?n) { ?a <e:likes> ?b MINUS { ?a <e:tag> <e:t0> } }",
            1,
            500,
            THINGS * 5 / 4,
        ),
        (
            "a few with something, of which there is much",
            "SELECT (COUNT(*) AS ?n) { ?a <e:likes> ?b FILTER EXISTS { ?b <e:label> ?l } }",
            1,
            700,
            2_000,
        ),
        (
            "an optional part that only multiplies",
            "SELECT (COUNT(*) AS ?n) { ?a <e:likes> ?b OPTIONAL { ?a <e:tag> ?t } }",
            1,
            700,
            THINGS * 5 / 4,
        ),
    ];
    for (name, text, count, most_rnd, most_seq) in cases {
        let (rows, rnd, seq) = ask(&engine, text);
        println!("{name}: {} rows, {rnd} look-ups, {seq} rows scanned", rows.len());
        assert_eq!(rows.len(), count, "{name}: {text}");
        let plan = || engine.analyze(text, &QueryOptions { threads: 1, ..QueryOptions::default() }).unwrap();
        assert!(rnd <= most_rnd && seq <= most_seq, "{name}: {rnd} look-ups, {seq} rows scanned\n{}", plan());
    }
}

/// A weight stands for as many rows as come one by one where each column is wanted.
#[test]
fn weights_are_the_number_of_rows() {
    let graphs: [&[&str]; 3] = [&[""], &["", "e:g1"], &["e:g1", "e:g2"]];
    for graphs in graphs {
        let (_dir, _path, engine) = engine(graphs);
        // a pattern, and what is grouped by and added up in it
        let patterns = [
            ("?s ?p ?o", "?p", "1"),
            ("?s a ?k . ?s <e:tag> ?t", "?k", "1"),
            ("?s <e:tag> ?t . ?s <e:number> ?n", "?t", "?n"),
            ("?a <e:likes> ?b . ?b <e:tag> ?t . ?c <e:tag> ?t", "?b", "1"),
            ("?a <e:likes> ?b OPTIONAL { ?b <e:tag> ?t }", "?b", "1"),
            ("{ ?s <e:tag> ?t } UNION { ?s <e:likes> ?t }", "?s", "1"),
            ("?s <e:number> ?n OPTIONAL { ?s <e:likes> ?b . ?b <e:tag> ?t }", "?n", "?n"),
            ("?s <e:tag> ?t MINUS { ?s a <e:k3> }", "?t", "1"),
            ("?s <e:tag> ?t FILTER NOT EXISTS { ?s <e:number> ?n FILTER(?n > 500) }", "?t", "1"),
            ("GRAPH ?g { ?s <e:tag> ?t }", "?t", "1"),
            ("GRAPH ?g { ?s ?p ?o }", "?g", "1"),
        ];
        for (pattern, by, term) in patterns {
            let folded = format!(
                "SELECT (SUM(?count) AS ?rows) (SUM(?x) AS ?sum) {{ SELECT {by} (COUNT(*) AS ?count) (SUM({term}) AS ?x) \
                 {{ {pattern} }} GROUP BY {by} }}"
            );
            // GROUP_CONCAT takes its rows one by one
            let apart = format!(
                "SELECT (SUM(?count) AS ?rows) (SUM(?x) AS ?sum) {{ SELECT {by} (COUNT(*) AS ?count) (SUM({term}) AS ?x) \
                 (GROUP_CONCAT(\"\") AS ?c) {{ {pattern} }} GROUP BY {by} }}"
            );
            assert_eq!(value(&engine, &folded), value(&engine, &apart), "{graphs:?}: {pattern}");
        }
    }
}

/// The same solutions whether copies are merged early or late.
#[test]
fn distinct_values_are_those_of_all_rows() {
    let graphs: [&[&str]; 3] = [&[""], &["", "e:g1"], &["e:g1", "e:g2"]];
    for graphs in graphs {
        let (_dir, _path, engine) = engine(graphs);
        let cases = [
            ("?s ?p ?o", "?s"),
            ("?s ?p ?o", "?p"),
            ("?s ?p ?o", "?o"),
            ("?s ?p ?o", "?s ?p"),
            ("?s ?p ?o", "?p ?o"),
            ("<e:x7> ?p ?o", "?p"),
            ("?s ?p <e:t7>", "?p"),
            ("?s <e:tag> ?t", "?t"),
            ("GRAPH ?g { ?s ?p ?o }", "?g"),
            ("GRAPH ?g { ?s ?p ?o }", "?g ?s"),
            ("GRAPH <e:g1> { ?s ?p ?o }", "?s"),
            ("?a <e:likes> ?b . ?b ?p ?o", "?p"),
        ];
        for (pattern, of) in cases {
            let folded = format!("SELECT (COUNT(*) AS ?n) {{ SELECT DISTINCT {of} {{ {pattern} }} }}");
            let apart = format!(
                "SELECT (COUNT(*) AS ?n) {{ SELECT {of} (GROUP_CONCAT(\"\") AS ?c) {{ {pattern} }} GROUP BY {of} }}"
            );
            assert_eq!(value(&engine, &folded), value(&engine, &apart), "{graphs:?}: {of} of {pattern}");
        }
    }
}

/// Calls that give another result each time are made for each solution.
#[test]
fn each_solution_has_its_own_random_value() {
    let (_dir, _path, engine) = engine(&[""]);
    let by_row = "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?u";
    let cases = [
        (format!("{by_row} {{ ?s a ?k BIND(UUID() AS ?u) }} }}"), THINGS),
        (format!("{by_row} {{ ?s a ?k BIND(BNODE() AS ?u) }} }}"), THINGS),
        (format!("{by_row} {{ {{ SELECT ?k {{ ?s a ?k }} }} BIND(STRUUID() AS ?u) }} }}"), THINGS),
        (format!("{by_row} {{ ?a <e:likes> ?b OPTIONAL {{ ?a <e:tag> ?t }} BIND(UUID() AS ?u) }} }}"), 400),
        (
            "SELECT (COUNT(DISTINCT ?u) AS ?n) { ?s a ?k BIND(CONCAT(STR(?k), STRUUID()) AS ?u) }".into(),
            THINGS,
        ),
        ("SELECT (COUNT(DISTINCT CONCAT(STR(?l), STRUUID())) AS ?n) { ?s <e:label> ?l }".into(), THINGS),
        (
            "SELECT (COUNT(*) AS ?n) { SELECT (COUNT(*) AS ?k) { ?s a ?o } GROUP BY (UUID() AS ?u) }".into(),
            THINGS,
        ),
    ];
    for (text, count) in cases {
        assert!(value(&engine, &text).contains(&format!("\"{count}\"")), "{text}: {}", value(&engine, &text));
    }
    // of 20,000 rows each is taken by a throw of its own: runs of equal ones would be far off
    for text in [
        "SELECT (COUNT(*) AS ?n) { ?s a ?k FILTER(RAND() < 0.5) }",
        "SELECT (SUM(IF(RAND() < 0.5, 1, 0)) AS ?n) { ?s a ?k }",
        "SELECT (COUNT(*) AS ?n) { ?s a ?k FILTER EXISTS { ?s <e:label> ?l FILTER(RAND() < 0.5) } }",
    ] {
        let found = value(&engine, text);
        let digits: String =
            found.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        let found: usize = digits.parse().unwrap();
        assert!(found.abs_diff(THINGS / 2) < THINGS / 20, "{text}: {found}");
    }
}

/// Rows of which nothing is put out come as one, however many batches they are read in: joined to
/// others, each batch of them would multiply these.
#[test]
fn rows_without_columns_come_as_one() {
    let (_dir, _path, engine) = engine(&[""]);
    // a graph beside the default one is a test of each row
    engine.update("INSERT DATA { GRAPH <e:g> { <e:a> <e:b> <e:c> } }", &UpdateOptions::default()).unwrap();
    for (text, of) in [
        (
            "SELECT ?s (COUNT(*) AS ?n) { ?s a <e:k1> . ?x <e:tag> ?y . ?z <e:label> ?l } GROUP BY ?s",
            "× rows",
        ),
        ("SELECT ?s (COUNT(DISTINCT ?o) AS ?n) { ?s <e:likes> ?o . ?x <e:tag> ?y } GROUP BY ?s", "once"),
    ] {
        let options = QueryOptions { threads: 1, ..QueryOptions::default() };
        let plan = engine.analyze(text, &options).unwrap();
        let scans: Vec<&str> =
            plan.lines().filter(|line| line.contains("scan") && line.contains(&format!("→ {of}"))).collect();
        assert!(!scans.is_empty(), "{plan}");
        assert!(scans.iter().all(|line| line.contains("| rows 1 ")), "{plan}");
    }
}

/// The best few rows are found among different ones, and come as often as they are there.
#[test]
fn the_best_rows_come_as_often_as_they_are_there() {
    let (_dir, _path, engine) = engine(&["", "e:g"]);
    for (tail, values) in [
        ("DESC(?n) LIMIT 30", vec![(999, 20), (998, 10)]),
        ("?n LIMIT 45", vec![(0, 20), (1, 20), (2, 5)]),
        ("DESC(?n) OFFSET 15 LIMIT 30", vec![(999, 5), (998, 20), (997, 5)]),
    ] {
        let text = format!("SELECT ?n {{ ?s <e:number> ?n }} ORDER BY {tail}");
        let (rows, rnd, seq) = ask(&engine, &text);
        let wanted: Vec<usize> = values.iter().flat_map(|(n, times)| vec![*n; *times]).collect();
        assert_eq!(rows.len(), wanted.len(), "{text}");
        let fits = rows.iter().zip(&wanted).all(|(row, n)| row.contains(&format!("\"{n}\"")));
        assert!(fits, "{text}: {rows:?}");
        println!("{text}: {rnd} look-ups, {seq} rows scanned");
        let plan = engine.explain(&text, &QueryOptions::default()).unwrap();
        assert!(plan.contains("repeat"), "{plan}");
    }
}

/// Two columns that must be equal are merged by the first of them.
#[test]
fn equal_columns_are_merged_by_the_subject() {
    let (_dir, _path, engine) = engine(&[""]);
    let update = "INSERT { ?s <e:copy> ?n } WHERE { ?s <e:number> ?n FILTER(?n < 700) }";
    engine.update(update, &UpdateOptions::default()).unwrap();
    let text = "SELECT (COUNT(*) AS ?n) { ?s <e:number> ?x ; <e:copy> ?x }";
    assert!(value(&engine, text).contains("\"14000\""));
    let (_, rnd, seq) = ask(&engine, text);
    assert!(rnd < 200 && seq < 3 * THINGS, "{rnd} look-ups, {seq} rows scanned");
}

/// Graphs of one triple may be found in several pieces.
#[test]
fn a_triple_of_several_graphs_is_found_once() {
    let (_dir, _, engine) = engine(&["e:g1", "e:g2"]);
    let pattern = "?a <e:likes> <e:x1> . ?a a ?k . ?s a ?k . ?s <e:number> ?n";
    let both = "FROM <e:g1> FROM <e:g2>";
    for batch_rows in [None, Some(1), Some(3), Some(1000)] {
        let options = QueryOptions { batch_rows, threads: 1, ..QueryOptions::default() };
        for what in ["(COUNT(*) AS ?x)", "(SUM(?n) AS ?x)", "?s ?k"] {
            let rows = |from: &str| {
                let mut rows = Vec::new();
                let text = format!("SELECT {what} {from} {{ {pattern} }}");
                let found = engine.query(&text, &options).unwrap();
                found.for_each(|row| rows.push(format!("{row:?}"))).unwrap();
                rows.sort();
                rows
            };
            assert!(rows(both) == rows("FROM <e:g1>"), "{what} with {batch_rows:?}");
        }
    }
}

#[test]
fn a_product_of_which_few_rows_are_wanted_is_not_made() {
    let (_dir, _, engine) = engine(&[""]);
    let pattern = "?s a ?k . ?s2 ?p2 ?o2 . ?s3 ?p3 ?o3 . ?s4 <e:number> ?n";
    for (text, rows) in [
        (format!("SELECT * {{ {pattern} }} LIMIT 3"), 3),
        (format!("SELECT ?s ?o2 {{ {pattern} }} OFFSET 7 LIMIT 5"), 5),
        (format!("SELECT ?s {{ {{ SELECT ?s ?s2 {{ {pattern} }} LIMIT 4 }} ?s <e:number> ?x }}"), 4),
    ] {
        let (found, _, scanned) = ask(&engine, &text);
        assert_eq!(found.len(), rows, "{text}");
        assert!(scanned < QUADS / 4, "{text}: {scanned} rows");
    }
    let account = Account::alone();
    let options = QueryOptions { account: Some(account.clone()), threads: 1, ..QueryOptions::default() };
    for (pattern, holds) in
        [(pattern, true), ("?s a ?k . ?s2 ?p2 ?o2 . ?s3 <e:likes> ?o3 . ?s4 <e:number> \"no\"", false)]
    {
        let text = format!("ASK {{ {pattern} }}");
        let mut found = engine.query(&text, &options).unwrap();
        assert_eq!(found.answer().unwrap(), holds, "{text}");
    }
    assert!(account.activity().seq < QUADS as u64 / 4, "{:?}", account.activity());
}
