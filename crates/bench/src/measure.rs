//! A warm measurement of any target: mixes of warm-up, then those that count. `bsbm run` and
//! `bsbm drive` measure by it.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use snowmelt_bsbm::UseCase;
use snowmelt_io::Clock;

use snowmelt_workload::bench::ClientLoad;
use snowmelt_workload::drive::{Drive, Mixes, Rules, Run, Stream};
use snowmelt_workload::kept::KeptAnswers;
use snowmelt_workload::process::cpu_seconds;
use snowmelt_workload::target::Target;

/// Where the mixes come from.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Those of the warm-up.
    warm: Stream,
    /// Those that count, if they do not follow on the warm-up.
    measured: Option<Stream>,
}

impl Streams {
    /// One stream for both; with updates, one of Explore for the warm-up, and then that of the
    /// load, whose inserts take these transactions in turn.
    pub fn new(load: &ClientLoad, transactions: Option<Vec<String>>) -> Result<Self> {
        let Some(transactions) = transactions else {
            return Ok(Self { warm: load.stream()?, measured: None });
        };
        let warm = ClientLoad { use_case: UseCase::Explore, ..*load }.stream()?;
        Ok(Self { warm, measured: Some(load.update_stream(transactions)?) })
    }

    /// One stream without a warm-up.
    pub fn only(stream: Stream) -> Self {
        Self { warm: stream, measured: None }
    }

    /// The stream of the warm-up, and that which counts if it does not follow on it.
    pub(crate) fn apart(self) -> (Stream, Option<Stream>) {
        (self.warm, self.measured)
    }

    /// The stream that counts, after `warmup` mixes of warm-up.
    pub fn measured(mut self, warmup: u64) -> Stream {
        self.measured.take().unwrap_or_else(|| {
            (0..warmup).for_each(|_| drop(self.warm.next_mix()));
            self.warm
        })
    }
}

/// Inserts in each mix, by which the mixes for a number of transactions are counted.
pub fn inserts_per_mix(use_case: UseCase) -> usize {
    use_case.mix().iter().filter(|number| **number == 1).count()
}

/// A measurement.
pub struct Measurement<'a> {
    /// The engine or endpoint.
    pub target: &'a dyn Target,
    /// Its clients.
    pub clients: usize,
    /// How they send queries; the warm-up is a closed loop.
    pub rules: Rules,
    /// Mixes before those that count.
    pub warmup: u64,
    /// Mixes that count.
    pub mixes: u64,
    /// Keeps answers of the mixes that count.
    pub kept: Option<&'a KeptAnswers>,
    /// Ends it when set.
    pub stop: &'a AtomicBool,
}

/// Records of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The mixes that count.
    pub run: Run,
    /// Processor seconds of this process meanwhile.
    pub cpu_s: f64,
}

impl Measurement<'_> {
    /// Measures once. An interrupted measurement is an error.
    pub fn run(&self, streams: Streams) -> Result<Measured> {
        self.repeats(streams, 1).map(|mut repeats| repeats.remove(0))
    }

    /// Measures `count` times after one warm-up: the same mixes each time, but with updates those
    /// that follow, since nothing can be inserted twice.
    pub fn repeats(&self, streams: Streams, count: u32) -> Result<Vec<Measured>> {
        let clock = Clock::real();
        let drive = |rules| Drive::new(self.target, &clock, self.clients).rules(rules);
        let warmup = Mixes::new(streams.warm, self.warmup, &[self.stop]);
        drive(Rules { rate: None, ..self.rules }).run(&warmup)?;
        let updates = streams.measured.is_some();
        let mut stream = streams.measured.unwrap_or_else(|| warmup.into_stream());
        let mut repeats = Vec::new();
        for _ in 0..count.max(1) {
            let before_s = cpu_seconds();
            let mixes = Mixes::new(stream.clone(), self.mixes, &[self.stop]);
            let run = drive(self.rules).keeping(self.kept).run(&mixes)?;
            if self.stop.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            repeats.push(Measured { run, cpu_s: cpu_seconds() - before_s });
            if updates {
                stream = mixes.into_stream();
            }
        }
        Ok(repeats)
    }
}

impl Measured {
    /// Repeats as one measurement: each begins where the one before it ended, and its mixes count
    /// on.
    pub fn joined(repeats: &[Self]) -> Self {
        let mut all = repeats.first().cloned().unwrap_or_default();
        for Self { run, cpu_s } in repeats.iter().skip(1) {
            let last = all.run.records.iter().map(|record| record.mix).max().unwrap_or(0);
            let first = run.records.iter().map(|record| record.mix).min().unwrap_or(0);
            let more = (last + 1).saturating_sub(first);
            let gap_ns = run.from_ns.saturating_sub(all.run.to_ns);
            all.run.records.extend(run.records.iter().cloned().map(|mut record| {
                record.mix += more;
                [&mut record.due_ns, &mut record.start_ns, &mut record.end_ns]
                    .into_iter()
                    .for_each(|at_ns| *at_ns -= gap_ns);
                record
            }));
            all.run.to_ns = run.to_ns - gap_ns;
            all.run.work = all.run.work.plus(run.work);
            all.cpu_s += cpu_s;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_workload::drive::Record;

    #[test]
    fn repeats_are_joined_without_their_gaps() {
        let record = |mix, end_ns| Record {
            mix,
            start_ns: end_ns - 5,
            due_ns: end_ns - 5,
            end_ns,
            ..Record::default()
        };
        let run = |from_ns: u64| Measured {
            run: Run {
                from_ns,
                to_ns: from_ns + 20,
                records: vec![record(51, from_ns + 10), record(52, from_ns + 20)],
                ..Run::default()
            },
            cpu_s: 0.5,
        };
        let all = Measured::joined(&[run(100), run(170)]);
        assert_eq!((all.run.from_ns, all.run.to_ns, all.cpu_s), (100, 140, 1.0));
        let places: Vec<_> = all.run.records.iter().map(|r| (r.mix, r.start_ns, r.end_ns)).collect();
        assert_eq!(places, [(51, 105, 110), (52, 115, 120), (53, 125, 130), (54, 135, 140)]);
    }
}
