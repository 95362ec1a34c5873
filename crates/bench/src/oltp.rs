//! Transactions beside a scan of the same disk: each alone, and both together, under each of some
//! schedulers.
//!
//! 1. The file that is scanned and an engine's database are made in one folder. `mix` has the
//!    transactions: pgbench's TPC-B-like mix, or the same changes as SPARQL updates.
//! 2. Under each scheduler, in each round: transactions alone, the scan alone, both. `scan` reads
//!    the file past the page cache, from end to end and again, so that it always asks the device.
//! 3. In the end the engine's books must balance: the changes of accounts, tellers and branches
//!    have one sum, and there is an entry of the history for each transaction that was counted.
//! 4. `page` shows the rates and latencies beside each other.

mod mix;
pub mod page;
mod scan;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use snowmelt_engines::{Adapter, Engine, EngineError, Settings, Work};
use snowmelt_lab::machine::BlockDevice;
use snowmelt_lab::stats::LatencySummary;
use snowmelt_lab::{Behind, JsonLines, Run, Scheduler};

use mix::Mix;
use scan::Scan;

/// Settings of the measurement.
#[derive(Clone, Debug)]
pub struct OltpPlan {
    /// Names of engines that have a mix: postgresql, snowmelt.
    pub engines: Vec<String>,
    /// The folder of everything, on the disk.
    pub folder: PathBuf,
    /// The program `snowmelt`.
    pub snowmelt: PathBuf,
    /// The disk.
    pub device: BlockDevice,
    /// Schedulers of the disk.
    pub schedulers: Vec<Scheduler>,
    /// Branches; each has 10 tellers and 100,000 accounts.
    pub scale: u32,
    /// Transactions at a time.
    pub clients: u32,
    /// Scanners, each of a range of its own.
    pub dop: u32,
    /// Bytes that are scanned.
    pub scan_bytes: u64,
    /// Seconds of each phase.
    pub seconds: u32,
    /// Rounds.
    pub repeat: u32,
    /// Memory of each engine.
    pub memory: u64,
}

/// The load of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Together {
    /// The transactions alone.
    Transactions,
    /// The scan alone.
    Scan,
    /// One beside the other.
    Both,
}

impl Together {
    const ALL: [Self; 3] = [Self::Transactions, Self::Scan, Self::Both];

    fn has_transactions(self) -> bool {
        self != Self::Scan
    }

    fn has_scan(self) -> bool {
        self != Self::Transactions
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Transactions => "transactions alone",
            Self::Scan => "scan alone",
            Self::Both => "both",
        }
    }
}

/// A phase: a line of `phases.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub struct OltpPhase {
    /// The engine's name.
    pub engine: String,
    /// The scheduler, as asked.
    pub scheduler: String,
    /// Its load.
    pub phase: Together,
    /// From 1.
    pub round: u32,
    /// Seconds of the transactions, or of the scan alone.
    pub seconds: f64,
    /// Transactions that were committed.
    pub transactions: u64,
    /// Those that failed.
    pub failed: u64,
    /// Committed per second; none where there were no transactions.
    pub per_s: Option<f64>,
    /// From a transaction's first statement until its commit was known.
    pub latency: LatencySummary,
    /// Of the scan; none without it.
    pub scan_mb_per_s: Option<f64>,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct OltpResult {
    /// The phases in their order.
    pub phases: Vec<OltpPhase>,
    /// Engines that were measured: name, version, and the transaction in words.
    pub engines: Vec<(String, String, &'static str)>,
    /// Engines that were not, and why.
    pub left_out: Vec<String>,
    /// Reasons to doubt it.
    pub doubts: Vec<String>,
}

/// Measures all engines, one after the other. `said` gets a line for each phase.
///
/// # Errors
/// An engine or the device fails, or a signal came. One that is not installed is left out.
pub fn measure(plan: &OltpPlan, work: &Work, run: &Run, said: &dyn Fn(&str)) -> Result<OltpResult> {
    let mut lines = run.lines("phases")?;
    let mut result = OltpResult::default();
    let file = plan.folder.join("scanned");
    snowmelt_lab::make_file(&file, plan.scan_bytes, 1, &work.undo)?;
    for name in &plan.engines {
        let engine = Engine::new(Adapter::named(name)?, &plan.settings(), work.clone())?;
        let found = match engine.find().map_err(anyhow::Error::from).and_then(|found| {
            mix::look_for(&engine)?;
            Ok(found)
        }) {
            Ok(found) => found,
            Err(error) => {
                said(&format!("left out: {error}"));
                result.left_out.push(error.to_string());
                continue;
            }
        };
        said(&format!("{name}: {}", found.version));
        engine.create()?;
        let mix = Mix::make(&engine, plan.scale, plan.clients, &work.stop)?;
        result.engines.push((name.clone(), found.version, mix.words()));
        let server = engine.start()?;
        mix.fill()?;
        let mut bench = OltpBench { plan, work, mix: &mix, file: &file, lines: &mut lines, said };
        let phases = bench.phases(name, &mut result.doubts)?;
        let counted = phases.iter().map(|phase| phase.transactions).sum();
        mix.check_books(counted).with_context(|| format!("the books of {name} are wrong"))?;
        result.phases.extend(phases);
        server.stop()?;
        std::fs::remove_dir_all(engine.folder()).context("cannot remove the database")?;
    }
    if result.phases.is_empty() {
        bail!("nothing was measured: {}", result.left_out.join("; "));
    }
    Ok(result)
}

impl OltpPlan {
    fn settings(&self) -> Settings {
        Settings {
            folder: self.folder.clone(),
            memory: self.memory,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            port: None,
            engines: self.folder.clone(),
            snowmelt: self.snowmelt.clone(),
            data: self.folder.join("accounts.nt"),
            parts: self.folder.clone(),
        }
    }
}

struct OltpBench<'a> {
    plan: &'a OltpPlan,
    work: &'a Work,
    mix: &'a Mix<'a>,
    file: &'a Path,
    lines: &'a mut JsonLines,
    said: &'a dyn Fn(&str),
}

