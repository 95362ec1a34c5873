//! How fast INSERT DATA is: requests of so many quads each, parsing included, and where the
//! time goes.
//!
//!     cargo run --release -p snowmelt-benches --example insert -- \
//!         DIRECTORY [QUADS_PER_REQUEST] [REQUESTS] [held|once]
//!
//! DIRECTORY must not hold a database; the one made there is removed at the end. With *held* there
//! are no checkpoints, with *once* there is one before the last quarter of the requests. The
//! difference between the last quarters is the cost of a long journal.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{QueryEngine, UpdateOptions};
use snowmelt_store::{Checkpoints, JournalConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("name a directory")?;
    let quads: usize = args.next().map_or(Ok(10_000), |n| n.parse())?;
    let requests: usize = args.next().map_or(Ok(40), |n| n.parse())?;
    if requests == 0 || !requests.is_multiple_of(4) {
        return Err("the number of requests is a multiple of 4".into());
    }
    let mode = args.next();
    let checkpoints = match mode.as_deref() {
        None => Checkpoints::Continuous,
        Some("held" | "once") => Checkpoints::Held,
        Some(_) => return Err("held, once, or nothing".into()),
    };
    let dir = Path::new(&dir);
    let journal = JournalConfig { checkpoints, ..JournalConfig::default() };
    let engine = QueryEngine::new(GraphDatabase::create(
        dir,
        &[],
        &OpenOptions { journal, ..OpenOptions::default() },
    )?);
    let options = UpdateOptions::default();
    let (mut parse, mut whole) = (Duration::ZERO, Vec::with_capacity(requests));
    for request in 0..requests {
        if mode.as_deref() == Some("once") && request == requests / 4 * 3 {
            engine.graph().database().store().checkpoint()?;
        }
        let text = text(request, quads);
        let begun = Instant::now();
        spargebra::SparqlParser::new().parse_update(&text)?;
        parse += begun.elapsed();
        let begun = Instant::now();
        let updated = engine.update(&text, &options)?;
        whole.push(begun.elapsed());
        assert_eq!(updated.changed.inserted, quads as u64);
    }
    let all = (quads * requests) as f64;
    let sum: Duration = whole.iter().sum();
    println!(
        "{requests} requests of {quads} quads: {:.0} quads/s, {:.3} ms each; the parser alone {:.0} quads/s",
        all / sum.as_secs_f64(),
        sum.as_secs_f64() * 1e3 / requests as f64,
        all / parse.as_secs_f64()
    );
    let median = |some: &[Duration]| {
        let mut some = some.to_vec();
        some.sort();
        some[some.len() / 2].as_secs_f64() * 1e3
    };
    let quarter = requests / 4;
    let stats = engine.graph().database().store().journal_stats();
    println!(
        "medians of the four quarters: {} ms; {} pages have versions that are not checkpointed, {:.0} MB of journal",
        whole.chunks(quarter).map(|q| format!("{:.1}", median(q))).collect::<Vec<_>>().join(", "),
        stats.versioned_pages,
        stats.appended_bytes as f64 / 1e6,
    );
    drop(engine);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

/// Reviews, about: half of the terms are new.
fn text(request: usize, quads: usize) -> String {
    let mut text = String::from("PREFIX ex: <http://example.org/vocabulary/>\nINSERT DATA {\n");
    for i in 0..quads {
        let subject = (request * quads + i) / 8;
        let (s, p) = (format!("<http://example.org/data/review{subject}>"), format!("ex:p{}", i % 8));
        let o = match i % 8 {
            0 => format!("<http://example.org/data/product{}>", subject % 5000),
            1 => format!("\"a title of the review number {subject}\"@en"),
            2 => {
                format!("\"the text of review {subject} says more than its title, and is longer than most\"")
            }
            3 => format!("\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer>", subject % 10),
            4 => "\"2008-05-23T00:00:00\"^^<http://www.w3.org/2001/XMLSchema#dateTime>".to_owned(),
            5 => format!("<http://example.org/data/person{}>", subject % 3000),
            6 => "ex:Review".to_owned(),
            _ => format!("\"{}.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>", subject % 100),
        };
        writeln!(text, "{s} {p} {o} .").expect("writing to a string");
    }
    text + "}"
}
