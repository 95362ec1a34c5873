//! Times a list of queries in-process, one client, results as XML, and says where the time goes
//! per query of the mix.
//!
//! `explore DB QUERIES.jsonl [ROUNDS]`: DB is a database directory; each line of QUERIES has
//! `query` (its number in the mix) and `sparql`. Prints QMpH for mixes of 25, and per query
//! count, mean microseconds and rows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use snowmelt_graph::{Database, OpenOptions};
use snowmelt_sparql::{Engine, QueryKind, QueryOptions, ResultFormat};

/// Seconds this thread has been on a processor; 0 where the kernel does not say. On a shared
/// machine the fairer clock.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, db, queries, rest @ ..] = &args[..] else {
        return Err("explore DB QUERIES.jsonl [ROUNDS] [QUERY]".into());
    };
    let rounds: usize = rest.first().map_or(Ok(3), |r| r.parse())?;
    let only: Option<u64> = rest.get(1).map(|q| q.parse()).transpose()?;
    let engine = Engine::new(Database::open(db.as_ref(), &OpenOptions::default())?);
    let mut list = Vec::new();
    for line in std::fs::read_to_string(queries)?.lines() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        let text = line["sparql"].as_str().ok_or("a line without sparql")?.to_owned();
        let number = line["query"].as_u64().unwrap_or(0);
        if only.is_none_or(|o| o == number) {
            list.push((number, text));
        }
    }
    let options = QueryOptions::default();
    for round in 0..rounds {
        let mut by: BTreeMap<u64, (u64, Duration, u64, Duration)> = BTreeMap::new();
        let start = Instant::now();
        let before = processor_seconds();
        let mut out = Vec::new();
        for (number, text) in &list {
            out.clear();
            let begin = Instant::now();
            let result = engine.query(text, &options)?;
            let prepared = begin.elapsed();
            let format =
                if result.kind() == QueryKind::Graph { ResultFormat::RdfXml } else { ResultFormat::Xml };
            let written = result.write(format, &mut out)?;
            let entry = by.entry(*number).or_default();
            entry.0 += 1;
            entry.1 += begin.elapsed();
            entry.2 += written.rows;
            entry.3 += prepared;
        }
        let seconds = start.elapsed().as_secs_f64();
        let cpu = processor_seconds() - before;
        let qmph = |seconds: f64| list.len() as f64 / 25.0 / seconds * 3600.0;
        let queries = list.len();
        println!(
            "round {round}: {queries} queries in {seconds:.3} s, {:.0} QMpH; on a processor {cpu:.3} s, {:.0} QMpH",
            qmph(seconds),
            qmph(cpu)
        );
        if round + 1 == rounds {
            for (number, (count, time, rows, prepared)) in by {
                let mean = |d: Duration| d.as_secs_f64() * 1e6 / count as f64;
                println!(
                    "  query {number:>2}: {count:>5} × {:>9.1} µs (preparing {:>7.1}), {:>8.1} rows",
                    mean(time),
                    mean(prepared),
                    rows as f64 / count as f64
                );
            }
        }
    }
    Ok(())
}
