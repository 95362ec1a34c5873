//! Warming as a defined quantity: the time at which a cold server is warm, and its cost.
//!
//! 1. `course`: intervals of counters and completions of queries, of the warm-up and of the
//!    measured mixes that follow it without a pause.
//! 2. `rule`: the rules by which it is warm. The plateau that one of them needs is the server's
//!    processor use in the measured mixes.
//! 3. This file: figures from both. `doubt`: reasons not to trust them. `text` and `page` show
//!    them.
//! 4. `server`: counters of a server's processes; `meters`: what a Snowmelt server tells itself.
//!
//! Figures that a target does not provide are absent.

pub mod course;
mod doubt;
pub mod meters;
mod page;
pub mod rule;
pub mod server;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use snowmelt_store::{PAGE_BYTES, Store, SystemStatistics, TimeSource};

use course::{Completion, Course, Interval};
use rule::{SteadyLimit, WarmRule};
use snowmelt_workload::curve::Curve;
use snowmelt_workload::sampler::{Sample, is_steady};

/// Shares of the warm throughput, in percent, for which a time is reported.
const SHARES: [u32; 3] = [50, 90, 100];

/// Semi-warm: the server's processor use is between these shares of its plateau. Around 400 of
/// 1350 % in the warm-up that was published.
const SEMI_WARM: std::ops::RangeInclusive<f64> = 0.15..=0.45;

/// Samples whose mean stands for the plateau until that is known.
const LAST_SAMPLES: usize = 5;

/// The rules of a run. Where a steady state is given, only that counts; otherwise the first of the
/// other two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmRules {
    /// Share of the plateau of the server's processor use.
    pub target_cpu: f64,
    /// How long, and the window of the steady state.
    pub stretch_s: f64,
    /// Query mixes.
    pub mixes: u64,
    /// A steady state.
    pub steady: Option<SteadyLimit>,
}

impl WarmRules {
    /// Those of the published warm-up.
    pub const PUBLISHED: WarmRules =
        WarmRules { target_cpu: 0.889, stretch_s: 20.0, mixes: 2000, steady: None };

    /// The rules, when the plateau is known or known to be absent.
    pub fn all(&self, plateau_cpus: Option<f64>) -> Vec<WarmRule> {
        let Self { target_cpu: share, stretch_s, mixes, steady } = *self;
        if let Some(limit) = steady {
            return vec![WarmRule::Steady { window_s: stretch_s, limit }];
        }
        let by_cpu = |plateau_cpus| WarmRule::TargetCpu { share, stretch_s, plateau_cpus };
        plateau_cpus.map(by_cpu).into_iter().chain([WarmRule::Mixes(mixes)]).collect()
    }

    /// Mixes after which a warm-up is over whatever else holds; with a steady state there are none.
    pub fn most_mixes(&self) -> u64 {
        if self.steady.is_some() { u64::MAX } else { self.mixes }
    }

    /// True when a warm-up can end. The plateau is not known yet: once throughput is steady, the
    /// processor use of the last samples stands for it.
    pub fn seem_kept(&self, samples: &[Sample], queries_per_mix: usize) -> bool {
        let interval = |sample: &Sample| Interval::new(sample, 0.0, queries_per_mix);
        let course = Course { intervals: samples.iter().map(interval).collect(), done: Vec::new() };
        if let Some(limit) = self.steady {
            return WarmRule::Steady { window_s: self.stretch_s, limit }.held_s(&course).is_some();
        }
        if !is_steady(samples) {
            return false;
        }
        let queries: f64 = course.intervals.iter().map(|interval| interval.queries).sum();
        if queries >= self.mixes as f64 * queries_per_mix as f64 {
            return true;
        }
        let last = &course.intervals[course.intervals.len().saturating_sub(LAST_SAMPLES)..];
        self.all(mean_cpus(last)).iter().any(|rule| rule.held_s(&course).is_some())
    }
}

