//! Property paths do the work that their answer needs: counts of look-ups and of rows scanned, not
//! times; and with little memory they give the answer or an error.

use std::collections::BTreeSet;
use std::path::PathBuf;

use snowmelt_database::meters::Activity;
use snowmelt_database::{Account, OpenOptions};
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{QueryEngine, QueryError, QueryOptions, UpdateOptions};

const CHAIN: usize = 2000;
const TREE: usize = 1 << 12;
const CLASSES: usize = 200;

/// A chain, a tree whose nodes know their parents, a ring, a few classes among many things of them,
/// and much that has nothing to do with it.
fn engine() -> (tempfile::TempDir, PathBuf, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = OpenOptions { memory_bytes: 64 << 20, direct: false, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&path, &[], &options).unwrap());
    let mut data = String::new();
    for i in 0..CHAIN {
        data.push_str(&format!("<e:c{i}> <e:next> <e:c{}> . ", i + 1));
    }
    for i in 2..TREE {
        data.push_str(&format!("<e:t{i}> <e:parent> <e:t{}> . ", i / 2));
    }
    for i in 0..300 {
        data.push_str(&format!("<e:r{i}> <e:ring> <e:r{}> . ", (i + 1) % 300));
    }
    for i in 1..CLASSES {
        data.push_str(&format!("<e:k{i}> <e:sub> <e:k{}> . ", i / 3));
    }
    for i in 0..20_000 {
        data.push_str(&format!("<e:x{i}> <e:of> <e:k{}> ; <e:label> \"thing {i}\" . ", i % CLASSES));
    }
    engine.update(&format!("INSERT DATA {{ {data} }}"), &UpdateOptions::default()).unwrap();
    (dir, path, engine)
}

/// Rows, with look-ups and rows scanned.
fn ask(
    engine: &QueryEngine,
    text: &str,
    memory: Option<usize>,
) -> Result<(Vec<String>, u64, u64), QueryError> {
    let account = Account::alone();
    let options =
        QueryOptions { account: Some(account.clone()), threads: 1, memory, ..QueryOptions::default() };
    let mut rows = Vec::new();
    engine.query(text, &options)?.for_each(|row| rows.push(format!("{row:?}")))?;
    let Activity { rnd, seq, .. } = account.activity();
    Ok((rows, rnd, seq))
}

#[test]
fn paths_do_no_more_than_they_must() {
    let (_dir, _path, engine) = engine();
    // text, rows, most look-ups, most rows scanned
    let cases = [
        ("a LIMIT stops a closure", "SELECT * { ?a <e:next>+ ?b } LIMIT 10", 10, 200, 3 * CHAIN),
        ("so does ASK", "SELECT * { <e:c0> <e:next>* ?b } LIMIT 3", 3, 40, 100),
        (
            "a node and its ancestor meet, though the ancestor has many others below it",
            "SELECT * { <e:t4095> <e:parent>+ <e:t1> }",
            1,
            200,
            200,
        ),
        ("from the end that is bound", "SELECT * { <e:t4095> <e:parent>+ ?a }", 11, 60, 100),
        ("backwards", "SELECT * { ?d <e:parent>+ <e:t1024> }", 2, 40, 100),
        (
            "a common ancestor",
            "SELECT * { <e:t4095> <e:parent>* ?a . <e:t4094> <e:parent>* ?a }",
            11,
            400,
            400,
        ),
        ("pairs start where edges do", "SELECT * { ?a <e:sub>+ ?b }", 879, 5000, 3000),
        ("what a join binds, once", "SELECT * { ?x <e:of> <e:k199> . <e:k199> <e:sub>* ?k }", 600, 400, 400),
        ("there and back", "SELECT * { <e:r0> <e:ring>+ <e:r0> }", 1, 1300, 400),
    ];
    for (name, text, count, most_rnd, most_seq) in cases {
        let (rows, rnd, seq) = ask(&engine, text, None).unwrap();
        println!("{name}: {} rows, {rnd} look-ups, {seq} rows scanned", rows.len());
        assert_eq!(rows.len(), count, "{name}: {text}");
        assert!(rnd <= most_rnd && seq as usize <= most_seq, "{name}: {rnd} look-ups, {seq} rows scanned");
    }
}

/// A closure that lacks memory is begun anew with fewer nodes: no pair is lost or told twice.
#[test]
fn a_closure_with_little_memory_gives_each_pair_once() {
    let (_dir, _path, engine) = engine();
    let text = "SELECT ?a ?b { ?a <e:ring>+ ?b }";
    let mut answered = 0;
    for kib in [64, 128, 256, 400, 512, 700, 1024, 1500, 2048, 4096, 16_384] {
        match ask(&engine, text, Some(kib << 10)) {
            Ok((rows, ..)) => {
                assert_eq!(rows.len(), 300 * 300, "with {kib} KiB");
                assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 300 * 300, "with {kib} KiB");
                answered += 1;
            }
            Err(error) => assert!(matches!(error, QueryError::Memory { .. }), "with {kib} KiB: {error}"),
        }
    }
    assert!(answered > 4, "{answered} of 11 budgets suffice");
}
