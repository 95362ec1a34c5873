//! Summary of a run: query mixes per hour, and per query the counts and times
//! that BSBM defines.

use std::collections::BTreeMap;

use serde::Serialize;

use snowmelt_base::text_table::TextTable;
use snowmelt_lab::stats::Latencies;
use snowmelt_workload::drive::{Record, Run};
use snowmelt_workload::target::Failure;

/// Figures of one query of the mix. Times in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct QueryReport {
    /// Number in the use case.
    pub query: u32,
    /// executions
    pub count: usize,
    /// executions without an answer
    pub failed: usize,
    /// those of them that were not answered in time
    pub timeouts: usize,
    /// arithmetic mean execution time
    pub aqet: f64,
    /// geometric mean execution time
    pub aqet_geometric: f64,
    /// fastest
    pub min: f64,
    /// slowest
    pub max: f64,
    /// half are no slower
    pub p50: f64,
    /// 90 % are no slower
    pub p90: f64,
    /// 99 % are no slower
    pub p99: f64,
    /// 99.9 % are no slower
    pub p99_9: f64,
    /// solutions or triples: mean
    pub rows: f64,
    /// fewest
    pub min_rows: u64,
    /// most
    pub max_rows: u64,
    /// bytes of the answer: mean
    pub bytes: f64,
    /// fewest
    pub min_bytes: u64,
    /// most
    pub max_bytes: u64,
    /// the sum of all answers' digests: equal for equal answers in any order
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
    /// The throughput of a run. A mix that was cut off at the end counts by its share of queries.
    pub fn new(run: &Run, queries_per_mix: usize) -> Self {
        let mixes = run.records.len() as f64 / queries_per_mix as f64;
        let busy_s: f64 = run.records.iter().map(Record::seconds).sum();
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

/// Times of whole mixes, each the sum of its queries' times. In seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MixTimes {
    /// mixes of which every query was run
    pub mixes: usize,
    /// fastest
    pub min: f64,
    /// slowest
    pub max: f64,
    /// arithmetic mean: the benchmark's CQET
    pub cqet: f64,
    /// geometric mean
    pub cqet_geometric: f64,
    /// all together: the benchmark's total runtime
    pub total: f64,
}

/// Times of the mixes that were run whole.
pub fn mix_times(records: &[Record], queries_per_mix: usize) -> MixTimes {
    let mut mixes: BTreeMap<u64, (usize, f64)> = BTreeMap::new();
    for record in records {
        let mix = mixes.entry(record.mix).or_default();
        *mix = (mix.0 + 1, mix.1 + record.seconds());
    }
    let whole = mixes.into_values().filter(|mix| mix.0 == queries_per_mix);
    let times: Vec<f64> = whole.map(|mix| mix.1).collect();
    if times.is_empty() {
        return MixTimes::default();
    }
    let total: f64 = times.iter().sum();
    MixTimes {
        mixes: times.len(),
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        max: times.iter().copied().fold(0.0, f64::max),
        cqet: total / times.len() as f64,
        cqet_geometric: geometric(times.iter().copied(), times.len()),
        total,
    }
}

fn geometric(times: impl Iterator<Item = f64>, count: usize) -> f64 {
    (times.map(|time| time.max(1e-9).ln()).sum::<f64>() / count as f64).exp()
}