/// Facts about a warm-up beside its course.
#[derive(Clone, Debug, Default)]
pub struct WarmUpFacts {
    /// Clients.
    pub clients: usize,
    /// Processors that the server could use.
    pub processors: usize,
    /// Pages that queries used, in the warm-up and in the measured mixes.
    pub working_set: Option<WorkingSet>,
    /// Pages read ahead, and those of them that were used.
    pub read_ahead: Option<(u64, u64)>,
    /// The rate at which the storage can deliver.
    pub bandwidth: Option<Bandwidth>,
    /// The I/O wait that is counted, in words.
    pub io_wait: String,
    /// Where the server's counters come from, in words.
    pub server: String,
}

/// A rate at which storage can deliver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Bytes per second, all devices together.
    pub bytes_per_s: f64,
    /// Its source, in words.
    pub source: &'static str,
}

impl Bandwidth {
    /// As it was given.
    pub fn given(bytes_per_s: f64) -> Self {
        Self { bytes_per_s, source: "as given" }
    }

    /// Of all stripes together, by the profiles of their devices or by models of their kinds.
    pub fn of_store(store: &Store) -> Option<Self> {
        let page_us = store.page_times().page_us;
        let assumed = |stripe: &SystemStatistics| stripe.multi.source == TimeSource::Assumed;
        let source = match store.system_statistics().iter().any(assumed) {
            true => "by the model of its kind of device, which was not probed",
            false => "as its device was probed",
        };
        (page_us > 0.0).then(|| Self { bytes_per_s: PAGE_BYTES as f64 / (page_us / 1e6), source })
    }
}

/// Pages that queries used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorkingSet {
    /// Pages.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Each was counted once: none had to leave the memory.
    pub is_exact: bool,
    /// Pages that may be missing: read ahead in the warm-up, and not used before its end.
    pub missing_at_most: u64,
}

/// A rule, and when it first held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleHeld {
    /// In words.
    pub rule: WarmRule,
    /// Seconds since the beginning.
    pub held_s: Option<f64>,
}

/// A share of the warm throughput, and when it was first reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareReached {
    /// The share.
    pub percent: u32,
    /// Seconds since the beginning, to the start of the first second's worth of queries that ran at
    /// this rate.
    pub seconds: Option<f64>,
    /// Bytes read until then.
    pub bytes: Option<f64>,
}

/// Sums until a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadUntil {
    /// The moment: when it was warm, or else the end of the warm-up.
    pub at_s: f64,
    /// Bytes read.
    pub bytes: Option<f64>,
    /// Pages read.
    pub pages: Option<f64>,
    /// Seconds of I/O wait.
    pub wait_s: Option<f64>,
}

/// A query while the server was semi-warm, beside the same query when it was warm. Its throughput
/// is the benchmark's: executions per second of its own time, so one over its mean time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SemiWarm {
    /// Its number.
    pub query: u32,
    /// Executions that ended while the server was semi-warm.
    pub runs: usize,
    /// Their mean time.
    pub seconds: Option<f64>,
    /// The mean time when warm.
    pub warm_seconds: Option<f64>,
    /// Throughput when semi-warm ÷ when warm.
    pub share: Option<f64>,
}

/// The least time, and how often it fits into the real ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ideal {
    /// The rate of the storage.
    pub bandwidth: Bandwidth,
    /// Bytes of the working set ÷ bandwidth.
    pub seconds: f64,
    /// Time until a rule held ÷ that.
    pub warm_ratio: Option<f64>,
    /// Time to 90 % of the warm throughput ÷ that.
    pub ninety_ratio: Option<f64>,
}

/// Findings of a warm-up. Times are seconds since its beginning.
#[derive(Clone, Debug, Serialize)]
pub struct WarmUp {
    /// The rules.
    pub rules: Vec<RuleHeld>,
    /// When the first of them held.
    pub warm_s: Option<f64>,
    /// Mixes of the warm-up.
    pub mixes: usize,
    /// When the measured mixes began.
    pub measured_from_s: f64,
    /// Processors that the server keeps busy when it is warm.
    pub plateau_cpus: Option<f64>,
    /// Queries per second when it is warm.
    pub warm_rate: f64,
    /// Times to shares of that.
    pub reached: Vec<ShareReached>,
    /// Reads until it was warm.
    pub read: ReadUntil,
    /// Pages that queries used.
    pub working_set: Option<WorkingSet>,
    /// Bytes read until it was warm ÷ those of the working set.
    pub read_ratio: Option<f64>,
    /// Share of the pages read ahead that were used.
    pub read_ahead_used: Option<f64>,
    /// By query.
    pub queries: Vec<SemiWarm>,
    /// The least time.
    pub ideal: Option<Ideal>,
    /// The I/O wait that is counted, in words.
    pub io_wait: String,
    /// Where the server's counters come from, in words.
    pub server: String,
    /// Second by second.
    pub seconds: Vec<WarmSecond>,
    /// Reasons to doubt these figures.
    pub doubts: Vec<String>,
}

