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
    Access, Device, DeviceModel, FileDevice, Job, JobDirection, JobEngine, JobFile, JobResult, OneWay,
    Pattern, Places, SimulatedDevice, run_job, run_job_on,
};

use crate::LabError;
use crate::machine::device_work::{DeviceClock, DeviceWork};
use crate::read::cell::{BufferMemory, CellResult, OneWayResult};
use crate::read::plan::Planned;
use crate::stats::{log2_buckets, percentiles, spread, summary};
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
    /// Most requests per cell; as many as the time allows without.
    pub most: Option<u64>,
    /// Percentiles that are shown.
    pub shown: Vec<f64>,
    /// Keep the histograms of latencies.
    pub histogram: bool,
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
    pub(super) fn run(&self, planned: &Planned, repeat: u32) -> Result<CellResult, LabError> {
        let cell = &planned.cell;
        let writes = planned.read_percent < 100;
        let file = self.target.open(writes, cell.direct)?;
        if self.hint {
            advise(&file, planned.pattern);
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
        let job = self.job(planned, repeat)?;
        let tracing = self.trace.map(|undo| Tracing::start(&self.target.path, undo)).transpose()?;
        let before = DeviceClock::now(&self.target.device.name);
        let began = Instant::now();
        if cell.prefetch {
            self.ask_ahead(&file)?;
        }
        let asking_ns = began.elapsed().as_nanos() as u64;
        let mut result = match (&self.model, planned.engine.0) {
            (Some(_), _) | (None, JobEngine::Queue(_)) => {
                run_job_on(&self.device(writes, cell.direct)?, &job, self.stop)?
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
        doubts.extend(self.cut_short(&job, &result));
        if writes && !cell.direct && self.model.is_none() {
            doubts.push("writes through the page cache returned before the device had them".into());
            rustix::fs::fdatasync(file.file()).map_err(|e| LabError::file("sync", &self.target.path, e))?;
        }
        let traced = tracing.map(|tracing| tracing.finish(false)).transpose()?;
        let device = match (device, &traced) {
            (Some(device), Some(traced)) => Some(device.with_own(traced.own)),
            (device, _) => device,
        };
        let mut described = self.describe(planned, repeat, &result, device, doubts);
        described.cached_pages_before = cached;
        described.pages_per_io = pages_per_io(&job, result.total_ios);
        if let Some(traced) = traced {
            described.doubts.extend(traced.doubts);
            described.trace = Some(traced.counts);
            described.parties = Some((self.target.device.name.clone(), traced.parties));
        }
        Ok(described)
    }

    fn job(&self, planned: &Planned, repeat: u32) -> Result<Job, LabError> {
        let (cell, load) = (&planned.cell, &planned.load);
        let seed = self.seed.wrapping_add(u64::from(repeat) << 32);
        let places = Places::new(planned.pattern, cell.bs, cell.align, 0, self.range, seed);
        let places = load.distribution.of(places.ok_or_else(|| too_small(self.target, self.range, cell.bs))?);
        // A block that was read once is in the page cache, and no longer the device's.
        let once = self.once || (!cell.direct && self.model.is_none());
        let all = if once { (self.range / cell.bs).min(places.count()) } else { u64::MAX };
        // Shorter intervals while the whole is short: ten of them tell more than three. How long a
        // number of I/Os takes is not known before.
        let interval = match self.most {
            Some(_) => Duration::from_millis(100),
            None if self.runtime >= Duration::from_secs(8) => Duration::from_secs(1),
            None => (self.runtime / 10).max(Duration::from_millis(50)),
        };
        Ok(Job {
            engine: planned.engine.0,
            policy: load.job_policy(),
            rw: JobDirection::of_reads(planned.read_percent, seed),
            bs: cell.bs,
            huge_pages: cell.mem == BufferMemory::MmapHuge,
            iodepth: cell.iodepth,
            queue_depth: load.queue_depth,
            ioprio: load.ioprio,
            verify: None,
            places,
            first: 0,
            // By a law, places come again before all have come: the page cache is part of it.
            most: match (self.most, places.each_once()) {
                (Some(most), true) => most.min(all),
                (Some(most), false) => most,
                (None, _) => all,
            },
            runtime: self.runtime,
            interval,
        })
    }

    /// Why there were fewer requests than asked for, if so.
    fn cut_short(&self, job: &Job, result: &JobResult) -> Option<String> {
        let asked = self.most.filter(|asked| result.total_ios < *asked)?;
        let why = match () {
            () if self.stop.load(std::sync::atomic::Ordering::Relaxed) => return None,
            () if job.most < asked => "every place was read once, and is no longer the device's",
            () => "the time allowed was over",
        };
        Some(format!("only {} of {asked} I/Os: {why}", result.total_ios))
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

    fn describe(
        &self,
        planned: &Planned,
        repeat: u32,
        result: &JobResult,
        device: Option<DeviceWork>,
        mut doubts: Vec<String>,
    ) -> CellResult {
        let interval_s = result.interval_ns as f64 / 1e9;
        let mut series: Vec<f64> = result.per_interval.iter().map(|n| *n as f64 / interval_s).collect();
        // The last one was cut short.
        match &mut series[..] {
            [only] => *only = result.iops(),
            _ => drop(series.pop()),
        }
        assert_eq!(result.clat_ns.len(), result.total_ios, "every request has a latency");
        assert_eq!(
            result.per_interval.iter().sum::<u64>(),
            result.total_ios,
            "every request is in an interval"
        );
        let ios = result.total_ios.max(1) as f64;
        let runtime_ns = result.runtime_ns.max(1) as f64;
        let (reads, writes) = (planned.read_percent > 0, planned.read_percent < 100);
        let moved = device.map(|device| moved_for_us(&device, reads, writes));
        let amplification = moved.map(|(_, bytes)| bytes as f64 / result.io_bytes.max(1) as f64);
        if result.total_ios == 0 {
            doubts.push("not one request was completed".into());
        }
        if !writes && amplification.is_some_and(|a| a < 0.97) {
            doubts.push("the device read less than was asked: a cache answered the rest".into());
        }
        let one_way = |way: &OneWay| (reads && writes).then(|| self.one_way(way, result.runtime_ns));
        CellResult {
            cell: planned.cell.clone(),
            repeat,
            iops: result.iops(),
            bw_bytes: result.bw_bytes(),
            total_ios: result.total_ios,
            io_bytes: result.io_bytes,
            runtime_ms: runtime_ns / 1e6,
            clat: summary(&result.clat_ns),
            percentile: percentiles(&result.clat_ns, &self.shown),
            clat_log2_ns: if self.histogram { log2_buckets(&result.clat_ns) } else { Vec::new() },
            read: one_way(&result.read),
            write: one_way(&result.write),
            cpu_us_per_io: (result.cpu.usr_ns + result.cpu.sys_ns) as f64 / 1e3 / ios,
            usr_cpu: result.cpu.usr_ns as f64 / runtime_ns * 100.0,
            sys_cpu: result.cpu.sys_ns as f64 / runtime_ns * 100.0,
            ctx: result.cpu.ctx,
            interval_ms: interval_s * 1e3,
            steadiness: spread(&series),
            iops_series: series,
            cached_pages_before: None,
            pages_per_io: 0.0,
            requests_per_io: moved.and_then(|(requests, _)| Some(requests? as f64 / ios)),
            amplification,
            device,
            trace: None,
            parties: None,
            doubts,
            shown: self.shown.clone(),
        }
    }

    fn one_way(&self, way: &OneWay, runtime_ns: u64) -> OneWayResult {
        let seconds = runtime_ns.max(1) as f64 / 1e9;
        OneWayResult {
            iops: way.total_ios as f64 / seconds,
            bw_bytes: way.io_bytes as f64 / seconds,
            total_ios: way.total_ios,
            io_bytes: way.io_bytes,
            clat: summary(&way.clat_ns),
            percentile: percentiles(&way.clat_ns, &self.shown),
            clat_log2_ns: if self.histogram { log2_buckets(&way.clat_ns) } else { Vec::new() },
        }
    }
}

/// Requests for this process, where they are known, and their bytes.
fn moved_for_us(device: &DeviceWork, reads: bool, writes: bool) -> (Option<u64>, u64) {
    match (reads, writes) {
        (true, false) => device.own_reads(),
        (false, _) => device.own_writes(),
        (true, true) => {
            let (read, written) = (device.own_reads(), device.own_writes());
            (read.0.zip(written.0).map(|(read, written)| read + written), read.1 + written.1)
        }
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
