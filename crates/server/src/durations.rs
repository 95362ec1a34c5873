//! How long requests took, by kind: histograms for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Kinds of requests that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    Query,
    Update,
    Graph,
    /// beside the server, over its socket
    Command,
}

impl RequestKind {
    const ALL: [Self; 4] = [Self::Query, Self::Update, Self::Graph, Self::Command];

    /// Its name in metrics and lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Update => "update",
            Self::Graph => "graph",
            Self::Command => "command",
        }
    }
}

/// Upper bounds, in microseconds: 1, 2, 5 in each decade from 100 µs to 100 s.
const BOUNDS_US: [u64; 19] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
];

/// The times of one kind. The last count is of those beyond all bounds.
#[derive(Default)]
struct Histogram {
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// The histograms of all kinds.
#[derive(Default)]
pub struct Durations([Histogram; RequestKind::ALL.len()]);

impl Durations {
    /// Adds a request: the time from its turn to the last byte that the client took, or of a change
    /// of a graph to its commit.
    pub fn add(&self, kind: RequestKind, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let histogram = &self.0[kind as usize];
        histogram.counts[BOUNDS_US.partition_point(|bound| *bound < us)].fetch_add(1, Ordering::Relaxed);
        histogram.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// In the text format of Prometheus.
    pub fn prometheus(&self, out: &mut String) {
        const NAME: &str = "snowmelt_request_duration_seconds";
        let mut line = |text: std::fmt::Arguments<'_>| {
            out.write_fmt(text).and_then(|()| out.write_str("\n")).expect("a string takes all");
        };
        line(format_args!("# HELP {NAME} from a request's turn to the end of its answer"));
        line(format_args!("# TYPE {NAME} histogram"));
        for kind in RequestKind::ALL {
            let (histogram, name) = (&self.0[kind as usize], kind.name());
            let mut below = 0;
            for (count, bound) in histogram.counts.iter().zip(BOUNDS_US) {
                below += count.load(Ordering::Relaxed);
                let seconds = bound as f64 / 1e6;
                line(format_args!("{NAME}_bucket{{kind=\"{name}\",le=\"{seconds}\"}} {below}"));
            }
            below += histogram.counts[BOUNDS_US.len()].load(Ordering::Relaxed);
            line(format_args!("{NAME}_bucket{{kind=\"{name}\",le=\"+Inf\"}} {below}"));
            let seconds = histogram.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
            line(format_args!("{NAME}_sum{{kind=\"{name}\"}} {seconds}"));
            line(format_args!("{NAME}_count{{kind=\"{name}\"}} {below}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up() {
        let durations = Durations::default();
        for us in [99, 100, 101, 70_000, 500_000_000] {
            durations.add(RequestKind::Update, Duration::from_micros(us));
        }
        let mut text = String::new();
        durations.prometheus(&mut text);
        let of = |what: &str| {
            let name = format!("snowmelt_request_duration_seconds_{what} ");
            text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("{what}: {text}"))
        };
        for (bound, below) in [("0.0001", "2"), ("0.0002", "3"), ("0.05", "3"), ("0.1", "4"), ("100", "4")] {
            assert_eq!(of(&format!("bucket{{kind=\"update\",le=\"{bound}\"}}")), below, "{bound}");
        }
        assert_eq!(of("bucket{kind=\"update\",le=\"+Inf\"}"), "5");
        assert_eq!(of("count{kind=\"update\"}"), "5");
        assert_eq!(of("count{kind=\"query\"}"), "0");
    }
}