/// An interval, as rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WarmSecond {
    /// Its end.
    pub end_s: f64,
    /// Queries per second.
    pub rate: f64,
    /// Processors busy for the server.
    pub cpus: Option<f64>,
    /// Bytes per second.
    pub bytes: Option<f64>,
    /// Pages per second.
    pub pages: Option<f64>,
    /// Seconds of I/O wait per second.
    pub io_wait: Option<f64>,
}

impl WarmUp {
    /// Figures of a course whose measured mixes began at `measured_from_s`.
    pub fn new(course: &Course, measured_from_s: f64, rules: &WarmRules, facts: WarmUpFacts) -> Self {
        let (before, warm) = split(course, measured_from_s);
        let plateau_cpus = mean_cpus(&warm.intervals);
        let warm_rate = rate_since(&warm.done, measured_from_s);
        let rules: Vec<RuleHeld> = rules
            .all(plateau_cpus)
            .into_iter()
            .map(|rule| RuleHeld { rule, held_s: rule.held_s(course) })
            .collect();
        let warm_s = rules.iter().filter_map(|rule| rule.held_s).reduce(f64::min);
        let reached = reached(course, warm_rate);
        let read = ReadUntil::new(course, warm_s.unwrap_or(measured_from_s));
        let WarmUpFacts { working_set, bandwidth, .. } = facts;
        let ninety_s = reached.iter().find(|share| share.percent == 90).and_then(|share| share.seconds);
        let mut warm_up = Self {
            rules,
            warm_s,
            mixes: before.done.iter().filter(|done| done.ends_mix).count(),
            measured_from_s,
            plateau_cpus,
            warm_rate,
            reached,
            read,
            working_set,
            read_ratio: working_set.and_then(|set| Some(read.bytes? / (set.bytes.max(1) as f64))),
            read_ahead_used: facts
                .read_ahead
                .filter(|(issued, _)| *issued > 0)
                .map(|(issued, used)| used as f64 / issued as f64),
            queries: semi_warm(&before, &warm, plateau_cpus),
            ideal: Ideal::new(working_set, bandwidth, warm_s, ninety_s),
            io_wait: facts.io_wait.clone(),
            server: facts.server.clone(),
            seconds: course.intervals.iter().map(WarmSecond::new).collect(),
            doubts: Vec::new(),
        };
        warm_up.doubts = doubt::doubts(&warm_up, &warm, &facts);
        warm_up
    }
}

impl ReadUntil {
    fn new(course: &Course, at_s: f64) -> Self {
        Self {
            at_s,
            bytes: course.sum_until(at_s, |interval| interval.bytes),
            pages: course.sum_until(at_s, |interval| interval.pages),
            wait_s: course.sum_until(at_s, |interval| interval.wait_s),
        }
    }
}

impl Ideal {
    fn new(
        set: Option<WorkingSet>,
        bandwidth: Option<Bandwidth>,
        warm_s: Option<f64>,
        ninety_s: Option<f64>,
    ) -> Option<Self> {
        let bandwidth = bandwidth?;
        let seconds = set?.bytes as f64 / bandwidth.bytes_per_s;
        let ratio = |took: Option<f64>| took.map(|took| took / seconds).filter(|ratio| ratio.is_finite());
        Some(Self { bandwidth, seconds, warm_ratio: ratio(warm_s), ninety_ratio: ratio(ninety_s) })
    }
}

