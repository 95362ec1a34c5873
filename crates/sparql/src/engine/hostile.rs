//! Texts made to exhaust the stack: each is answered, refused by the parser, or refused by a
//! limit that has a name.
//!
//! All run on a thread with 2 MiB of stack, as test threads and those of the server's pool
//! have. Those that are answered run a second time with a quarter of the stack that
//! [`crate::bounds::text_limits`] reckons with: its figures hold a fourfold reserve in this
//! build.

use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;

use super::{QueryEngine, QueryOptions};
use crate::bounds::text_limits::BASE_BYTES;
use crate::{QueryError, UpdateOptions};
use snowmelt_query::scarcity;

/// How a text ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Rows(usize),
    /// an update that is carried out
    Done,
    Limit(&'static str),
    /// refused by the parser
    NoQuery,
    /// an endpoint that may not be asked
    NotAsked,
    /// triple terms of too many levels
    NotThere,
    /// refused before it is parsed, because its trees would be too large
    TooLarge,
}

use End::{Done, Limit, NoQuery, NotAsked, NotThere, Rows, TooLarge};

const DEPTH: End = Limit("query_depth");
const CHAIN: End = Limit("query_chain");
const BRANCHES: End = Limit("query_branches");

const DATA: &str = "INSERT DATA { <e:z> <e:p> <e:z> . GRAPH <e:g> { <e:z> <e:p> <e:z> } }";

