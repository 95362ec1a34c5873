//! The course of a warm-up: intervals of counters, and completions of queries.
//!
//! Times are seconds since its beginning. An interval that is less than half as long as the one
//! before it in its phase becomes a part of that: rates over a few milliseconds say nothing.

use serde::Serialize;

use snowmelt_workload::drive::Run;
use snowmelt_workload::sampler::Sample;

/// Sums over one interval. `None` where the target does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// Its begin.
    pub begin_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Processor seconds of the server.
    pub cpu_s: Option<f64>,
    /// Queries completed.
    pub queries: f64,
    /// Bytes read from storage.
    pub bytes: Option<f64>,
    /// Pages read from storage.
    pub pages: Option<f64>,
    /// Seconds of I/O wait.
    pub wait_s: Option<f64>,
}

/// A query that was completed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Completion {
    /// When.
    pub at_s: f64,
    /// Its execution time.
    pub seconds: f64,
    /// Its number in the use case.
    pub query: u32,
    /// It was the last one of its mix.
    pub ends_mix: bool,
}

/// Intervals without gaps worth mentioning, and completions by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// By time.
    pub intervals: Vec<Interval>,
    /// By time.
    pub done: Vec<Completion>,
}

impl Interval {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.end_s - self.begin_s
    }

    /// Processors busy for the server.
    pub fn cpus(&self) -> Option<f64> {
        self.per_second(self.cpu_s)
    }

    /// Queries per second.
    pub fn rate(&self) -> f64 {
        self.queries / self.seconds().max(1e-9)
    }

    /// A sum over it, per second.
    pub fn per_second(&self, sum: Option<f64>) -> Option<f64> {
        Some(sum? / self.seconds().max(1e-9))
    }

    /// Of a sample that was taken in a phase that began at `offset_s`.
    pub fn new(sample: &Sample, offset_s: f64, queries_per_mix: usize) -> Self {
        let sum = |rate: Option<f64>| Some(rate? * sample.length_s);
        let end_s = offset_s + sample.end_s;
        Self {
            begin_s: end_s - sample.length_s,
            end_s,
            cpu_s: sum(sample.cpus),
            queries: sample.qmph / 3600.0 * queries_per_mix as f64 * sample.length_s,
            bytes: sum(sample.bytes),
            pages: sum(sample.pages),
            wait_s: sum(sample.io_wait),
        }
    }

    fn take_in(&mut self, next: &Interval) {
        let plus = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        *self = Interval {
            begin_s: self.begin_s,
            end_s: next.end_s,
            cpu_s: plus(self.cpu_s, next.cpu_s),
            queries: self.queries + next.queries,
            bytes: plus(self.bytes, next.bytes),
            pages: plus(self.pages, next.pages),
            wait_s: plus(self.wait_s, next.wait_s),
        };
    }
}

impl Course {
    /// Adds a phase that was sampled; `begun_ns` is the beginning of the whole course on the clock
    /// of the run.
    pub fn add_phase(&mut self, begun_ns: u64, run: &Run, samples: &[Sample], queries_per_mix: usize) {
        let since = |ns: u64| ns.saturating_sub(begun_ns) as f64 / 1e9;
        let offset_s = since(run.from_ns);
        let first = self.intervals.len();
        for sample in samples {
            let next = Interval::new(sample, offset_s, queries_per_mix);
            match self.intervals[first..].last_mut() {
                Some(last) if next.seconds() < last.seconds() / 2.0 => last.take_in(&next),
                _ => self.intervals.push(next),
            }
        }
        let completion = |record: &snowmelt_workload::drive::Record| Completion {
            at_s: since(record.end_ns),
            seconds: record.seconds(),
            query: record.number,
            ends_mix: record.ends_mix,
        };
        self.done.extend(run.records.iter().map(completion));
        self.done.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    }

    /// The sum of something from the beginning to a moment; inside an interval, its part.
    pub fn sum_until(&self, at_s: f64, of: impl Fn(&Interval) -> Option<f64>) -> Option<f64> {
        let part = |interval: &Interval| {
            let inside = (at_s - interval.begin_s) / interval.seconds().max(1e-9);
            Some(of(interval)? * inside.clamp(0.0, 1.0))
        };
        let begun = self.intervals.iter().take_while(|interval| interval.begin_s < at_s);
        begun.map(part).try_fold(0.0, |sum, part| Some(sum + part?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_workload::drive::Record;

    fn sample(end_s: f64, length_s: f64, cpus: f64) -> Sample {
        Sample { end_s, length_s, qmph: 3600.0, cpus: Some(cpus), bytes: Some(100.0), ..Sample::default() }
    }

    #[test]
    fn phases_follow_each_other_and_short_ends_are_taken_in() {
        const S: u64 = 1_000_000_000;
        let record = |end_ns| Record { number: 3, due_ns: end_ns - S / 2, end_ns, ..Record::default() };
        let first = Run {
            from_ns: 11 * S,
            to_ns: 13 * S,
            records: vec![record(13 * S), record(12 * S)],
            ..Run::default()
        };
        let second = Run { from_ns: 14 * S, to_ns: 15 * S, records: vec![record(15 * S)], ..Run::default() };
        let mut course = Course::default();
        course.add_phase(10 * S, &first, &[sample(1.0, 1.0, 2.0), sample(1.25, 0.25, 1.0)], 25);
        course.add_phase(10 * S, &second, &[sample(0.125, 0.125, 4.0)], 25);
        let times: Vec<_> = course.intervals.iter().map(|i| (i.begin_s, i.end_s)).collect();
        assert_eq!(times, [(1.0, 2.25), (4.0, 4.125)], "a short interval stays where it is alone");
        assert!((course.intervals[0].cpu_s.unwrap() - 2.25).abs() < 1e-9);
        assert!((course.intervals[0].queries - 31.25).abs() < 1e-9, "25 each second");
        assert_eq!(course.intervals[0].pages, None);
        let at: Vec<_> = course.done.iter().map(|done| done.at_s).collect();
        assert_eq!((at, course.done[0].seconds), (vec![2.0, 3.0, 5.0], 0.5));
        let bytes = |at_s| course.sum_until(at_s, |interval| interval.bytes).unwrap();
        let sums = [0.5, 1.625, 3.0, 9.0].map(bytes);
        assert_eq!(sums, [0.0, 62.5, 125.0, 137.5]);
        assert_eq!(course.sum_until(9.0, |interval| interval.pages), None, "absent, not zero");
    }
}
