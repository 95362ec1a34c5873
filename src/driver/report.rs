//! What a run of mixes amounts to: query mixes per hour, and per query the counts and times that BSBM defines.

use serde::Serialize;

use super::{Record, by_query};

/// Figures of one query of the mix. Times in seconds.
#[derive(Debug, Serialize)]
pub struct QueryReport {
    /// number in the use case
    pub number: u32,
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

/// The throughput of a run that took `wall_s` seconds.
pub fn throughput(records: &[Record], wall_s: f64) -> Throughput {
    let mixes = records.iter().filter(|r| r.ends_mix).count() as f64;
    let busy_s: f64 = records.iter().map(seconds).sum();
    let per_hour = |s: f64| if s > 0.0 { 3600.0 * mixes / s } else { 0.0 };
    Throughput { qmph_query_time: per_hour(busy_s), qmph_wall: per_hour(wall_s) }
}

/// Figures per query number.
pub fn queries(records: &[Record]) -> Vec<QueryReport> {
    by_query(records).into_iter().map(|(number, group)| query(number, &group)).collect()
}

fn seconds(record: &Record) -> f64 {
    (record.end_ns - record.start_ns) as f64 / 1e9
}

fn query(number: u32, group: &[&Record]) -> QueryReport {
    let n = group.len() as f64;
    let times = || group.iter().map(|r| seconds(r));
    let rows = || group.iter().map(|r| r.rows);
    QueryReport {
        number,
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

/// Completed queries per interval of the run, from its first start.
pub fn per_interval(records: &[Record], from_ns: u64, interval_ns: u64) -> Vec<u64> {
    let mut buckets = Vec::new();
    for record in records {
        let bucket = (record.end_ns.saturating_sub(from_ns) / interval_ns) as usize;
        if buckets.len() <= bucket {
            buckets.resize(bucket + 1, 0);
        }
        buckets[bucket] += 1;
    }
    buckets
}

/// When the rate first reached `share` of `full` (both in queries per second) and held it over `window` intervals:
/// seconds from the start to the end of the first interval of that window. `None` when it never did.
pub fn seconds_to_share(buckets: &[u64], interval_s: f64, full: f64, share: f64, window: usize) -> Option<f64> {
    let need = full * share * interval_s * window as f64;
    let reached = |w: &[u64]| w.iter().sum::<u64>() as f64 >= need;
    buckets.windows(window).position(reached).map(|i| (i + 1) as f64 * interval_s)
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
            ends_mix,
            failed: None,
        }
    }

    #[test]
    fn both_definitions_of_throughput() {
        // Two clients, one mix each of two queries; 400 ms of query time in 300 ms of wall time.
        let records =
            [record(1, 0, 100, false), record(2, 100, 200, true), record(1, 50, 150, false), record(2, 200, 300, true)];
        let t = throughput(&records, 0.3);
        assert!((t.qmph_query_time - 3600.0 * 2.0 / 0.4).abs() < 1e-6);
        assert!((t.qmph_wall - 3600.0 * 2.0 / 0.3).abs() < 1e-6);
        let q = queries(&records);
        assert_eq!((q.len(), q[0].count, q[1].max_rows), (2, 2, 300));
        assert!((q[0].aqet - 0.1).abs() < 1e-9);
        assert_eq!(q[0].digest, format!("{:016x}", 2));
    }

    #[test]
    fn time_to_full_speed() {
        let buckets = [1, 2, 9, 3, 10, 10, 10];
        assert_eq!(seconds_to_share(&buckets, 1.0, 10.0, 0.9, 1), Some(3.0));
        assert_eq!(seconds_to_share(&buckets, 1.0, 10.0, 0.9, 2), Some(5.0));
        assert_eq!(seconds_to_share(&buckets, 1.0, 20.0, 0.9, 2), None);
    }
}
