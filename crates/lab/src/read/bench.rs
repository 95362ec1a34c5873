//! How a cell of `lab read` is run.
//!
//! 1. The file is opened anew: the kernel takes the read-ahead of the device at that moment.
//! 2. The pattern is told to the kernel, as fio does; a buffered cell is made cold, with proof.
//! 3. The job runs. The device's own counters are read before and after it, so that the
//!    requests asked for stand beside those the device got.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::fs::Advice;
use snowmelt_io::{
    Access, Device, DeviceModel, FileDevice, Job, JobEngine, JobFile, JobResult, Pattern, Places,
    SimulatedDevice, run_job, run_job_on,
};
use snowmelt_io_experiments::PolicyName;

use crate::LabError;
use crate::machine::device_work::{DeviceClock, DeviceWork};
use crate::read::cell::{BufferMemory, CellResult, ReadCell};
use crate::run::arguments::EngineName;
use crate::stats::{spread, summary};
use crate::target::Target;
use crate::target::cold::make_cold;
use crate::trace::cell::Tracing;
use crate::undo::Undo;

/// Most bytes the kernel is asked for ahead at once.
const ASK_BYTES: u64 = 128 << 10;

/// How a cell is run, apart from its own settings.
pub struct ReadBench<'a> {
    /// The file or device that is measured.
    pub target: &'a Target,
    /// Bytes of it that are used.
    pub range: u64,
    /// Time per cell.
    pub runtime: Duration,
    /// Read every place once, then end, also where nothing is cached.
    pub once: bool,
    /// Seed of the random places.
    pub seed: u64,
    /// Tell the kernel the pattern, as fio does.
    pub hint: bool,
    /// Device model in front of it.
    pub model: Option<DeviceModel>,
    /// The order of requests that go through a queue; first come, first served without.
    pub queue: Option<PolicyName>,
    /// Trace every cell; the journal of what that changes.
    pub trace: Option<&'a Undo>,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
}

/// The error when not one request finds room.
pub fn too_small(target: &Target, range: u64, bs: u64) -> LabError {
    LabError::refused(
        target.path.display(),
        format!("has only {range} bytes to be used, less than one request of {bs}"),
        "name a larger file, or smaller --sizes",
    )
}

impl ReadBench<'_> {
    /// Runs a cell.
    pub fn run(
        &self,
        cell: &ReadCell,
        engine: EngineName,
        pattern: Pattern,
        repeat: u32,
    ) -> Result<CellResult, LabError> {
        let write = cell.rw.ends_with("write");
        let file = self.target.open(write, cell.direct)?;
        if self.hint {
            advise(&file, pattern);
        }
        let mut doubts = Vec::new();
        let mut cached = None;
        if !cell.direct && self.model.is_none() {
            let left = make_cold(file.file(), &self.target.path)?;
            if left > 0 {
                doubts.push(format!("{left} pages stayed in the page cache: not cold"));
            }
            cached = Some(left);
        }
        let job = self.job(cell, engine, pattern, repeat, write)?;
        let tracing = self.trace.map(|undo| Tracing::start(&self.target.path, undo)).transpose()?;
        let before = DeviceClock::now(&self.target.device.name);
        let began = Instant::now();
        if cell.prefetch {
            self.ask_ahead(&file)?;
        }
        let asking_ns = began.elapsed().as_nanos() as u64;
        let mut result = match (&self.model, engine.0) {
            (Some(_), _) | (None, JobEngine::Queue(_)) => {
                run_job_on(&self.device(write, cell.direct)?, &job, self.stop)?
            }
            (None, _) => run_job(&file, &job, self.stop)?,
        };
        if cell.prefetch {
            result.runtime_ns += asking_ns;
        }
        let seconds = result.runtime_ns as f64 / 1e9;
        let device = before
            .zip(DeviceClock::now(&self.target.device.name))
            .filter(|_| self.model.is_none())
            .map(|(before, after)| before.until(&after, seconds));
        let traced = tracing.map(|tracing| tracing.finish(write)).transpose()?;
        let device = match (device, &traced) {
            (Some(device), Some(traced)) => Some(device.with_own(traced.own)),
            (device, _) => device,
        };
        let mut described = describe(cell, repeat, &result, cached, device, doubts);
        described.pages_per_io = pages_per_io(&job, result.total_ios);
        if let Some(traced) = traced {
            described.doubts.extend(traced.doubts);
            described.trace = Some(traced.counts);
            described.parties = Some((self.target.device.name.clone(), traced.parties));
        }
        Ok(described)
    }

    fn job(
        &self,
        cell: &ReadCell,
        engine: EngineName,
        pattern: Pattern,
        repeat: u32,
        write: bool,
    ) -> Result<Job, LabError> {
        let seed = self.seed.wrapping_add(u64::from(repeat) << 32);
        let places = Places::new(pattern, cell.bs, cell.align, 0, self.range, seed);
        let places = places.ok_or_else(|| too_small(self.target, self.range, cell.bs))?;
        // A block that was read once is in the page cache, and no longer the device's.
        let once = self.once || (!cell.direct && self.model.is_none());
        // Shorter intervals while the whole is short: ten of them tell more than three.
        let interval = if self.runtime >= Duration::from_secs(8) {
            Duration::from_secs(1)
        } else {
            (self.runtime / 10).max(Duration::from_millis(50))
        };
        Ok(Job {
            engine: engine.0,
            policy: self.queue.unwrap_or(PolicyName::Fifo).policy(),
            write,
            bs: cell.bs,
            huge_pages: cell.mem == BufferMemory::MmapHuge,
            iodepth: cell.iodepth,
            places,
            first: 0,
            most: if once { (self.range / cell.bs).min(places.count()) } else { u64::MAX },
            runtime: self.runtime,
            interval,
        })
    }

    /// Has the kernel read the whole range: in pieces, because it reads no more of one than a
    /// request of the device holds.
    fn ask_ahead(&self, file: &JobFile) -> Result<(), LabError> {
        for at in (0..self.range).step_by(ASK_BYTES as usize) {
            let len = std::num::NonZeroU64::new(ASK_BYTES.min(self.range - at));
            rustix::fs::fadvise(file.file(), at, len, Advice::WillNeed)
                .map_err(|e| LabError::file("read ahead in", &self.target.path, e))?;
        }
        Ok(())
    }

    fn device(&self, write: bool, direct: bool) -> Result<Arc<dyn Device>, LabError> {
        let access = if write { Access::ReadWrite } else { Access::Read };
        let file: Arc<dyn Device> = Arc::new(FileDevice::open(&self.target.path, access, direct)?);
        Ok(match &self.model {
            None => file,
            Some(model) => Arc::new(SimulatedDevice::new(model.clone(), file, &snowmelt_io::Clock::real())),
        })
    }
}

