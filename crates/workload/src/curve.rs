//! Throughput over time, and the moment full speed was reached.
//!
//! A run is a list of completions, each with a weight: 1 per query, or its modelled processor
//! time. Full speed is reached at the start of the first *stretch* of a number of consecutive
//! completions that were done at the wanted rate or faster. The stretch is counted in
//! completions, not in seconds, so that one number fits a disk and a flash drive.

/// Full speed is this share of the warm rate.
pub const FULL: f64 = 0.9;

/// Completions in the order of their time.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Start of the run, in nanoseconds of its clock.
    from_ns: u64,
    /// Time and weight of each completion, by time.
    done: Vec<(u64, f64)>,
}

impl Curve {
    /// The curve of a run that started at `from_ns`; completions in any order.
    pub fn new(from_ns: u64, completions: impl Iterator<Item = (u64, f64)>) -> Self {
        let mut done: Vec<_> = completions.collect();
        done.sort_by_key(|completion| completion.0);
        Self { from_ns, done }
    }

    /// Moves the start of the run to an earlier moment: a cold start includes the opening of the
    /// database.
    pub fn starts_at(&mut self, from_ns: u64) {
        self.from_ns = from_ns;
    }

    /// Seconds from the start to the last completion.
    pub fn seconds(&self) -> f64 {
        self.done.last().map_or(0.0, |last| self.since_start(last.0))
    }

    /// Sum of all weights.
    pub fn total(&self) -> f64 {
        self.done.iter().map(|completion| completion.1).sum()
    }

    /// Weight per second in intervals of `interval_s`, from the start; the last, cut one is
    /// left out unless it is the only one.
    pub fn rates(&self, interval_s: f64) -> Vec<f64> {
        let whole = ((self.seconds() / interval_s) as usize).max(1);
        let mut rates = vec![0.0; whole];
        for &(at, weight) in &self.done {
            if let Some(rate) = rates.get_mut((self.since_start(at) / interval_s) as usize) {
                *rate += weight / interval_s;
            }
        }
        rates
    }

    /// Mean weight per second of the last `completions`: the speed at which a run ended.
    pub fn final_rate(&self, completions: usize) -> f64 {
        let n = completions.min(self.done.len().saturating_sub(1));
        if n == 0 {
            return 0.0;
        }
        let tail = &self.done[self.done.len() - n..];
        let begun = self.done[self.done.len() - n - 1].0;
        rate(tail, begun)
    }

    /// Seconds from the start of the run to the start of the first stretch of `completions`
    /// done at `wanted` weight per second or faster. `None` when there was none.
    pub fn seconds_to(&self, wanted: f64, completions: usize) -> Option<f64> {
        assert!(completions > 0, "a stretch has completions");
        let begins = |i: usize| if i == 0 { self.from_ns } else { self.done[i - 1].0 };
        let fast = |&(i, stretch): &(usize, &[(u64, f64)])| rate(stretch, begins(i)) >= wanted;
        self.done.windows(completions).enumerate().find(fast).map(|(i, _)| self.since_start(begins(i)))
    }

    fn since_start(&self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}

/// Weight per second of completions since `begun`.
fn rate(completions: &[(u64, f64)], begun: u64) -> f64 {
    let weight: f64 = completions.iter().map(|completion| completion.1).sum();
    let end = completions.last().map_or(begun, |last| last.0);
    weight / (end.saturating_sub(begun).max(1) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// One completion a second for ten seconds, then ten a second for two.
    fn warming() -> Curve {
        let slow = (1..=10).map(|i| (100 * S + i * S, 1.0));
        let fast = (1..=20).map(|i| (110 * S + i * S / 10, 1.0));
        Curve::new(100 * S, fast.chain(slow))
    }

    #[test]
    fn full_speed_is_where_the_first_fast_stretch_starts() {
        let curve = warming();
        assert_eq!(curve.seconds_to(9.0, 10), Some(10.0));
        assert_eq!(curve.seconds_to(0.9, 10), Some(0.0));
        assert_eq!(curve.seconds_to(11.0, 10), None);
        assert_eq!(curve.seconds_to(9.0, 21), None, "one slow completion is in every stretch of 21");
        assert_eq!(curve.seconds_to(1.0, 100), None, "there are not so many");
    }

    #[test]
    fn rates_per_interval() {
        let curve = warming();
        let rates = curve.rates(1.0);
        assert_eq!(rates.len(), 12);
        assert_eq!(rates[5], 1.0);
        assert!((rates[11] - 10.0).abs() < 1.5, "{rates:?}");
        assert_eq!(curve.total(), 30.0);
        assert!((curve.final_rate(10) - 10.0).abs() < 1e-9);
        assert_eq!(curve.seconds(), 12.0);
    }

    #[test]
    fn an_empty_run_has_no_speed() {
        let curve = Curve::new(5, std::iter::empty());
        assert_eq!((curve.seconds(), curve.total(), curve.final_rate(5)), (0.0, 0.0, 0.0));
        assert_eq!(curve.seconds_to(0.0, 1), None);
    }
}
