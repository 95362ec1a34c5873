//! Texts of the grammars of queries and updates, run here: each small one is a text of its
//! language, a quarter of the stack suffices ([`super::hostile`]), and work grows as the text
//! does.
//!
//! Work is counted in bytes that are allocated, which no other process changes: what is copied
//! again and again shows, what is only compared does not. `crates/cli/tests/grammars` measures
//! that on a real server.

use snowmelt_base::random::lcg;
use snowmelt_database::OpenOptions;
use snowmelt_grammar::{Language, Site, languages};
use snowmelt_graph::GraphDatabase;
use snowmelt_syntax::ParseOptions;

use super::{QueryEngine, QueryOptions};
use crate::bounds::TextLimits;
use crate::bounds::text_limits::{BASE_BYTES, query_bytes, update_bytes, usual_bytes};
use crate::results::ResultFormat;
use crate::text::syntax::{with_query, with_update};
use crate::{QueryError, QueryKind, UpdateOptions};
use snowmelt_query::looks;
use snowmelt_query::scarcity;

/// Twice the text, or the weight, takes twice the work, and some more where tables grow.
const MOST_RATIO: f64 = 2.6;

/// Bytes below which nothing is compared: tables double, buffers are filled first.
const FLOOR_BYTES: u64 = 64 << 20;

/// Bytes allocated for each look at the clock, at most; and before the first one, for each byte of
/// the text, which the parser reads in one go.
const LOOK_BYTES: u64 = 64 << 20;
const PARSED_BYTES: u64 = 1 << 10;

fn engine() -> (tempfile::TempDir, QueryEngine) {
    engine_of(256 << 20)
}

fn engine_of(memory_bytes: u64) -> (tempfile::TempDir, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
    engine.update("INSERT DATA { <urn:o0> <urn:p0> <urn:o0> }", &UpdateOptions::default()).unwrap();
    (dir, engine)
}

