//! Distributions of times, in nanoseconds.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A distribution of times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Values recorded.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// Nine of ten are at most this.
    pub p90_ns: u64,
    /// 99 of 100 are at most this.
    pub p99_ns: u64,
    /// 999 of 1000 are at most this.
    pub p999_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Latency {
    pub(crate) fn from_histogram(histogram: &Histogram<u64>) -> Latency {
        Latency {
            count: histogram.len(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}

/// A histogram of latencies that threads share.
pub struct LatencyMeter(parking_lot::Mutex<Histogram<u64>>);

impl Default for LatencyMeter {
    fn default() -> Self {
        // Up to a minute, to three digits.
        let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are sound");
        LatencyMeter(parking_lot::Mutex::new(histogram))
    }
}

impl LatencyMeter {
    /// Counts a latency; longer than a minute counts as a minute.
    pub fn record(&self, ns: u64) {
        self.0.lock().saturating_record(ns);
    }

    /// Distribution of the latencies counted so far.
    pub fn read(&self) -> Latency {
        Latency::from_histogram(&self.0.lock())
    }
}

/// Times from 1 ns to 1000 s, longer ones counted as that, with two significant digits: 33 kB.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1_000_000_000_000, 2).expect("valid bounds and precision")
}
