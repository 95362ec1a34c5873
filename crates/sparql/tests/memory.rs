//! Queries that would hold more than there is: each class ends within the budget, with its
//! answer or with an error that names a limit, and gives back what it took; alone and many at
//! once.
//!
//! The memory that the process really holds is measured from outside, by `tests/memory.rs` of
//! the workspace.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_graph::{GraphDatabase, MOST_TRIPLE_LEVELS};
use snowmelt_sparql::{QueryEngine, QueryError, QueryOptions, ResultFormat, UpdateOptions};

const MEMORY: u64 = 64 << 20;

struct Fixture {
    engine: QueryEngine,
    _dir: tempfile::TempDir,
}

/// Things with one of seven values, a label, and edges among the first of them.
fn fixture(things: usize) -> Fixture {
    let mut text = String::new();
    for i in 0..things {
        text.push_str(&format!("<e:s{i}> <e:v> \"{}\" .\n", i % 7));
        text.push_str(&format!(
            "<e:s{i}> <e:l> \"a label that is rather long, of thing number {i}, and no other\" .\n"
        ));
        if i < 2000 {
            text.push_str(&format!(
                "<e:s{i}> <e:n> <e:s{}> .\n<e:s{i}> <e:n> <e:s{}> .\n",
                (i * 7 + 1) % 2000,
                (i * 13 + 5) % 2000
            ));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = OpenOptions { memory_bytes: MEMORY, direct: false, ..OpenOptions::default() };
    let options = LoadOptions { store: store.clone(), threads: 1, ..LoadOptions::default() };
    let source =
        Source::Reader { name: "test".into(), read: Box::new(std::io::Cursor::new(text.into_bytes())) };
    load(&path, vec![source], &options, &(), &AtomicBool::new(false)).unwrap();
    Fixture { engine: QueryEngine::new(GraphDatabase::open(&path, &store).unwrap()), _dir: dir }
}

/// All that is written is counted.
struct Counted(u64);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn doubling(function: &str) -> String {
    let steps: String = (0..40)
        .map(|i| format!("BIND({} AS ?y{})", function.replace('@', &format!("?y{i}")), i + 1))
        .collect::<Vec<_>>()
        .join(" ");
    format!("SELECT (STRLEN(?y40) AS ?n) {{ BIND(\"aaaaaaaaaaaaaaaa\" AS ?y0) {steps} }}")
}

fn hostile() -> Vec<(&'static str, String)> {
    let text = |name, text: &str| (name, text.to_owned());
    vec![
        text("m:n join", "SELECT * { ?a <e:v> ?x . ?c <e:v> ?x }"),
        text("m:n join, grouped", "SELECT ?x (COUNT(*) AS ?n) { ?a <e:v> ?x . ?c <e:v> ?x } GROUP BY ?x"),
        text("m:n join, sorted", "SELECT * { ?a <e:v> ?x . ?c <e:v> ?x } ORDER BY ?c"),
        text("m:n join, distinct", "SELECT DISTINCT ?a ?c { ?a <e:v> ?x . ?c <e:v> ?x }"),
        text(
            "optional product",
            "SELECT * { ?a <e:v> ?x OPTIONAL { ?b <e:v> ?y OPTIONAL { ?c <e:v> ?z } } }",
        ),
        text("optional product, counted", "SELECT (COUNT(*) AS ?n) { ?a <e:v> ?x OPTIONAL { ?b <e:v> ?y } }"),
        text("union product", "SELECT * { { ?a <e:v> ?x } { { ?b <e:v> ?y } UNION { ?b <e:l> ?y } } }"),
        text(
            "exists",
            "SELECT * { ?a <e:v> ?x FILTER NOT EXISTS { ?b <e:v> ?x . ?c <e:v> ?x FILTER(?b != ?c && STRLEN(STR(?a)) < 2) } }",
        ),
        text(
            "groups without pairs",
            "SELECT ?a (COUNT(*) AS ?n) { ?a <e:v> ?x . ?s <e:l> ?l FILTER NOT EXISTS { ?a <e:n> ?s } } GROUP BY ?a",
        ),
        text("group_concat", "SELECT (STRLEN(GROUP_CONCAT(?l)) AS ?n) { ?s <e:l> ?l . ?t <e:v> '1' }"),
        text(
            "group_concat, grouped",
            "SELECT ?v (STRLEN(GROUP_CONCAT(?l)) AS ?n) { ?s <e:v> ?v . ?t <e:l> ?l } GROUP BY ?v",
        ),
        text(
            "computed terms",
            "SELECT (COUNT(DISTINCT ?y) AS ?n) { ?s <e:l> ?l . ?t <e:v> ?v BIND(CONCAT(?l, STR(?t)) AS ?y) }",
        ),
        text("construct", "CONSTRUCT { ?a <e:q> ?c } { ?a <e:v> ?x . ?c <e:v> ?x }"),
        text(
            "construct of blank nodes",
            "CONSTRUCT { _:a <e:q> [ <e:r> ?c ] } { ?a <e:v> ?x . ?c <e:v> ?x }",
        ),
        text("describe", "DESCRIBE ?a ?b { ?a <e:l> ?x . ?b <e:n> ?c }"),
        text("closure", "SELECT * { ?a <e:n>* ?b }"),
        text("closure, sorted", "SELECT * { ?a <e:n>+ ?b } ORDER BY ?b ?a"),
        text("closure of closures", "SELECT (COUNT(*) AS ?n) { ?a (<e:n>+|^<e:n>)+ ?b }"),
        text("negated paths", "SELECT (COUNT(*) AS ?n) { ?a (!<e:n>|^!<e:n>)* ?b }"),
        text("sorted labels", "SELECT * { ?s <e:l> ?l . ?s <e:v> ?v } ORDER BY DESC(?l)"),
        text("large top", "SELECT * { ?a <e:v> ?x . ?c <e:v> ?x } ORDER BY ?c LIMIT 5000000"),
        ("concat doubling", doubling("CONCAT(@, @)")),
        ("replace doubling", doubling("REPLACE(@, \"a\", \"aa\")")),
        ("replace by groups", doubling("REPLACE(@, \"(a+)\", \"$1$1\")")),
        ("encode doubling", doubling("ENCODE_FOR_URI(CONCAT(@, \"%\"))")),
        ("strdt doubling", doubling("STR(STRDT(CONCAT(@, @), <e:type>))")),
    ]
}

/// Whether an error is one that a limit gave.
fn names_a_limit(error: &QueryError) -> bool {
    matches!(
        error,
        QueryError::Memory { .. }
            | QueryError::TermTooLong { .. }
            | QueryError::Timeout(_)
            | QueryError::Search { .. }
            | QueryError::Busy { .. }
    )
}

fn run(engine: &QueryEngine, text: &str, timeout: Duration) -> Result<u64, QueryError> {
    run_counted(engine, text, timeout).0
}

/// The output of a query, and the most bytes it held.
fn run_counted(engine: &QueryEngine, text: &str, timeout: Duration) -> (Result<u64, QueryError>, usize) {
    let options = QueryOptions { timeout: Some(timeout), ..QueryOptions::default() };
    let format = if text.starts_with("SELECT") { ResultFormat::Tsv } else { ResultFormat::NTriples };
    let mut out = Counted(0);
    let result = match engine.query(text, &options) {
        Ok(result) => result,
        Err(error) => return (Err(error), 0),
    };
    let memory = result.memory();
    let written = result.write(format, &mut out);
    (written.map(|_| out.0), memory.most_bytes())
}

/// Ranks of texts stay once they are learned.
fn is_given_back(used: u64, before: u64) -> bool {
    (before..=before + MEMORY / 32).contains(&used)
}

#[test]
fn each_class_stays_within_the_budget() {
    let fixture = fixture(4000);
    let budget = fixture.engine.graph().database().memory().clone();
    let pool = budget.used();
    for (name, text) in hostile() {
        let (done, most) = run_counted(&fixture.engine, &text, Duration::from_secs(2));
        println!("{name}: {most} bytes, {:?}", done.as_ref().map_err(ToString::to_string));
        assert!(done.as_ref().map_or_else(names_a_limit, |_| true), "{name}: {done:?}");
        assert!(is_given_back(budget.used(), pool), "{name}: it gives back what it took");
        // what none of these can do without; below that a class would not be one of memory
        assert!(most >= 64 << 10, "{name}: {most} bytes were charged");
    }
    assert!(budget.peak() <= MEMORY);
}

#[test]
fn many_at_once_stay_within_the_budget() {
    let fixture = fixture(4000);
    let budget = fixture.engine.graph().database().memory().clone();
    let pool = budget.used();
    let texts = hostile();
    std::thread::scope(|scope| {
        for i in 0..64 {
            let (name, text) = &texts[i % texts.len()];
            let engine = &fixture.engine;
            scope.spawn(move || {
                let done = run(engine, text, Duration::from_secs(3));
                assert!(done.as_ref().map_or_else(names_a_limit, |_| true), "{name}: {done:?}");
            });
        }
    });
    assert!(budget.peak() <= MEMORY);
    assert!(is_given_back(budget.used(), pool));
    assert!(run(&fixture.engine, "SELECT * { <e:s1> <e:l> ?l }", Duration::from_secs(60)).is_ok());
}

#[test]
fn sorts_at_once_spill_and_give_all_rows() {
    let fixture = fixture(20_000);
    let text = "SELECT ?s ?l { ?s <e:l> ?l . ?s <e:v> ?v } ORDER BY DESC(?l)";
    let alone = run(&fixture.engine, text, Duration::from_secs(600)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(run(&fixture.engine, text, Duration::from_secs(600)).unwrap(), alone));
        }
    });
    let store = fixture.engine.graph().database().store();
    assert!(store.memory().peak() <= MEMORY);
}