/// A text's way from its characters to its printed result; whether a limit refused it.
fn run(engine: &QueryEngine, language: &str, text: &str) -> Result<bool, QueryError> {
    let ended = if language == "update" {
        engine.update(text, &UpdateOptions { threads: 1, ..UpdateOptions::default() }).map(drop)
    } else {
        let options = QueryOptions { threads: 1, ..QueryOptions::default() };
        engine.query(text, &options).and_then(|result| {
            let format = match result.kind() {
                QueryKind::Graph => ResultFormat::Turtle,
                QueryKind::Solutions | QueryKind::Boolean => ResultFormat::Json,
            };
            result.write(format, &mut Vec::new()).map(drop)
        })
    };
    match ended {
        Ok(()) => Ok(true),
        // SERVICE, and LOAD from where nothing may be loaded
        Err(
            QueryError::Unsupported { .. }
            | QueryError::Service { .. }
            | QueryError::ServiceName { .. }
            | QueryError::LoadFailed { .. }
            | QueryError::LoadRefused { .. },
        ) => Ok(false),
        Err(
            QueryError::TooLarge { .. }
            | QueryError::Memory { .. }
            | QueryError::TextMemory { .. }
            | QueryError::OperationTooLong { .. },
        ) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The places of both languages, a part of them by the seed.
fn sample(one_of: u64) -> Vec<(&'static str, Site)> {
    let mut random = snowmelt_base::test_seed(1);
    let both = languages().into_iter().filter(|l| matches!(l.name, "query" | "update"));
    let places =
        both.flat_map(|Language { name, grammar }| grammar.sites().into_iter().map(move |s| (name, s)));
    places.filter(|_| (lcg(&mut random) >> 33).is_multiple_of(one_of)).collect()
}

#[test]
fn the_smallest_text_of_each_production_is_valid() {
    let (_dir, engine) = engine();
    let mut wrong = Vec::new();
    for (language, site) in sample(1) {
        let text = site.document(1);
        if let Err(error) = run(&engine, language, &text) {
            wrong.push(format!("{language}: {}: {error}\n    {text}", site.name()));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// On a thread with a small stack: an overflow ends the process, the last line names the place.
#[test]
fn a_quarter_of_the_stack_suffices_for_each_production() {
    let body = || {
        scarcity::set(4, BASE_BYTES);
        let (_dir, engine) = engine();
        for (language, site) in sample(24) {
            for n in [95, 900, 100_000] {
                println!("{language}: {} × {n}", site.name());
                let ended = run(&engine, language, &site.document(n));
                assert!(ended.is_ok(), "{language}: {} × {n}: {}", site.name(), ended.unwrap_err());
            }
        }
    };
    if let Err(panic) = std::thread::Builder::new().stack_size(2 << 20).spawn(body).unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

/// A text with other spellings of its IRIs: each as long, and a few letters for long ones.
fn spellings(text: &str) -> Vec<(&'static str, String)> {
    const LONG: usize = 3000;
    let long = "x".repeat(LONG);
    let name = regex::Regex::new("<urn:([a-z]+[0-9]*)>").unwrap();
    let respelt = |before: String, name_as: &str| before + &name.replace_all(text, name_as);
    let mut all = vec![
        ("as it is", text.to_owned()),
        ("by a long namespace", respelt(format!("PREFIX l: <urn:{long}/> "), "l:$1")),
        ("by a long base", respelt(format!("BASE <http://b/{long}/> "), "<$1>")),
    ];
    if text.len() < 100_000 {
        all.push(("long", respelt(String::new(), &format!("<urn:{long}$1>"))));
        // with many objects, behind commas
        let term = regex::Regex::new(r"(\?|_:)([a-z]+[0-9]*)").unwrap();
        all.push((
            "by long variables and labels",
            term.replace_all(text, format!("$1{long}$2")).into_owned(),
        ));
    }
    all
}

/// Texts in which names stand that are not seen at once: the parser wants no blanks between
/// tokens, takes three quotes for two and one, and `<` up to `>` for two comparisons.
fn disguises(n: usize) -> Vec<(&'static str, String)> {
    const LONG: usize = 3000;
    let long = "x".repeat(LONG);
    let values = |row: &str| format!("PREFIX x: <urn:{long}> ASK {{ VALUES ?v {{ {} }} }}", row.repeat(n));
    let filter = |before: &str, after: &str| {
        let names = "x:,".repeat(n);
        format!("PREFIX x: <urn:{long}> ASK {{ FILTER({before}{names}{after}) }}")
    };
    let objects = "1,".repeat(n);
    let stars = |n: usize| ("{{ SELECT * ".repeat(n), "}}".repeat(n));
    let columns: String = (0..1500).map(|i| format!("?{i} ")).collect();
    let (open, close) = stars(80);
    vec![
        ("query", filter("1 IN (1<", "2>1)")),
        ("query", filter("1<'>'&&COALESCE(", "1)='1'")),
        ("query", values("x: ").replacen("{ x:", "{ '''a' x:", 1)),
        ("query", values("1x: ")),
        ("query", values("truex: ")),
        ("query", values("x: ").replacen("PREFIX ", "PREFIX", 1)),
        ("query", format!("CONSTRUCT {{ ?{long} <urn:p> {objects} 1 }} WHERE {{}}")),
        ("query", format!("CONSTRUCT {{ ?s ?{long} {objects} 1 }} WHERE {{}}")),
        ("query", format!("SELECT * {open} {{ VALUES ({columns}) {{}} }} {close}")),
        ("query", format!("SELECT * {open} {{ ?{} ?p ?o }} {close}", long.repeat(40))),
        ("update", format!("INSERT DATA {{ _:{long} <urn:p> {objects} 1 }}")),
        ("update", format!("INSERT {{ GRAPH ?{long} {{ ?s <urn:p> {objects} 1 }} }} WHERE {{}}")),
        ("update", {
            let quads = "<urn:s> <urn:p> 1 . ".repeat(n);
            format!("PREFIX x: <urn:{long}> INSERT DATA {{ GRAPHx:{{ {quads} }} }}")
        }),
    ]
}

/// Data are read in batches that fit, however dense they are.
#[test]
fn dense_data_is_taken_in_batches_that_fit() {
    let (_dir, engine) = engine();
    type Line = fn(usize) -> String;
    let lines: [(u64, Line); 3] = [
        (4, |i| format!("ex:t{i} ex:name \"N{i}\"; ex:age {i}; ex:of ex:a, ex:b .\n")),
        (8, |i| format!("[] ex:name \"N{i}\"; ex:list ({i} 2 3) .\n")),
        (2, |i| format!("GRAPH ex:g{i} {{ ex:t{i} ex:of ex:a, ex:b }}\n")),
    ];
    for (each, line) in lines {
        let text: String = (0..30_000).map(line).collect();
        let text = format!("PREFIX ex: <http://example.org/vocabulary/of/things/> INSERT DATA {{ {text} }}");
        let done = engine.update_from(text.as_bytes(), usize::MAX / 4, &UpdateOptions::default());
        let inserted = done.map(|done| done.changed.inserted);
        assert!(matches!(inserted, Ok(n) if n == 30_000 * each), "{}: {inserted:?}", line(1));
    }
}

/// A text that is short, and whose trees are many.
#[test]
fn many_small_operations_are_taken_one_by_one() {
    let (_dir, engine) = engine();
    let text = "DELETE WHERE { ?s <urn:none> ?s } ; ".repeat(25_000);
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    let done = engine.update(&text, &UpdateOptions::default()).map(|done| done.changed.deleted);
    assert!(matches!(done, Ok(0)), "{done:?}");
}

#[test]
fn a_disguise_takes_no_more_than_what_is_reserved_for_it() {
    const BESIDE: u64 = 8 << 20;
    let (_dir, engine) = engine();
    let mut wrong = Vec::new();
    for (number, (language, text)) in disguises(10_000).into_iter().enumerate() {
        let reckoned = reckoned(&engine, language, &text);
        let mut ended = Ok(());
        let work = || ended = trees(&engine, language, &text, reckoned);
        let most = allocation_counter::measure(work).bytes_max;
        println!("{number}: {} of {} MiB, {ended:?}", most >> 20, reckoned >> 20);
        if most > reckoned + BESIDE {
            wrong.push(format!("{number}: {} MiB of {}: {ended:?}", most >> 20, reckoned >> 20));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The memory that is reserved for a text.
fn reckoned(engine: &QueryEngine, language: &str, text: &str) -> u64 {
    let options = ParseOptions { limits: *engine.text_limits(), ..ParseOptions::default() };
    let bytes = match language {
        "query" => with_query(text, &options, |query| Ok(query_bytes(text.len(), &query))),
        _ => with_update(text, &options, |update| Ok(update_bytes(text.len(), &update))),
    };
    // what is refused has what any text has
    bytes.unwrap_or_else(|_| usual_bytes(text.len())) as u64
}

/// Makes the trees of a text, and what is made of them before anything runs, within so many bytes.
fn trees(engine: &QueryEngine, language: &str, text: &str, most: u64) -> Result<(), QueryError> {
    if language == "query" {
        return engine.explain(text, &QueryOptions::default()).map(drop);
    }
    let limits = TextLimits { tree_bytes: most as usize, ..*engine.text_limits() };
    with_update(text, &ParseOptions { limits, ..ParseOptions::default() }, |update| {
        drop(update);
        Ok(())
    })
}

/// A text takes what it is reckoned to take: a long name that a few letters stand for, many times,
/// among it.
#[test]
fn trees_take_no_more_than_what_is_reserved_for_them() {
    /// Beside the text: tables of the parser, the first of each buffer.
    const BESIDE: u64 = 8 << 20;
    let (_dir, engine) = engine();
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for (language, site) in sample(24) {
        for n in [300, 3000, 20_000] {
            for (how, text) in spellings(&site.document(n)) {
                let reckoned = reckoned(&engine, language, &text);
                // what is refused, for this or another limit, takes nothing
                if reckoned > 1 << 30 {
                    continue;
                }
                let mut ended = Ok(());
                let work = || ended = trees(&engine, language, &text, reckoned);
                let most = allocation_counter::measure(work).bytes_max;
                taken += u64::from(ended.is_ok());
                if most > reckoned + BESIDE {
                    let (most, reckoned) = (most >> 20, reckoned >> 20);
                    let text = text.len() >> 10;
                    wrong.push(format!(
                        "{language}: {} × {n}, {how}: {most} MiB of {reckoned}, {text} KiB of text",
                        site.name()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(taken > 100, "{taken} texts are no sample");
}

#[test]
fn work_grows_as_the_text_does_and_looks_at_the_clock() {
    // An update of any of these sizes is taken whole: as a stream it takes other work.
    let (_dir, engine) = engine_of(1 << 30);
    let mut wrong = Vec::new();
    for (language, site) in sample(30) {
        let mut before = None;
        for n in [2000, 4000, 8000, 16_000] {
            let text = site.document(n);
            let looked = looks::so_far();
            let mut ended = Ok(false);
            let work = allocation_counter::measure(|| ended = run(&engine, language, &text)).bytes_total;
            let looked = looks::so_far() - looked;
            match ended {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    wrong.push(format!("{language}: {} × {n}: {error}", site.name()));
                    break;
                }
            }
            // A plan holds for each group the variables before it. Limits bound that square, and
            // it is weighed.
            let weight = reckoned(&engine, language, &text) as f64;
            let (less, lighter) = before.unwrap_or((u64::MAX, weight));
            let (ratio, due) = (work as f64 / less as f64, (weight / lighter).max(2.0) / 2.0);
            if work > FLOOR_BYTES && ratio > MOST_RATIO * due {
                wrong.push(format!(
                    "{language}: {} × {n}: {work} bytes, {ratio:.1} times as many",
                    site.name()
                ));
            }
            if work > LOOK_BYTES * (looked + 1) + PARSED_BYTES * text.len() as u64 {
                wrong.push(format!("{language}: {} × {n}: {work} bytes, {looked} looks", site.name()));
            }
            before = Some((work, weight));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