impl WarmSecond {
    fn new(interval: &Interval) -> Self {
        Self {
            end_s: interval.end_s,
            rate: interval.rate(),
            cpus: interval.cpus(),
            bytes: interval.per_second(interval.bytes),
            pages: interval.per_second(interval.pages),
            io_wait: interval.per_second(interval.wait_s),
        }
    }
}

/// The parts before and after a moment; an interval belongs to the part in which its middle is.
fn split(course: &Course, at_s: f64) -> (Course, Course) {
    let is_before = |interval: &&Interval| f64::midpoint(interval.begin_s, interval.end_s) < at_s;
    let (intervals, warm_intervals) = course.intervals.iter().partition(is_before);
    let (done, warm_done) = course.done.iter().partition(|done| done.at_s <= at_s);
    (Course { intervals, done }, Course { intervals: warm_intervals, done: warm_done })
}

fn mean_cpus(intervals: &[Interval]) -> Option<f64> {
    let busy_s: Option<f64> = intervals.iter().map(|interval| interval.cpu_s).sum();
    let seconds: f64 = intervals.iter().map(Interval::seconds).sum();
    (seconds > 0.0).then_some(busy_s? / seconds)
}

/// Completions per second, by their time order.
fn rate_since(done: &[Completion], from_s: f64) -> f64 {
    done.last().map_or(0.0, |last| done.len() as f64 / (last.at_s - from_s).max(1e-9))
}

fn reached(course: &Course, warm_rate: f64) -> Vec<ShareReached> {
    /// Queries of a stretch at least: fewer are chance.
    const FEWEST: usize = 100;
    let curve = Curve::new(0, course.done.iter().map(|done| ((done.at_s * 1e9) as u64, 1.0)));
    let stretch = (warm_rate as usize).max(FEWEST);
    let share = |percent: u32| {
        let wanted = warm_rate * f64::from(percent) / 100.0;
        let seconds = (warm_rate > 0.0).then(|| curve.seconds_to(wanted, stretch))?;
        seconds.map(|at_s| (at_s, course.sum_until(at_s, |interval| interval.bytes)))
    };
    let of = |percent: u32| {
        let found = share(percent);
        ShareReached {
            percent,
            seconds: found.map(|(seconds, _)| seconds),
            bytes: found.and_then(|(_, bytes)| bytes),
        }
    };
    SHARES.into_iter().map(of).collect()
}

fn semi_warm(before: &Course, warm: &Course, plateau_cpus: Option<f64>) -> Vec<SemiWarm> {
    let is_semi = |interval: &&Interval| {
        let share = interval.cpus().zip(plateau_cpus).map(|(cpus, plateau)| cpus / plateau);
        share.is_some_and(|share| SEMI_WARM.contains(&share))
    };
    let semi: Vec<&Interval> = before.intervals.iter().filter(is_semi).collect();
    let is_in = |done: &&Completion| semi.iter().any(|i| i.begin_s < done.at_s && done.at_s <= i.end_s);
    let semi = by_query(before.done.iter().filter(is_in));
    let warm = by_query(warm.done.iter());
    let mut numbers: Vec<u32> =
        before.done.iter().map(|done| done.query).chain(warm.keys().copied()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mean = |found: Option<&(usize, f64)>| found.map(|(runs, seconds)| seconds / *runs as f64);
    let of = |query: u32| {
        let (seconds, warm_seconds) = (mean(semi.get(&query)), mean(warm.get(&query)));
        SemiWarm {
            query,
            runs: semi.get(&query).map_or(0, |found| found.0),
            seconds,
            warm_seconds,
            share: warm_seconds.zip(seconds).map(|(warm, semi)| warm / semi.max(1e-9)),
        }
    };
    numbers.into_iter().map(of).collect()
}

/// Executions, and the sum of their times, by query.
fn by_query<'a>(done: impl Iterator<Item = &'a Completion>) -> BTreeMap<u32, (usize, f64)> {
    let mut sums: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for one in done {
        let sum = sums.entry(one.query).or_default();
        *sum = (sum.0 + 1, sum.1 + one.seconds);
    }
    sums
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

#[cfg(test)]
mod tests;