#[test]
fn a_limit_stops_everything_beneath_it() {
    let fixture = fixture(20_000);
    let seq = |text: &str| {
        let mut result = fixture.engine.query(text, &QueryOptions::default()).unwrap();
        let mut rows = 0;
        while let Some(batch) = result.next_batch().unwrap() {
            rows += batch.rows;
        }
        (rows, result.activity().seq)
    };
    // 57 million pairs, of which ten are wanted
    let (rows, read) = seq("SELECT * { ?a <e:v> ?x . ?c <e:v> ?x } LIMIT 10");
    assert!(rows == 10 && read < 1_000_000, "{read} rows of the indexes");
    let (rows, read) = seq("ASK { ?a <e:v> ?x . ?c <e:v> ?x . ?d <e:v> ?x }");
    assert!(rows == 1 && read < 1_000_000, "{read} rows of the indexes");
    let (rows, read) =
        seq("SELECT * { ?a <e:v> ?x OPTIONAL { ?b <e:v> ?y OPTIONAL { ?c <e:v> ?z } } } LIMIT 10");
    assert!(rows == 10 && read < 1_000_000, "{read} rows of the indexes");
    // four million pairs
    let (rows, read) = seq("SELECT * { ?a <e:n>+ ?b } LIMIT 10");
    assert!(rows == 10 && read < 100_000, "{read} rows of the indexes");
    for (kind, expected) in [("FILTER EXISTS", 20_000), ("FILTER NOT EXISTS", 0)] {
        let (rows, read) =
            seq(&format!("SELECT * {{ ?a <e:v> ?x {kind} {{ ?b <e:v> ?y . ?c <e:v> ?z . ?d <e:l> ?w }} }}"));
        assert!(rows == expected && read < 1_000_000, "{rows} rows, {read} of the indexes");
    }
}