fn advise(file: &JobFile, pattern: Pattern) {
    let advice = match pattern {
        Pattern::Random => Advice::Random,
        Pattern::Sequential => Advice::Sequential,
        Pattern::Stride(_) => return,
    };
    // Only advice: where it is not taken, the numbers say so.
    let _ = rustix::fs::fadvise(file.file(), 0, None, advice);
}

/// Pages of 4 KiB that the first `ios` requests of a job touch, on average.
fn pages_per_io(job: &Job, ios: u64) -> f64 {
    let pages = |i: u64| {
        let at = job.places.at(job.first + i);
        (at + job.bs - 1) / 4096 - at / 4096 + 1
    };
    (0..ios).map(pages).sum::<u64>() as f64 / ios.max(1) as f64
}

fn describe(
    cell: &ReadCell,
    repeat: u32,
    result: &JobResult,
    cached: Option<u64>,
    device: Option<DeviceWork>,
    mut doubts: Vec<String>,
) -> CellResult {
    let interval_s = result.interval_ns as f64 / 1e9;
    let mut series: Vec<f64> = result.per_interval.iter().map(|n| *n as f64 / interval_s).collect();
    if series.len() > 1 {
        series.pop(); // cut short
    }
    assert_eq!(result.clat_ns.len(), result.total_ios, "every request has a latency");
    assert_eq!(result.per_interval.iter().sum::<u64>(), result.total_ios, "every request is in an interval");
    let ios = result.total_ios.max(1) as f64;
    let runtime_ns = result.runtime_ns.max(1) as f64;
    let write = cell.rw.ends_with("write");
    let moved = device.map(|d| if write { d.own_writes() } else { d.own_reads() });
    let amplification = moved.map(|(_, bytes)| bytes as f64 / result.io_bytes.max(1) as f64);
    if result.total_ios == 0 {
        doubts.push("not one request was completed".into());
    }
    if !write && amplification.is_some_and(|a| a < 0.97) {
        doubts.push("the device read less than was asked: a cache answered the rest".into());
    }
    CellResult {
        cell: cell.clone(),
        repeat,
        iops: result.iops(),
        bw_bytes: result.bw_bytes(),
        total_ios: result.total_ios,
        io_bytes: result.io_bytes,
        runtime_ms: runtime_ns / 1e6,
        clat: summary(&result.clat_ns),
        cpu_us_per_io: (result.cpu.usr_ns + result.cpu.sys_ns) as f64 / 1e3 / ios,
        usr_cpu: result.cpu.usr_ns as f64 / runtime_ns * 100.0,
        sys_cpu: result.cpu.sys_ns as f64 / runtime_ns * 100.0,
        ctx: result.cpu.ctx,
        interval_ms: interval_s * 1e3,
        steadiness: spread(&series),
        iops_series: series,
        cached_pages_before: cached,
        pages_per_io: 0.0,
        requests_per_io: moved.and_then(|(requests, _)| Some(requests? as f64 / ios)),
        amplification,
        device,
        trace: None,
        parties: None,
        doubts,
    }
}
