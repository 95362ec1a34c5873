//! Percentiles, medians, and the steadiness of a second-by-second series.

use std::collections::BTreeMap;
use std::str::FromStr;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies in ns, kept with three significant digits up to an hour.
pub struct Latencies {
    histogram: Histogram<u64>,
}

const HOUR_NS: u64 = 3_600_000_000_000;

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram =
            Histogram::new_with_bounds(1, HOUR_NS, 3).expect("1 to an hour at three digits are valid bounds");
        Latencies { histogram }
    }
}

impl From<Histogram<u64>> for Latencies {
    /// A histogram of ns with the same bounds, as jobs keep them.
    fn from(histogram: Histogram<u64>) -> Latencies {
        Latencies { histogram }
    }
}

/// Summary of latencies: names and unit as fio's `clat_ns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// How many.
    pub count: u64,
    /// Smallest, ns.
    pub min_ns: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Standard deviation, ns.
    pub stddev_ns: f64,
    /// Half are no longer.
    pub p50_ns: u64,
    /// 90 % are no longer.
    pub p90_ns: u64,
    /// 99 % are no longer.
    pub p99_ns: u64,
    /// 99.9 % are no longer.
    pub p99_9_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

impl Latencies {
    /// Adds one; what is above an hour counts as an hour.
    pub fn add(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }

    /// How many there are in each power of two of microseconds, from the first to the last that
    /// has one: its lower bound in µs (the first also holds what is shorter), and the count.
    pub fn powers_of_two(&self) -> Vec<(u64, u64)> {
        let mut powers = std::collections::BTreeMap::new();
        for value in self.histogram.iter_recorded() {
            let power = (value.value_iterated_to() / 1000).max(1).ilog2();
            *powers.entry(power).or_default() += value.count_at_value();
        }
        let ends = powers.keys().next().zip(powers.keys().next_back());
        let all = ends.into_iter().flat_map(|(first, last)| *first..=*last);
        all.map(|power| (1 << power, powers.get(&power).copied().unwrap_or(0))).collect()
    }

    /// All zero when nothing was added.
    pub fn summary(&self) -> LatencySummary {
        summary(&self.histogram)
    }
}

/// Summary of a histogram of ns; all zero when it is empty.
pub fn summary(h: &Histogram<u64>) -> LatencySummary {
    if h.is_empty() {
        return LatencySummary::default();
    }
    LatencySummary {
        count: h.len(),
        min_ns: h.min(),
        mean_ns: h.mean(),
        stddev_ns: h.stdev(),
        p50_ns: h.value_at_quantile(0.5),
        p90_ns: h.value_at_quantile(0.9),
        p99_ns: h.value_at_quantile(0.99),
        p99_9_ns: h.value_at_quantile(0.999),
        max_ns: h.max(),
    }
}

/// Percentiles that fio prints when none are asked for.
const FIO_PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Percentiles to be shown (fio: `percentile_list`): `50:99:99.9`.
#[derive(Debug, Clone, PartialEq)]
pub struct PercentileList(pub Vec<f64>);

impl FromStr for PercentileList {
    type Err = String;

    fn from_str(text: &str) -> Result<PercentileList, String> {
        let one = |part: &str| match part.trim().parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
            _ => Err(format!("{part:?} is no percentile: write numbers above 0 up to 100, as 50:99:99.9")),
        };
        let mut list = text.split([':', ',']).map(one).collect::<Result<Vec<f64>, String>>()?;
        list.sort_by(f64::total_cmp);
        list.dedup();
        match list.len() {
            1..=20 => Ok(PercentileList(list)),
            many => Err(format!("{many} percentiles: as fio, 20 at most")),
        }
    }
}

/// The name of a percentile in JSON, as fio's: `99.900000`.
pub fn percentile_key(percent: f64) -> String {
    format!("{percent:.6}")
}

/// fio's percentiles and the `asked` ones, in ns, by their names; empty when nothing was measured.
pub fn percentiles(h: &Histogram<u64>, asked: &[f64]) -> BTreeMap<String, u64> {
    let all = FIO_PERCENTILES.iter().chain(asked).filter(|_| !h.is_empty());
    all.map(|percent| (percentile_key(*percent), h.value_at_quantile(percent / 100.0))).collect()
}

/// How many latencies lie in each power of two, from the smallest one to the largest: lower bound
/// in ns, and how many.
pub fn log2_buckets(h: &Histogram<u64>) -> Vec<(u64, u64)> {
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    for recorded in h.iter_recorded() {
        let lower = 1u64 << recorded.value_iterated_to().max(1).ilog2();
        while buckets.last().is_some_and(|(last, _)| *last < lower / 2) {
            let next = buckets[buckets.len() - 1].0 * 2;
            buckets.push((next, 0));
        }
        match buckets.last_mut() {
            Some((last, count)) if *last == lower => *count += recorded.count_at_value(),
            _ => buckets.push((lower, recorded.count_at_value())),
        }
    }
    buckets
}