impl OltpBench<'_> {
    /// All phases of an engine. Every second round begins at the last scheduler.
    fn phases(&mut self, engine: &str, doubts: &mut Vec<String>) -> Result<Vec<OltpPhase>> {
        let mut phases = Vec::new();
        let behind = Behind::find(&self.plan.device.name);
        for round in 1..=self.plan.repeat {
            let mut schedulers: Vec<&Scheduler> = self.plan.schedulers.iter().collect();
            if round % 2 == 0 {
                schedulers.reverse();
            }
            for scheduler in schedulers {
                scheduler.apply(&self.plan.device, &self.work.undo)?;
                for together in Together::ALL {
                    let mut phase = self.phase(together)?;
                    if self.is_stopped() {
                        return Err(EngineError::Interrupted.into());
                    }
                    (phase.engine, phase.scheduler, phase.round) =
                        (engine.to_owned(), scheduler.name.clone(), round);
                    (self.said)(&phase.line());
                    doubts.extend(phase.doubt());
                    self.lines.write(&phase)?;
                    phases.push(phase);
                }
            }
        }
        doubts.extend(behind.as_ref().and_then(Behind::doubt));
        Ok(phases)
    }

    fn is_stopped(&self) -> bool {
        self.work.stop.load(Ordering::Relaxed)
    }

    fn phase(&self, together: Together) -> Result<OltpPhase> {
        let seconds = self.plan.seconds;
        let scan = Scan::open(self.file, self.plan.dop, together.has_scan())?;
        let (done, scanned) = scan.beside(|| match together.has_transactions() {
            true => self.mix.run(seconds).map(Some),
            false => {
                let until = Instant::now() + Duration::from_secs(u64::from(seconds));
                while Instant::now() < until && !self.is_stopped() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(None)
            }
        })?;
        let scan_mb_per_s =
            together.has_scan().then(|| scanned.bytes as f64 / 1e6 / scanned.seconds.max(1e-9));
        let seconds = done.as_ref().map_or(scanned.seconds, |done| done.seconds);
        let (transactions, failed, latency) = done
            .as_ref()
            .map_or((0, 0, LatencySummary::default()), |d| (d.latency.count, d.failed, d.latency));
        Ok(OltpPhase {
            engine: String::new(),
            scheduler: String::new(),
            phase: together,
            round: 0,
            seconds,
            transactions,
            failed,
            per_s: done.map(|_| transactions as f64 / seconds.max(1e-9)),
            latency,
            scan_mb_per_s,
        })
    }
}

impl OltpPhase {
    /// The phase on the screen.
    fn line(&self) -> String {
        let ms = |ns: u64| ns as f64 / 1e6;
        let rate = self.per_s.map(|per_s| {
            format!(
                ", {per_s:8.1} transactions/s, p50 {:7.2} ms, p90 {:7.2}, p99 {:7.2}",
                ms(self.latency.p50_ns),
                ms(self.latency.p90_ns),
                ms(self.latency.p99_ns)
            )
        });
        let scan = self.scan_mb_per_s.map(|mb| format!(", scan {mb:7.1} MB/s"));
        format!(
            "{} {:16} {:18}{}{}",
            self.round,
            self.scheduler,
            self.phase.words(),
            rate.unwrap_or_default(),
            scan.unwrap_or_default()
        )
    }

    fn doubt(&self) -> Option<String> {
        let name = format!("{}, {}, {}", self.engine, self.scheduler, self.phase.words());
        if self.failed > 0 {
            return Some(format!("{name}: {} transactions failed", self.failed));
        }
        (self.per_s.is_some() && self.transactions < 100).then(|| {
            format!("{name}: only {} transactions: the 99th percentile is one of them", self.transactions)
        })
    }
}