fn engine() -> (tempfile::TempDir, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    // Limits on texts are asked for, and not memory.
    let options = OpenOptions { memory_bytes: 4 << 30, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
    engine.update(DATA, &UpdateOptions::default()).unwrap();
    (dir, engine)
}

fn ended(result: Result<End, QueryError>) -> End {
    match result {
        Ok(end) => end,
        Err(QueryError::TooLarge { limit, .. }) => Limit(limit),
        Err(QueryError::Parse { .. } | QueryError::WrongLanguage { .. }) => NoQuery,
        Err(QueryError::Service { .. }) => NotAsked,
        Err(QueryError::Unsupported { .. }) => NotThere,
        Err(QueryError::TextMemory { .. }) => TooLarge,
        Err(other) => panic!("{other}"),
    }
}

fn query(engine: &QueryEngine, text: &str) -> End {
    let run = || {
        let options = QueryOptions::default();
        engine.explain(text, &options)?;
        let mut result = engine.query(text, &options)?;
        let mut rows = 0;
        while let Some(batch) = result.next_batch()? {
            rows += batch.rows;
        }
        Ok(Rows(rows))
    };
    ended(run())
}

fn update(engine: &QueryEngine, text: &str) -> End {
    ended(engine.update(text, &UpdateOptions::default()).map(|_| Done))
}

type Case = (&'static str, String, End);

/// Runs the cases on a thread with a small stack, the answered ones also with little of what
/// they ask for.
#[track_caller]
fn check(run: fn(&QueryEngine, &str) -> End, cases: Vec<Case>) {
    let small = std::thread::Builder::new().stack_size(2 << 20);
    let body = move || {
        let (_dir, engine) = engine();
        for (name, text, end) in &cases {
            // an overflow ends the process: the last line names the text
            println!("{name}: {} bytes", text.len());
            let found = run(&engine, text);
            let is_too_large = found == TooLarge && matches!(end, Limit(_));
            assert!(found == *end || is_too_large, "{name}: {found:?}, and not {end:?}");
        }
        drop(engine);
        scarcity::set(
            std::env::var("SNOWMELT_SCARCITY").ok().and_then(|n| n.parse().ok()).unwrap_or(4),
            BASE_BYTES,
        );
        let (_dir, engine) = self::engine();
        for (name, text, _) in cases.iter().filter(|c| matches!(c.2, Rows(_) | Done | NoQuery)) {
            println!("{name}: {} bytes, with a quarter of the stack", text.len());
            run(&engine, text);
        }
    };
    if let Err(panic) = small.spawn(body).unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

/// `open` n times, the middle, `close` n times.
fn nested(n: usize, open: &str, middle: &str, close: &str) -> String {
    [&open.repeat(n), middle, &close.repeat(n)].concat()
}

/// The part n times, with a separator.
fn row(n: usize, part: &str, separator: &str) -> String {
    vec![part; n].join(separator)
}

/// The texts of `part` for 0, 1, ... n - 1.
fn each(n: usize, part: impl Fn(usize) -> String) -> String {
    (0..n).map(part).collect()
}

fn select(expression: &str) -> String {
    format!("SELECT ({expression} AS ?x) {{}}")
}

fn filter(expression: &str) -> String {
    format!("SELECT * {{ <e:z> <e:p> ?o FILTER({expression}) }}")
}

#[test]
fn expressions_within_each_other() {
    let parentheses = |n| select(&nested(n, "(", "1", ")"));
    let calls = |n| select(&nested(n, "STR(", "1", ")"));
    let ifs = |n| select(&nested(n, "IF(true, ", "1", ", 2)"));
    let lists = |n| select(&nested(n, "(1 IN (", "1", "))"));
    let sums = |n| select(&nested(n, "(1 + ", "1", ")"));
    let nots = |n| filter(&format!("{} ?o = 1", "!".repeat(n)));
    let casts = |n| select(&nested(n, "<http://www.w3.org/2001/XMLSchema#string>(", "1", ")"));
    check(
        query,
        vec![
            ("198 parentheses", parentheses(198), Rows(1)),
            ("900 parentheses", parentheses(900), DEPTH),
            ("100,000 parentheses", parentheses(100_000), DEPTH),
            ("100,000 open ones", "SELECT ".to_owned() + &"(".repeat(100_000), DEPTH),
            ("150 open ones", "SELECT ".to_owned() + &"(".repeat(150), NoQuery),
            (
                "parentheses behind a comparison",
                select(&format!("1 < {} > 2", nested(900, "(", "1", ")"))),
                DEPTH,
            ),
            ("198 calls", calls(198), Rows(1)),
            ("100,000 calls", calls(100_000), DEPTH),
            ("190 IF", ifs(190), Rows(1)),
            ("5,000 IF", ifs(5000), DEPTH),
            ("98 IN", lists(98), Rows(1)),
            ("5,000 IN", lists(5000), DEPTH),
            ("198 sums within each other", sums(198), Rows(1)),
            ("5,000 sums within each other", sums(5000), DEPTH),
            ("100 NOT", nots(100), Rows(0)),
            ("10,000 NOT", nots(10_000), DEPTH),
            ("198 casts", casts(198), Rows(1)),
        ],
    );
}

/// A parser that tries some constructs twice reads them 2ⁿ times within each other.
#[test]
fn expressions_that_begin_alike() {
    let nots = |n| filter(&nested(n, "!(", "?o = 1", ")"));
    let substrings = |n| select(&nested(n, "SUBSTR(", "'a'", ", 1)"));
    let replaces = |n| select(&nested(n, "REPLACE(", "'a'", ", 'a', 'b')"));
    let regexes = |n| select(&nested(n, "REGEX(STR(", "'a'", "), 'a')"));
    let concatenations = |n| select(&nested(n, "GROUP_CONCAT(DISTINCT ", "'a'", ")"));
    let exists = |n| format!("ASK {{ {} }}", nested(n, "FILTER(!EXISTS { ", "", " })"));
    check(
        query,
        vec![
            ("13 NOT of parentheses", nots(13), Rows(1)),
            ("60 NOT of parentheses", nots(60), Rows(0)),
            ("12 SUBSTR", substrings(12), Rows(1)),
            ("60 SUBSTR", substrings(60), Rows(1)),
            ("60 REPLACE", replaces(60), Rows(1)),
            ("60 REGEX", regexes(60), Rows(1)),
            ("60 GROUP_CONCAT", concatenations(60), NoQuery),
            ("60 NOT EXISTS", exists(60), Rows(1)),
        ],
    );
}

#[test]
fn expressions_in_a_row() {
    let sum = |n| select(&row(n, "1", " + "));
    let product = |n| select(&row(n, "1", " * "));
    let any = |n| filter(&row(n, "?o = 1", " || ")).replace("= 1)", "= <e:z>)");
    let all = |n| filter(&row(n, "?o != 1", " && "));
    let nested_any = |n| filter(&nested(n, "(?o = 1 || ", "?o = <e:z>", ")"));
    check(
        query,
        vec![
            ("1,000 summands", sum(1000), Rows(1)),
            ("20,000 summands", sum(20_000), CHAIN),
            ("1,000 factors", product(1000), Rows(1)),
            ("100,000 factors", product(100_000), CHAIN),
            ("20,000 ||", any(20_000), Rows(1)),
            ("100,000 ||", any(100_000), BRANCHES),
            ("20,000 &&", all(20_000), Rows(1)),
            ("100,000 &&", all(100_000), BRANCHES),
            ("190 || within each other", nested_any(190), Rows(1)),
            ("true-true-…", select(&row(20_000, "true", "-")), CHAIN),
        ],
    );
}

#[test]
fn groups_within_each_other() {
    let groups = |n| format!("SELECT * {}", nested(n, "{", "", "}"));
    let optionals = |n| format!("SELECT * {{ {} }}", nested(n, "<e:z> <e:p> ?o OPTIONAL { ", "", " }"));
    let different = |n| {
        let open = each(n, |i| format!("?o{i} <e:p> ?o{} OPTIONAL {{ ", i + 1));
        format!("SELECT * {{ {open} {} }}", "}".repeat(n))
    };
    let minus = |n| format!("SELECT * {{ {} }}", nested(n, "<e:z> <e:p> ?o MINUS { ", "", " }"));
    let exists = |n| format!("SELECT * {{ {} }}", nested(n, "<e:z> <e:p> ?o FILTER EXISTS { ", "", " }"));
    let unions = |n| format!("SELECT * {{ {} }}", nested(n, "{ <e:z> <e:p> ?o } UNION { ", "", " }"));
    let graphs = |n| format!("SELECT * {{ {} }}", nested(n, "GRAPH ?g { ?s <e:p> ?o ", "", " }"));
    let services = |n| format!("SELECT * {{ {} }}", nested(n, "SERVICE <e:s> { ", "", " }"));
    check(
        query,
        vec![
            ("200 groups", groups(200), Rows(1)),
            ("890 groups", groups(890), DEPTH),
            ("100,000 groups", groups(100_000), DEPTH),
            ("100,000 open ones", "SELECT * ".to_owned() + &"{".repeat(100_000), DEPTH),
            ("190 open ones", "SELECT * ".to_owned() + &"{".repeat(190), NoQuery),
            ("199 OPTIONAL", optionals(199), Rows(1)),
            ("100 OPTIONAL with variables of their own", different(100), Rows(1)),
            ("5,000 OPTIONAL", optionals(5000), DEPTH),
            ("199 MINUS", minus(199), Rows(1)),
            ("5,000 MINUS", minus(5000), DEPTH),
            ("199 EXISTS", exists(199), Rows(1)),
            ("5,000 EXISTS", exists(5000), DEPTH),
            ("199 UNION", unions(199), Rows(200)),
            ("5,000 UNION", unions(5000), DEPTH),
            ("199 GRAPH", graphs(199), Rows(1)),
            ("5,000 GRAPH", graphs(5000), DEPTH),
            ("199 SERVICE", services(199), NotAsked),
            ("5,000 SERVICE", services(5000), DEPTH),
        ],
    );
}

#[test]
fn selects_within_each_other() {
    let selects = |n| format!("SELECT * {{ {} }}", nested(n, "{ SELECT * { ", "<e:z> <e:p> ?o", " } }"));
    let bare = |n| nested(n, "SELECT * { ", "<e:z> <e:p> ?o", " }");
    let distinct = |n| bare(n).replace("SELECT", "SELECT DISTINCT");
    let sliced = |n| nested(n, "SELECT ?o { ", "<e:z> <e:p> ?o", " } ORDER BY ?o LIMIT 5");
    let grouped = |n| nested(n, "SELECT ?o (COUNT(*) AS ?n) { ", "<e:z> <e:p> ?o", " } GROUP BY ?o");
    check(
        query,
        vec![
            ("99 sub-SELECT", selects(99), Rows(1)),
            ("1,000 sub-SELECT", selects(1000), DEPTH),
            ("200 sub-SELECT", bare(200), Rows(1)),
            ("1,000 bare sub-SELECT", bare(1000), DEPTH),
            ("100,000 sub-SELECT", bare(100_000), DEPTH),
            ("200 DISTINCT", distinct(200), Rows(1)),
            ("200 ORDER BY and LIMIT", sliced(200), Rows(1)),
            ("190 GROUP BY", grouped(190), Rows(1)),
        ],
    );
}

#[test]
fn groups_in_a_row() {
    let optionals = |n| {
        format!("SELECT * {{ <e:z> <e:p> ?o {} }}", each(n, |i| format!("OPTIONAL {{ ?o <e:p> ?o{i} }} ")))
    };
    let minus = |n| format!("SELECT * {{ <e:z> <e:p> ?o {} }}", "MINUS { ?o <e:q> ?x } ".repeat(n));
    let exists = |n| format!("SELECT * {{ <e:z> <e:p> ?o {} }}", "FILTER EXISTS { ?o <e:p> ?x } ".repeat(n));
    let any = |n| filter(&row(n, "EXISTS { ?o <e:p> ?x }", " || "));
    let unions = |n| format!("SELECT * {{ {} }}", row(n, "{ <e:z> <e:p> ?o }", " UNION "));
    let empty = |n| format!("SELECT * {{ {} }}", row(n, "{}", " UNION "));
    let beside = |n| format!("SELECT * {{ {} }}", row(n, "{ ?s <e:p> ?o }", " "));
    let filters = |n| format!("SELECT * {{ ?s <e:p> ?o {} }}", "FILTER(?o != 1) ".repeat(n));
    let binds = |n| format!("SELECT * {{ {} }}", each(n, |i| format!("BIND({i} AS ?x{i}) ")));
    let selected = |n| format!("SELECT {} {{}}", each(n, |i| format!("({i} AS ?x{i}) ")));
    let grouped =
        |n| format!("SELECT (COUNT(*) AS ?n) {{}} GROUP BY {}", each(n, |i| format!("({i} AS ?x{i}) ")));
    let having =
        |n| format!("SELECT ?s {{ ?s <e:p> ?o }} GROUP BY ?s HAVING {}", "(COUNT(*) > 0) ".repeat(n));
    check(
        query,
        vec![
            ("400 OPTIONAL", optionals(400), Rows(1)),
            ("2,000 OPTIONAL", optionals(2000), CHAIN),
            ("100,000 OPTIONAL", optionals(100_000), CHAIN),
            ("500 MINUS", minus(500), Rows(1)),
            ("2,000 MINUS", minus(2000), CHAIN),
            ("300 EXISTS", exists(300), Rows(1)),
            ("5,000 EXISTS", exists(5000), CHAIN),
            ("300 || of EXISTS", any(300), Rows(1)),
            ("5,000 || of EXISTS", any(5000), CHAIN),
            ("2,000 UNION", unions(2000), Rows(2000)),
            ("9,000 empty UNION", empty(9000), Rows(9000)),
            ("100,000 UNION", unions(100_000), Limit("query_patterns")),
            ("100,000 empty UNION", empty(100_000), BRANCHES),
            ("1,000 groups", beside(1000), Rows(1)),
            ("100,000 groups", beside(100_000), Limit("query_patterns")),
            ("9,000 FILTER", filters(9000), Rows(1)),
            ("100,000 FILTER", filters(100_000), BRANCHES),
            ("900 BIND", binds(900), Rows(1)),
            ("5,000 BIND", binds(5000), CHAIN),
            ("900 expressions in SELECT", selected(900), Rows(1)),
            ("5,000 expressions in SELECT", selected(5000), CHAIN),
            ("900 expressions in GROUP BY", grouped(900), Rows(1)),
            ("5,000 expressions in GROUP BY", grouped(5000), CHAIN),
            ("900 HAVING", having(900), Rows(1)),
        ],
    );
}

#[test]
fn paths_and_terms() {
    let path = |path: String| format!("SELECT * {{ <e:z> {path} ?o }}");
    let ask = |terms: String| format!("ASK {{ {terms} }}");
    let star = |n| format!("SELECT * {{ <e:z> {} }}", each(n, |i| format!("<e:p> ?o{i} ; ")));
    let way = |n| format!("SELECT * {{ {} }}", each(n, |i| format!("?o{i} <e:p> ?o{} . ", i + 1)));
    let variables = |n| format!("SELECT {} {{}}", each(n, |i| format!("?x{i} ")));
    check(
        query,
        vec![
            ("1,000 steps", path(row(1000, "<e:p>", "/")), Rows(1)),
            ("5,000 steps", path(row(5000, "<e:p>", "/")), CHAIN),
            ("100,000 steps", path(row(100_000, "<e:p>", "/")), CHAIN),
            ("1,000 alternatives", path(row(1000, "<e:p>", "|")), Rows(1000)),
            ("5,000 alternatives", path(row(5000, "<e:p>", "|")), CHAIN),
            ("900 alternatives below a star", path(format!("({})*", row(900, "<e:p>", "|"))), Rows(1)),
            ("1,000 negated", path(format!("!({})", row(1000, "<e:q>", "|"))), Rows(1)),
            ("199 parentheses", path(nested(199, "(", "<e:p>", ")")), Rows(1)),
            ("100,000 parentheses", path(nested(100_000, "(", "<e:p>", ")")), DEPTH),
            ("199 inverses", path(nested(199, "^(", "<e:p>", ")")), Rows(1)),
            ("50 stars", path(nested(50, "(", "<e:p>", ")*")), Rows(1)),
            ("900 paths", ask(row(900, "<e:z> <e:p>* ?o", " . ")), Rows(1)),
            ("199 collections", ask(nested(199, "(", "1", ")") + " <e:p> 1"), Rows(0)),
            ("100,000 collections", ask(nested(100_000, "(", "1", ")") + " <e:p> 1"), DEPTH),
            ("199 property lists", ask(nested(199, "[ <e:p> ", "1", "]")), Rows(0)),
            ("100,000 property lists", ask(nested(100_000, "[ <e:p> ", "1", "]")), DEPTH),
            ("199 reified triples", ask(nested(199, "<<", "<e:z>", " <e:p> 1 >>")), Rows(0)),
            ("99 triple terms", ask(nested(99, "<<(", "<e:z>", " <e:p> 1 )>>")), NoQuery),
            (
                "64 triple terms as objects",
                ask(format!("<e:z> <e:p> {}", nested(64, "<<( ?s <e:p> ", "1", " )>>"))),
                Rows(0),
            ),
            (
                "99 triple terms as objects",
                ask(format!("<e:z> <e:p> {}", nested(99, "<<( <e:z> <e:p> ", "1", " )>>"))),
                NotThere,
            ),
            ("100,000 triple terms", ask(nested(100_000, "<<(", "<e:z>", " <e:p> 1 )>>")), DEPTH),
            ("1,000 patterns of a star", star(1000), Rows(1)),
            ("1,000 patterns in a row", way(1000), Rows(1)),
            ("5,000 patterns", way(5000), Limit("query_patterns")),
            ("100,000 variables", variables(100_000), Limit("query_variables")),
            ("brackets that are none", format!("ASK {{}} # {}\n", "(".repeat(100_000)), Rows(1)),
            ("brackets in a string", format!("ASK {{ ?s ?p '''{}''' }}", "'(!+".repeat(100_000)), Rows(0)),
            ("brackets in an IRI", format!("ASK {{ ?s ?p <e:{}> }}", "(!+".repeat(100_000)), Rows(0)),
        ],
    );
}

#[test]
fn updates() {
    let data = |n| format!("INSERT DATA {{ {} }}", each(n, |i| format!("<e:s{i}> <e:q> {i} . ")));
    let lists = |n| format!("INSERT DATA {{ <e:s> <e:q> {} }}", nested(n, "(", "1", ")"));
    let properties = |n| format!("INSERT DATA {{ <e:s> <e:q> {} }}", nested(n, "[ <e:q> ", "1", "]"));
    let optionals = |n| {
        let optionals = each(n, |i| format!("OPTIONAL {{ ?o <e:p> ?o{i} }} "));
        format!("DELETE {{ ?o <e:q> ?o }} INSERT {{ ?o <e:q> ?o }} WHERE {{ <e:z> <e:p> ?o {optionals} }}")
    };
    let groups = |n| format!("INSERT {{ <e:z> <e:q> 1 }} USING <e:g> WHERE {}", nested(n, "{", "", "}"));
    let template = |n| format!("INSERT {{ {} }} WHERE {{}}", each(n, |i| format!("<e:t{i}> <e:q> {i} . ")));
    let sequence = |n, part: &str| row(n, part, "; ");
    check(
        update,
        vec![
            ("data", data(20_000), Done),
            ("199 collections", lists(199), Done),
            ("100,000 collections", lists(100_000), DEPTH),
            ("199 property lists", properties(199), Done),
            ("100,000 property lists", properties(100_000), DEPTH),
            ("400 OPTIONAL", optionals(400), Done),
            ("2,000 OPTIONAL", optionals(2000), CHAIN),
            ("200 groups", groups(200), Done),
            ("890 groups", groups(890), DEPTH),
            ("a large template", template(20_000), Done),
            ("deletions", data(20_000).replacen("INSERT", "DELETE", 1), Done),
            ("100,000 operations", sequence(100_000, "CLEAR SILENT GRAPH <e:n>"), Done),
            ("200 operations with OPTIONAL", sequence(200, &optionals(20)), Done),
            ("100,000 open groups", "DELETE WHERE ".to_owned() + &"{".repeat(100_000), NoQuery),
        ],
    );
}