fn query(number: u32, group: &[&Record]) -> QueryReport {
    let n = group.len() as f64;
    let times = || group.iter().map(|r| r.seconds());
    let rows = || group.iter().map(|r| r.rows);
    let bytes = || group.iter().map(|r| r.bytes);
    let mut latencies = Latencies::default();
    group.iter().for_each(|r| latencies.add(r.end_ns.saturating_sub(r.due_ns)));
    let latency = latencies.summary();
    let is_timeout = |r: &&&Record| matches!(r.failed, Some(Failure::Timeout(_)));
    QueryReport {
        query: number,
        count: group.len(),
        failed: group.iter().filter(|r| r.failed.is_some()).count(),
        timeouts: group.iter().filter(is_timeout).count(),
        aqet: times().sum::<f64>() / n,
        aqet_geometric: geometric(times(), group.len()),
        min: times().fold(f64::INFINITY, f64::min),
        max: times().fold(0.0, f64::max),
        p50: latency.p50_ns as f64 / 1e9,
        p90: latency.p90_ns as f64 / 1e9,
        p99: latency.p99_ns as f64 / 1e9,
        p99_9: latency.p99_9_ns as f64 / 1e9,
        rows: rows().sum::<u64>() as f64 / n,
        min_rows: rows().min().unwrap_or(0),
        max_rows: rows().max().unwrap_or(0),
        bytes: bytes().sum::<u64>() as f64 / n,
        min_bytes: bytes().min().unwrap_or(0),
        max_bytes: bytes().max().unwrap_or(0),
        digest: format!("{:016x}", group.iter().map(|r| r.digest).fold(0, u64::wrapping_add)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u32, start_ms: u64, end_ms: u64, ends_mix: bool) -> Record {
        Record {
            number,
            due_ns: start_ms * 1_000_000,
            start_ns: start_ms * 1_000_000,
            end_ns: end_ms * 1_000_000,
            rows: end_ms,
            digest: 1,
            ends_mix,
            ..Record::default()
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
        let run = Run { from_ns: 0, to_ns: 300_000_000, records, ..Run::default() };
        let t = Throughput::new(&run, 2);
        assert!((t.qmph_query_time - 3600.0 * 2.0 / 0.4).abs() < 1e-6);
        assert!((t.qmph_wall - 3600.0 * 2.0 / 0.3).abs() < 1e-6);
        assert_eq!((t.qmph(1), t.qmph(2)), (t.qmph_query_time, t.qmph_wall));
    }

    #[test]
    fn times_of_mixes_are_those_of_whole_ones() {
        let of_mix = |mix, end_ms| Record { mix, ..record(1, 0, end_ms, false) };
        let records =
            [of_mix(1, 100), of_mix(2, 300), of_mix(1, 100), of_mix(3, 7), of_mix(2, 500), of_mix(4, 1)];
        let times = mix_times(&records, 2);
        assert_eq!((times.mixes, times.min, times.max), (2, 0.2, 0.8));
        assert!((times.cqet - 0.5).abs() < 1e-9 && (times.total - 1.0).abs() < 1e-9, "{times:?}");
        assert!((times.cqet_geometric - 0.4).abs() < 1e-9, "the root of 0.2 × 0.8: {times:?}");
        assert_eq!(mix_times(&records, 3), MixTimes::default());
    }

    #[test]
    fn percentiles_and_timeouts_are_those_of_the_records() {
        let mut records: Vec<Record> = (1..=1000).map(|ms| record(1, 0, ms, false)).collect();
        records[0].failed = Some(Failure::Timeout("late".into()));
        records[1].failed = Some(Failure::Broken("cut".into()));
        let q = &queries(&records)[0];
        assert_eq!((q.failed, q.timeouts, q.min, q.max), (2, 1, 0.001, 1.0));
        for (found, exact) in [(q.p50, 0.5), (q.p90, 0.9), (q.p99, 0.99), (q.p99_9, 0.999)] {
            assert!((found / exact - 1.0).abs() < 2e-3, "{found} is not {exact}");
        }
    }

    #[test]
    fn late_starts_count() {
        let late = Record { due_ns: 50_000_000, ..record(1, 100, 150, true) };
        assert_eq!((late.late_ns(), late.seconds()), (50_000_000, 0.1));
        assert!((queries(&[late])[0].aqet - 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_table_has_a_line_per_query() {
        let text = table(&queries(&[record(1, 0, 100, false), record(12, 100, 200, true)]));
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("Q12") && text.contains("100.000"), "{text}");
    }
}
