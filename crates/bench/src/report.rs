//! Summary of a run: query mixes per hour, and per query the counts and times
//! that BSBM defines.

use std::collections::BTreeMap;

use serde::Serialize;

use super::drive::{Record, Run};
use snowmelt_base::text_table::TextTable;

/// Figures of one query of the mix. Times in seconds.
#[derive(Debug, Serialize)]
pub struct QueryReport {
    /// Number in the use case.
    pub query: u32,
    /// executions
    pub count: usize,
    /// executions that hit a limit
    pub failed: usize,
    /// arithmetic mean execution time
    pub aqet: f64,
    /// geometric mean execution time
    pub aqet_geometric: f64,
    /// fastest
    pub min: f64,
    /// slowest
    pub max: f64,
    /// solutions or triples: mean
    pub rows: f64,
    /// fewest
    pub min_rows: u64,
    /// most
    pub max_rows: u64,
    /// the sum of all answers' digests: equal for equal answers, whatever the order
    pub digest: String,
}

/// Query mixes per hour in both definitions of the benchmark.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Throughput {
    /// one client: 3600 ÷ mean of the mixes' query times
    pub qmph_query_time: f64,
    /// any number of clients: mixes ÷ wall time
    pub qmph_wall: f64,
}

impl Throughput {
    /// Of a run. A mix that was cut off at the end counts by its share of queries.
    pub fn of(run: &Run, queries_per_mix: usize) -> Self {
        let mixes = run.records.len() as f64 / queries_per_mix as f64;
        let busy_s: f64 = run.records.iter().map(seconds).sum();
        let per_hour = |s: f64| if s > 0.0 { 3600.0 * mixes / s } else { 0.0 };
        Self { qmph_query_time: per_hour(busy_s), qmph_wall: per_hour(run.seconds()) }
    }

    /// Both, and how much was done in how long.
    pub fn text(&self, run: &Run) -> String {
        format!(
            "QMpH {:.0} by wall time, {:.0} by query time (per client); {} mixes, {} queries in {:.3} s\n",
            self.qmph_wall,
            self.qmph_query_time,
            run.mixes(),
            run.records.len(),
            run.seconds()
        )
    }

    /// The one the benchmark reports for a number of clients.
    pub fn qmph(&self, clients: usize) -> f64 {
        if clients == 1 { self.qmph_query_time } else { self.qmph_wall }
    }
}

/// The figures per query as text, times in milliseconds.
pub fn table(queries: &[QueryReport]) -> String {
    let head = ["query", "count", "failed", "AQET ms", "min ms", "max ms", "rows", "least", "most", "digest"];
    let mut table = TextTable::new(&head);
    for q in queries {
        let ms = |s: f64| format!("{:.3}", s * 1e3);
        table.row(vec![
            format!("Q{}", q.query),
            q.count.to_string(),
            q.failed.to_string(),
            ms(q.aqet),
            ms(q.min),
            ms(q.max),
            format!("{:.2}", q.rows),
            q.min_rows.to_string(),
            q.max_rows.to_string(),
            q.digest.clone(),
        ]);
    }
    table.render()
}

/// Figures per query number.
pub fn queries(records: &[Record]) -> Vec<QueryReport> {
    let mut groups: BTreeMap<u32, Vec<&Record>> = BTreeMap::new();
    for record in records {
        groups.entry(record.number).or_default().push(record);
    }
    groups.into_iter().map(|(number, group)| query(number, &group)).collect()
}

fn seconds(record: &Record) -> f64 {
    (record.end_ns - record.start_ns) as f64 / 1e9
}

fn query(number: u32, group: &[&Record]) -> QueryReport {
    let n = group.len() as f64;
    let times = || group.iter().map(|r| seconds(r));
    let rows = || group.iter().map(|r| r.rows);
    QueryReport {
        query: number,
        count: group.len(),
        failed: group.iter().filter(|r| r.failed.is_some()).count(),
        aqet: times().sum::<f64>() / n,
        aqet_geometric: (times().map(|t| t.max(1e-9).ln()).sum::<f64>() / n).exp(),
        min: times().fold(f64::INFINITY, f64::min),
        max: times().fold(0.0, f64::max),
        rows: rows().sum::<u64>() as f64 / n,
        min_rows: rows().min().unwrap_or(0),
        max_rows: rows().max().unwrap_or(0),
        digest: format!("{:016x}", group.iter().map(|r| r.digest).fold(0, u64::wrapping_add)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u32, start_ms: u64, end_ms: u64, ends_mix: bool) -> Record {
        Record {
            number,
            start_ns: start_ms * 1_000_000,
            end_ns: end_ms * 1_000_000,
            rows: end_ms,
            bytes: 0,
            digest: 1,
            work_ns: 0,
            planning_ns: 0,
            ends_mix,
            failed: None,
        }
    }

    #[test]
    fn both_definitions_of_throughput() {
        // Two clients, one mix each of two queries; 400 ms of query time in 300 ms of wall time.
        let records = vec![
            record(1, 0, 100, false),
            record(2, 100, 200, true),
            record(1, 50, 150, false),
            record(2, 200, 300, true),
        ];
        let q = queries(&records);
        assert_eq!((q.len(), q[0].count, q[1].max_rows), (2, 2, 300));
        assert!((q[0].aqet - 0.1).abs() < 1e-9);
        assert_eq!(q[0].digest, format!("{:016x}", 2));
        let run = Run { from_ns: 0, to_ns: 300_000_000, records };
        let t = Throughput::of(&run, 2);
        assert!((t.qmph_query_time - 3600.0 * 2.0 / 0.4).abs() < 1e-6);
        assert!((t.qmph_wall - 3600.0 * 2.0 / 0.3).abs() < 1e-6);
        assert_eq!((t.qmph(1), t.qmph(2)), (t.qmph_query_time, t.qmph_wall));
    }

    #[test]
    fn the_table_has_a_line_per_query() {
        let text = table(&queries(&[record(1, 0, 100, false), record(12, 100, 200, true)]));
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("Q12") && text.contains("100.000"), "{text}");
    }
}
