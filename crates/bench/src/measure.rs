//! A warm measurement of any target: mixes of warm-up, then those that count. `bsbm run` and
//! `bsbm drive` measure by it.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use snowmelt_bsbm::UseCase;
use snowmelt_io::Clock;

use snowmelt_workload::bench::ClientLoad;
use snowmelt_workload::drive::{Drive, Mixes, Rules, Run, Stream};
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
    /// Measures. An interrupted measurement is an error.
    pub fn run(&self, streams: Streams) -> Result<Measured> {
        let clock = Clock::real();
        let drive = |rules| Drive::new(self.target, &clock, self.clients).rules(rules);
        let warmup = Mixes::new(streams.warm, self.warmup, &[self.stop]);
        drive(Rules { rate: None, ..self.rules }).run(&warmup)?;
        let stream = streams.measured.unwrap_or_else(|| warmup.into_stream());
        let before_s = cpu_seconds();
        let run = drive(self.rules).run(&Mixes::new(stream, self.mixes, &[self.stop]))?;
        if self.stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(Measured { run, cpu_s: cpu_seconds() - before_s })
    }
}