/// Names of graphs are looked for by name, lists are looked up, and the greatest value is found
/// without all pairs being read from the indexes.
#[test]
fn graphs_lists_and_the_greatest_value_cost_what_they_have() {
    let mut text = String::new();
    for i in 0..2000 {
        text.push_str(&format!("<e:s{i}> <e:k> \"{i}\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n"));
        for j in 0..5 {
            text.push_str(&format!("<e:s{i}> <e:p{j}> <e:s{}> <e:g{i}> .\n", i % 40));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = OpenOptions { memory_bytes: MEMORY, direct: false, ..OpenOptions::default() };
    let format = Some(snowmelt_graph::load::format_named("nq").unwrap());
    let options = LoadOptions { store: store.clone(), format, threads: 1, ..LoadOptions::default() };
    let read = Box::new(std::io::Cursor::new(text.into_bytes()));
    load(&path, vec![Source::Reader { name: "test".into(), read }], &options, &(), &AtomicBool::new(false))
        .unwrap();
    let engine = QueryEngine::new(GraphDatabase::open(&path, &store).unwrap());
    let list: Vec<String> = (0..39).map(|i| format!("<e:s{i}>")).collect();
    for (query, expected) in [
        ("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }".to_owned(), 2000),
        (format!("SELECT * {{ GRAPH ?g {{ ?s ?p ?o FILTER(?o IN ({})) }} }}", list.join(", ")), 9750),
        ("SELECT ?a { ?a <e:k> ?v FILTER NOT EXISTS { ?b <e:k> ?w FILTER(?w > ?v) } }".to_owned(), 1),
    ] {
        let mut result = engine.query(&query, &QueryOptions::default()).unwrap();
        let mut rows = 0;
        while let Some(batch) = result.next_batch().unwrap() {
            rows += batch.rows;
        }
        let read = result.activity().seq;
        assert!(rows == expected && read < 400_000, "{rows} rows, {read} of the indexes: {query}");
    }
}

/// 16 million rows with 7 keys, some of them unbound: they have no place in files.
#[test]
fn where_only_existence_counts_keys_are_kept() {
    let fixture = fixture(2000);
    let many = "?c <e:n> ?d . ?e <e:n> ?f OPTIONAL { ?c <e:v> ?x FILTER(?x != \"3\") }";
    let rows = |text: String| {
        let mut result = fixture.engine.query(&text, &QueryOptions::default()).unwrap();
        let mut rows = 0;
        while let Some(batch) = result.next_batch().unwrap() {
            rows += batch.rows;
        }
        rows
    };
    assert_eq!(rows(format!("SELECT * {{ ?a <e:v> ?x MINUS {{ SELECT ?x {{ {many} }} }} }}")), 286);
    assert_eq!(rows(format!("SELECT * {{ ?a <e:v> ?x FILTER EXISTS {{ SELECT ?x {{ {many} }} }} }}")), 2000);
}

#[test]
fn an_update_that_holds_its_quads_is_within_the_budget() {
    let fixture = fixture(4000);
    let text = "DELETE { ?a <e:gone> ?c } INSERT { ?a <e:q> ?c } WHERE { ?a <e:v> ?x . ?c <e:v> ?x }";
    let options = UpdateOptions { timeout: Some(Duration::from_secs(600)), ..UpdateOptions::default() };
    let done = fixture.engine.update(text, &options);
    assert!(matches!(&done, Err(QueryError::Memory { .. } | QueryError::Store(_))), "{:?}", done.map(|_| ()));
    assert!(fixture.engine.graph().database().memory().peak() <= MEMORY);
}

/// Inserts a triple term of the most levels, whose predicates are all this long.
fn insert_deep(engine: &QueryEngine, predicate_bytes: usize) {
    let predicate = "p".repeat(predicate_bytes);
    let update = |text: &str| engine.update(text, &UpdateOptions::default()).unwrap();
    update(&format!("INSERT DATA {{ <e:deep> <e:is> <<( <e:s> <e:{predicate}> 1 )>> }}"));
    for _ in 1..MOST_TRIPLE_LEVELS {
        update(
            "DELETE { <e:deep> <e:is> ?t } INSERT { <e:deep> <e:is> <<( <e:s> ?p ?t )>> }
             WHERE { <e:deep> <e:is> ?t BIND(PREDICATE(?t) AS ?p) }",
        );
    }
}

/// Triple terms of a batch are read within the query's memory: one that is too long is an error
/// before it is made, and of many some are read at a time.
#[test]
fn triple_terms_are_within_the_memory_of_a_query() {
    let fixture = fixture(10);
    insert_deep(&fixture.engine, 100_000);
    let text = "x".repeat(8000);
    let many: String =
        (0..2000).map(|n| format!("<e:m> <e:many> <<( <e:s> <e:p> \"{n}{text}\" )>> . ")).collect();
    fixture.engine.update(&format!("INSERT DATA {{ {many} }}"), &UpdateOptions::default()).unwrap();
    let run = |text: &str, memory: usize| {
        let options = QueryOptions { memory: Some(memory), ..QueryOptions::default() };
        let mut done = Ok(0);
        let held = allocation_counter::measure(|| {
            let mut out = Counted(0);
            let result = fixture.engine.query(text, &options);
            done = result.and_then(|result| result.write(ResultFormat::Tsv, &mut out)).map(|_| out.0);
        });
        (done, held.bytes_max)
    };
    let deep = "SELECT ?t { <e:deep> <e:is> ?t }";
    assert!(run(deep, 32 << 20).0.unwrap() > 6_400_000);
    let (refused, held) = run(deep, 4 << 20);
    let refused = refused.unwrap_err();
    assert!(matches!(refused, QueryError::Memory { .. }), "{refused}");
    assert!(held < 5 << 20, "{held} bytes were held when it was refused");
    let (written, held) = run("SELECT ?t { <e:m> <e:many> ?t }", 4 << 20);
    assert!(written.unwrap() > 16_000_000);
    assert!(held < 8 << 20, "{held} bytes were held of 16 MB");
}

/// Terms for which there is no memory are not answered as unbound, and no update goes by them.
#[test]
fn values_beyond_the_memory_of_a_query_are_an_error() {
    let fixture = fixture(10);
    let mut refused = 0;
    for many in (500..5000).step_by(250) {
        let values: String = (0..many).map(|i| format!("<e:a-term-that-is-not-stored-{i}> ")).collect();
        let select = format!("SELECT ?x {{ VALUES ?x {{ {values} }} }} OFFSET {}", many - 100);
        let options = QueryOptions { memory: Some(256 << 10), ..QueryOptions::default() };
        let mut unbound = 0;
        let answered = fixture
            .engine
            .query(&select, &options)
            .and_then(|result| result.for_each(|row| unbound += u64::from(row[0].is_none())));
        assert!(answered.is_err() || unbound == 0, "{unbound} of {many} are unbound");
        refused += u64::from(answered.is_err_and(|error| names_a_limit(&error)));
        let insert = format!("INSERT {{ ?x <e:q> {many} }} WHERE {{ {{ {select} }} }}");
        let options = UpdateOptions { memory: Some(256 << 10), ..UpdateOptions::default() };
        let inserted = fixture.engine.update(&insert, &options).map(|updated| updated.changed.inserted);
        assert!(
            inserted.as_ref().is_ok_and(|inserted| *inserted == 100) || inserted.is_err(),
            "{inserted:?}"
        );
    }
    assert!(refused > 0, "some are too many");
}

/// Not a measurement: a query that does not look at its limits for a second fails this,
/// whatever the machine does.
#[test]
fn cancelling_is_noticed_inside_every_operator() {
    let fixture = fixture(20_000);
    for (name, text) in hostile() {
        let begun = Instant::now();
        let timeout = Duration::from_millis(100);
        let done = run(&fixture.engine, &text, timeout);
        let took = begun.elapsed();
        println!("{name}: {took:?}");
        assert!(
            took < timeout + Duration::from_secs(5),
            "{name} took {took:?}: {:?}",
            done.map_err(|e| e.to_string())
        );
    }
}

/// Everything reaches everything of its colour in one step: 20,000 × 2,857 pairs, of which
/// 2,857 from one node fit.
#[test]
fn a_sequence_in_a_closure_is_within_the_budget() {
    let fixture = fixture(20_000);
    let rows = |text: &str| run(&fixture.engine, text, Duration::from_secs(60));
    let count = |text: &str| {
        let mut result = fixture.engine.query(text, &QueryOptions::default())?;
        let mut rows = 0;
        while let Some(batch) = result.next_batch()? {
            rows += batch.rows;
        }
        Ok::<_, QueryError>(rows)
    };
    assert_eq!(count("SELECT ?b { <e:s1> (<e:v>/^<e:v>)+ ?b }").unwrap(), 2857);
    let all = rows("SELECT (COUNT(*) AS ?n) { ?a (<e:v>/^<e:v>)+ ?b }");
    assert!(all.as_ref().map_or_else(names_a_limit, |_| true), "{all:?}");
    assert!(fixture.engine.graph().database().memory().peak() <= MEMORY);
}
