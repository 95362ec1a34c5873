//! Virtuoso's own meters over the same mixes: its activity and its statistics by index.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, Workload};
use snowmelt_engines::{Adapter, Language};
use snowmelt_lab::watch::counters::CounterSource;

use crate::compare::data::DataSet;
use crate::repeat::server::{Place, engine, throw_out};
use crate::repeat::steps::Steps;

/// The memory that it may use.
const MEMORY: u64 = 8 << 30;
/// Names of its activity that are ours, too.
pub const NAMES: [&str; 8] = ["rnd", "seq", "same seg", "same pg", "same par", "disk", "spec disk", "fork"];

/// Meters of some mixes from cold.
#[derive(Clone, Debug, PartialEq)]
pub struct Metered {
    pub triples: u64,
    pub mixes: u32,
    /// by name, of all mixes
    pub activity: BTreeMap<String, f64>,
    /// name, rows found, pages read; most read first
    pub indexes: Vec<(String, f64, f64)>,
}

impl Metered {
    /// A meter for one mix.
    pub fn per_mix(&self, name: &str) -> f64 {
        self.activity.get(name).copied().unwrap_or(0.0) / f64::from(self.mixes)
    }
}

/// Loads `products` products into a Virtuoso, starts it cold, and runs mixes in one session.
pub fn metered(steps: &mut Steps<'_>, products: u32, mixes: u32) -> Result<Metered> {
    let begun = (Instant::now(), steps.clock());
    let name = format!("virtuoso-{products}");
    let folder = steps.path(&name);
    let folder = Path::new(&folder);
    std::fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let data = DataSet::generate(folder, products, None, 1)?;
    let place = Place { folder, data: &data.file, parts: &folder.join("parts") };
    let engine = engine(steps, Adapter::named("virtuoso")?, &place, MEMORY)?;
    data.cut(place.parts, steps.threads())?;
    steps.say(&format!("Virtuoso: loading {} triples", data.items));
    engine.load(Language::Sparql)?;
    throw_out(steps, &engine)?;
    let script = folder.join("mixes.sql");
    let graph = engine.adapter().default_graph.clone().unwrap_or_default();
    std::fs::write(&script, statements(products, mixes, &graph)?)
        .with_context(|| format!("cannot write {}", script.display()))?;
    let server = engine.start()?;
    let port = engine.value("second-port").context("Virtuoso has a port for SQL")?.to_owned();
    let source = CounterSource::Virtuoso(port, "dba".into(), "dba".into());
    let before = source.ask()?;
    steps.say(&format!("Virtuoso: {mixes} mixes from cold"));
    let printed = engine.command("sql-file", &[("file", &script.display().to_string())])?;
    let after = source.ask()?;
    server.stop()?;
    if let Some(error) = printed.lines().find(|line| line.starts_with("*** Error")) {
        steps.doubt(format!("Virtuoso: a query failed: {error}"));
    }
    drop(engine);
    steps.remove(&name);
    steps.own(
        &format!("Virtuoso: {} triples loaded, started cold, {mixes} mixes, its meters read", data.items),
        "isql: SPARQL …; SELECT db_activity(); SELECT … FROM sys_d_stat",
        begun,
    );
    let activity = meters(printed.lines().rfind(|line| line.contains(" rnd ")).unwrap_or_default());
    Ok(Metered { triples: data.items, mixes, activity, indexes: indexes(&before, &after) })
}

/// The queries as statements of one session, which prints its activity at the end: Virtuoso counts
/// it by session. Each has a line, since isql ends a statement at a semicolon that ends a line.
fn statements(products: u32, mixes: u32, graph: &str) -> Result<String> {
    let mut workload = Workload::new(products, DEFAULT_SEED, UseCase::Explore)?;
    let mut text = String::new();
    for query in (0..mixes).flat_map(|_| workload.next_mix().queries) {
        let words: Vec<&str> = query.text.split_whitespace().collect();
        writeln!(text, "SPARQL define input:default-graph-uri <{graph}> {};", words.join(" "))?;
    }
    text += "SELECT db_activity();\n";
    Ok(text)
}

/// The numbers of an activity line by the words behind them: `1.674G rnd  3.223G seq`.
fn meters(line: &str) -> BTreeMap<String, f64> {
    let mut meters = BTreeMap::new();
    let mut last: Option<(f64, Vec<&str>)> = None;
    let mut end = |last: &mut Option<(f64, Vec<&str>)>| {
        if let Some((value, words)) = last.take() {
            meters.insert(words.join(" "), value);
        }
    };
    for word in line.split_whitespace() {
        match number(word) {
            Some(value) => {
                end(&mut last);
                last = Some((value, Vec::new()));
            }
            None => last.iter_mut().for_each(|(_, words)| words.push(word)),
        }
    }
    end(&mut last);
    meters
}

/// `4.5K`, `22R`, `1.674G`.
fn number(word: &str) -> Option<f64> {
    let split = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let value: f64 = word[..split].parse().ok()?;
    let scale = match word[split..].chars().next() {
        Some('K') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        Some('T') => 1e12,
        _ => 1.0,
    };
    Some(value * scale)
}

/// Rows found and pages read by index between two readings, most read first.
fn indexes(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> Vec<(String, f64, f64)> {
    let since = |key: &str| after.get(key).unwrap_or(&0.0) - before.get(key).unwrap_or(&0.0);
    let names = after.keys().filter_map(|key| key.strip_suffix(".reads"));
    let mut indexes: Vec<_> = names
        .map(|name| (name.to_owned(), since(&format!("{name}.touches")), since(&format!("{name}.reads"))))
        .filter(|(_, touches, reads)| touches + reads > 0.0)
        .collect();
    indexes.sort_by(|a, b| b.2.total_cmp(&a.2));
    indexes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_are_named_by_the_words_behind_them() {
        let line = "  1.674G rnd  3.223K seq      0 same seg   12 same pg  6.186M disk  5 spec disk      0B /  \
                    0 messages  2.5K fork";
        let meters = meters(line);
        let of = |name: &str| meters[name];
        assert_eq!([of("rnd"), of("seq"), of("same seg"), of("same pg")], [1.674e9, 3223.0, 0.0, 12.0]);
        assert_eq!([of("disk"), of("spec disk"), of("fork")], [6.186e6, 5.0, 2500.0]);
    }

    #[test]
    fn statements_are_lines_of_one_session() {
        let text = statements(100, 2, "urn:g").unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[50]), (51, "SELECT db_activity();"));
        let begin = "SPARQL define input:default-graph-uri <urn:g> ";
        assert!(lines[..50].iter().all(|line| line.starts_with(begin) && line.ends_with(';')));
    }

    #[test]
    fn indexes_count_from_the_reading_before() {
        let of = |pairs: &[(&str, f64)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let before =
            of(&[("a.x.reads", 5.0), ("a.x.touches", 100.0), ("b.y.reads", 1.0), ("b.y.touches", 1.0)]);
        let after = of(&[
            ("a.x.reads", 6.0),
            ("a.x.touches", 150.0),
            ("b.y.reads", 1.0),
            ("b.y.touches", 1.0),
            ("c.z.reads", 9.0),
        ]);
        let want = [("c.z".to_owned(), 0.0, 9.0), ("a.x".to_owned(), 50.0, 1.0)];
        assert_eq!(indexes(&before, &after), want);
    }
}