/// Buckets as rows of text with bars, as bpftrace's `hist`; the longest bar is of 40 signs.
pub fn log2_rows(buckets: &[(u64, u64)], show: impl Fn(u64) -> String) -> Vec<String> {
    const LONGEST: u64 = 40;
    let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let row = |(lower, count): &(u64, u64)| {
        let range = format!("[{}, {})", show(*lower), show(lower * 2));
        let bar = "@".repeat((count * LONGEST).div_ceil(most) as usize);
        format!("{range:<22} {count:>9} |{bar:<40}|")
    };
    buckets.iter().map(row).collect()
}

/// The middle value, or the mean of the two in the middle; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => None,
        _ if n.is_multiple_of(2) => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
        _ => Some(sorted[n / 2]),
    }
}

/// Spread of a series: how unsteady it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many values.
    pub count: usize,
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation (of the sample) divided by the mean; 0 for fewer than two values.
    pub variation: f64,
}

/// The spread of `values`; all zero when there are none.
pub fn spread(values: &[f64]) -> Spread {
    let n = values.len();
    if n == 0 {
        return Spread::default();
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let deviation = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
    Spread {
        count: n,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        mean,
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        variation: if mean > 0.0 { deviation / mean } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_row() {
        let mut all = Latencies::default();
        let mut rest = Latencies::default();
        (1..=500).for_each(|n| all.add(n * 1000));
        (501..=1000).for_each(|n| rest.add(n * 1000));
        all.merge(&rest);
        let s = all.summary();
        assert_eq!(s.count, 1000);
        for (got, wanted) in [(s.p50_ns, 500e3), (s.p90_ns, 900e3), (s.p99_ns, 990e3), (s.p99_9_ns, 999e3)] {
            assert!((got as f64 / wanted - 1.0).abs() < 0.002, "{got} is not {wanted}");
        }
        assert!((s.mean_ns / 500_500.0 - 1.0).abs() < 0.002 && (s.max_ns as f64 / 1e6 - 1.0).abs() < 0.002);
        assert_eq!(Latencies::default().summary(), LatencySummary::default());
    }

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut h = Latencies::default().histogram;
        values.iter().for_each(|ns| h.saturating_record(*ns));
        h
    }

    #[test]
    fn percentiles_are_fio_s_and_the_asked_ones() {
        let h = histogram(&(1..=1000).map(|n| n * 1000).collect::<Vec<_>>());
        let all = percentiles(&h, &[99.0, 33.3]);
        assert_eq!(all.len(), FIO_PERCENTILES.len() + 1);
        for (key, wanted) in [("1.000000", 10e3), ("33.300000", 333e3), ("99.990000", 1000e3)] {
            assert!((all[key] as f64 / wanted - 1.0).abs() < 0.002, "{key}: {}", all[key]);
        }
        assert!(percentiles(&histogram(&[]), &[50.0]).is_empty());
        let list: PercentileList = "99.9:50,99:50".parse().unwrap();
        assert_eq!(list.0, [50.0, 99.0, 99.9]);
        for wrong in ["", "0", "101", "50:x", "nan"] {
            assert!(wrong.parse::<PercentileList>().unwrap_err().contains("50:99:99.9"), "{wrong}");
        }
    }

    #[test]
    fn every_latency_is_in_the_power_of_two_that_holds_it() {
        let values = [1, 1023, 1024, 2047, 2048, 3000, 4095, 40_000, 65_535, 65_536, 131_071];
        let mut wanted = BTreeMap::new();
        values.iter().for_each(|ns: &u64| *wanted.entry(1u64 << ns.ilog2()).or_insert(0) += 1);
        let buckets = log2_buckets(&histogram(&values));
        let filled: BTreeMap<u64, u64> = buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, wanted);
        assert_eq!(buckets.len(), 17, "from 1 to 64 Ki, the empty ones too: {buckets:?}");
        assert!(buckets.windows(2).all(|pair| pair[1].0 == 2 * pair[0].0));
        let rows = log2_rows(&[(1024, 80), (2048, 0), (4096, 1)], |ns| ns.to_string());
        assert_eq!(rows[0].matches('@').count(), 40);
        assert!(rows[0].starts_with("[1024, 2048) ") && !rows[1].contains('@'), "{rows:?}");
        assert_eq!(rows[2].matches('@').count(), 1, "one of many is seen");
        assert_eq!(log2_buckets(&histogram(&[])), []);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn spread_of_a_series() {
        let s = spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((s.count, s.min, s.mean, s.max), (8, 2.0, 5.0, 9.0));
        assert!((s.variation - (32.0f64 / 7.0).sqrt() / 5.0).abs() < 1e-12);
        assert_eq!(spread(&[5.0]).variation, 0.0);
        assert_eq!(spread(&[]), Spread::default());
    }
}
