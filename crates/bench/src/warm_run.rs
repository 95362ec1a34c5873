//! The warm-up of any target from now on. The caller has made it cold before. Then the
//! measured mixes, without a pause.
//!
//! The warm-up ends when its rules seem to hold or its mixes are through. Whether and when they
//! held is decided afterwards, as the plateau is the processor use in the measured mixes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, bail};
use snowmelt_io::Clock;

use crate::measure::{Measured, Streams};
use crate::warm_up::WarmRules;
use crate::warm_up::course::Course;
use snowmelt_workload::drive::{Drive, Mixes, Record, Rules, Run};
use snowmelt_workload::kept::KeptAnswers;
use snowmelt_workload::process::cpu_seconds;
use snowmelt_workload::sampler::{Counts, End, Sample, Sampler};
use snowmelt_workload::target::Target;

/// A warm-up, and the measured mixes after it.
pub struct WarmRun<'a> {
    /// The engine or endpoint.
    pub target: &'a dyn Target,
    /// Its clients.
    pub clients: usize,
    /// How they send queries, in a closed loop.
    pub rules: Rules,
    /// When the target is warm.
    pub warm: WarmRules,
    /// Queries in a mix.
    pub queries_per_mix: usize,
    /// Mixes that count.
    pub mixes: u64,
    /// Keeps answers of the mixes that count.
    pub kept: Option<&'a KeptAnswers>,
    /// Counters of the target.
    pub counts: &'a (dyn Fn() -> Counts + Sync),
    /// Called for each second of the warm-up.
    pub on_sample: &'a (dyn Fn(&Sample) + Sync),
    /// Ends it when set.
    pub stop: &'a AtomicBool,
}

/// Both phases.
pub struct WarmedUp {
    /// The mixes that count.
    pub measured: Measured,
    /// The warm-up and the mixes that count.
    pub course: Course,
    /// When the mixes that count began.
    pub measured_from_s: f64,
}

impl WarmRun<'_> {
    /// Runs it. An interrupted one is an error.
    pub fn run(&self, streams: Streams) -> Result<WarmedUp> {
        let clock = Clock::real();
        let (warm, measured) = streams.apart();
        let begun_ns = clock.now_ns();
        let over = AtomicBool::new(false);
        let mixes = Mixes::new(warm, self.warm.mixes, &[self.stop, &over]);
        let is_end = |samples: &[Sample]| self.warm.seem_kept(samples, self.queries_per_mix);
        let end = End { flag: &over, is_reached: &is_end };
        let (run, samples) = self.drive(&clock, &mixes, Some(end), self.on_sample)?;
        let mut course = Course::default();
        course.add_phase(begun_ns, &run, &samples, self.queries_per_mix);

        let stream = measured.unwrap_or_else(|| mixes.into_stream());
        let before_s = cpu_seconds();
        let mixes = Mixes::new(stream, self.mixes, &[self.stop]);
        let (run, samples) = self.drive(&clock, &mixes, None, &|_| {})?;
        let cpu_s = cpu_seconds() - before_s;
        course.add_phase(begun_ns, &run, &samples, self.queries_per_mix);
        if self.stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        let measured_from_s = run.from_ns.saturating_sub(begun_ns) as f64 / 1e9;
        Ok(WarmedUp { measured: Measured { run, cpu_s }, course, measured_from_s })
    }

    fn drive(
        &self,
        clock: &Clock,
        mixes: &Mixes<'_>,
        ends: Option<End<'_>>,
        on_sample: &(dyn Fn(&Sample) + Sync),
    ) -> Result<(Run, Vec<Sample>)> {
        let queries = AtomicU64::new(0);
        let kept = self.kept.filter(|_| ends.is_none());
        let sampler = Sampler {
            counts: self.counts,
            devices: &Vec::new,
            queries: &queries,
            queries_per_mix: self.queries_per_mix,
            interval_s: 1.0,
            on_sample,
            ends,
        };
        let count = |_: &Record| {
            queries.fetch_add(1, Ordering::Relaxed);
        };
        let drive =
            Drive::new(self.target, clock, self.clients).rules(self.rules).keeping(kept).on_query(&count);
        let (run, samples) = sampler.during(|| drive.run(mixes));
        Ok((run?, samples))
    }
}
