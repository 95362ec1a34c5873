//! What `lab read` and `lab write` share: the cells of a micro-benchmark, and how one of them is run.
//!
//! A cell is one combination of settings. Before it the file is opened anew (read-ahead is taken from the device at that moment),
//! the pattern is told to the kernel as fio does, and a buffered cell is made cold, with proof. Around it the device's
//! own counters are read, so that what was asked stands beside what the device got.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::fs::Advice;
use serde::{Deserialize, Serialize};
use snowmelt_io::{
    Access, Device, DeviceModel, Engine, FileDevice, Job, JobEngine, JobFile, JobResult, Pattern, Places,
    Policy, SimulatedDevice, run_job, run_job_on,
};

use crate::LabError;
use crate::cell_trace::{CellTrace, Tracing};
use crate::cold::make_cold;
use crate::device_work::DeviceWork;
use crate::diskstats::DiskCounts;
use crate::stats::{LatencySummary, Spread, spread, summary};
use crate::target::Target;
use crate::undo::Undo;

/// One combination of settings; names as fio's where it has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// `io_uring`, `threads`, `psync`, `mmap`, or what serves the queue.
    pub ioengine: String,
    /// The scheduler's order, when the load goes through a queue of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// `randread`, `read`, `randwrite` …
    pub rw: String,
    /// Bytes per request.
    pub bs: u64,
    /// Requests outstanding.
    pub iodepth: u32,
    /// Past the page cache.
    pub direct: bool,
    /// Offsets are multiples of this.
    pub align: u64,
    /// `random`, `sequential`, `stride:BYTES`.
    pub pattern: String,
    /// The device's setting while it ran; empty when it was left alone.
    pub read_ahead_kb: Option<u64>,
    /// The kernel was asked for the whole range before it was read.
    #[serde(default)]
    pub prefetch: bool,
    /// What holds the buffers.
    #[serde(default, skip_serializing_if = "Memory::is_malloc")]
    pub mem: Memory,
}

/// What holds the buffers; fio's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Memory {
    /// Ordinary pages, scattered in memory: a long request has a piece for each of them.
    #[default]
    Malloc,
    /// Transparent huge pages, where the kernel has some left: a long request is in one piece.
    MmapHuge,
}

impl Memory {
    fn is_malloc(&self) -> bool {
        *self == Memory::Malloc
    }
}

/// What came out of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CellResult {
    /// Its settings.
    #[serde(flatten)]
    pub cell: Cell,
    /// Which turn, from 1.
    pub repeat: u32,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// Requests.
    pub total_ios: u64,
    /// Bytes asked for.
    pub io_bytes: u64,
    /// Milliseconds, asking for the range ahead included.
    pub runtime_ms: f64,
    /// Latency from the request to its completion.
    pub clat: LatencySummary,
    /// Processor time of the process and of kernel threads that work for it, in µs per request.
    pub cpu_us_per_io: f64,
    /// In percent of one processor, user mode.
    pub usr_cpu: f64,
    /// In percent of one processor, kernel.
    pub sys_cpu: f64,
    /// Context switches.
    pub ctx: u64,
    /// Length of the intervals of `iops_series`, in ms.
    pub interval_ms: f64,
    /// Requests per second, interval by interval.
    pub iops_series: Vec<f64>,
    /// How unsteady that series is.
    pub steadiness: Spread,
    /// Pages of the file in the page cache before; 0 is the proof of cold. None where no page cache is used.
    pub cached_pages_before: Option<u64>,
    /// What the device did meanwhile, whoever asked for it.
    pub device: Option<DeviceWork>,
    /// Pages of 4 KiB that a request touched, on average.
    pub pages_per_io: f64,
    /// Requests the device served per request asked.
    pub requests_per_io: Option<f64>,
    /// Bytes the device moved per byte asked.
    pub amplification: Option<f64>,
    /// What the block layer saw, when it was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<CellTrace>,
    /// What makes this cell doubtful.
    pub doubts: Vec<String>,
}

/// What carries requests, as said on the command line: fio's names and ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineName(pub JobEngine);

impl std::str::FromStr for EngineName {
    type Err = String;
    fn from_str(name: &str) -> Result<EngineName, String> {
        let engine = match name {
            "uring" | "io_uring" => JobEngine::Uring,
            "threads" => JobEngine::Threads,
            "inline" | "psync" => JobEngine::Inline,
            "mmap" => JobEngine::Mmap,
            other => {
                // Whatever engine the library has can serve through a queue.
                let name = if other == "posixaio" { "posix-aio" } else { other };
                let engine: Engine = name.parse().map_err(|_| {
                    format!(
                        "no engine is called '{other}': there are uring, threads, inline, mmap and posix-aio"
                    )
                })?;
                JobEngine::Queue(engine, Policy::Fifo)
            }
        };
        Ok(EngineName(engine))
    }
}

impl EngineName {
    /// fio's name where it has one.
    pub fn name(self) -> &'static str {
        match self.0 {
            JobEngine::Uring | JobEngine::Queue(Engine::Uring, _) => "io_uring",
            JobEngine::Threads | JobEngine::Queue(Engine::Threads, _) => "threads",
            JobEngine::Inline | JobEngine::Queue(Engine::Inline, _) => "psync",
            JobEngine::Mmap => "mmap",
            JobEngine::Queue(Engine::PosixAio, _) => "posixaio",
        }
    }

    /// The same engine behind a queue of ours with this policy.
    pub fn queued(self, policy: Policy) -> EngineName {
        let engine = match self.0 {
            JobEngine::Uring => Engine::Uring,
            JobEngine::Threads => Engine::Threads,
            JobEngine::Inline | JobEngine::Mmap => Engine::Inline,
            JobEngine::Queue(engine, _) => engine,
        };
        EngineName(JobEngine::Queue(engine, policy))
    }
}

/// A pattern as said on the command line: `random`, `sequential`, `stride:1m`.
pub fn parse_pattern(text: &str) -> Result<Pattern, String> {
    match text.split_once(':') {
        None if text == "random" => Ok(Pattern::Random),
        None if text == "sequential" => Ok(Pattern::Sequential),
        None if text == "stride" => Err("how far? write for example stride:1m".into()),
        Some(("stride", bytes)) => Ok(Pattern::Stride(crate::size::parse(bytes)?)),
        _ => Err(format!("no pattern is called '{text}': there are random, sequential and stride:SIZE")),
    }
}

/// A pattern as it is said.
pub fn show_pattern(pattern: Pattern) -> String {
    match pattern {
        Pattern::Random => "random".into(),
        Pattern::Sequential => "sequential".into(),
        Pattern::Stride(bytes) => format!("stride:{}", crate::size::show(bytes)),
    }
}

/// Most bytes the kernel is asked for ahead at once.
const ASK_BYTES: u64 = 128 << 10;

/// How a cell is run, apart from its own settings.
pub struct Bench<'a> {
    /// What is measured.
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

impl Bench<'_> {
    /// Runs a cell.
    pub fn run(
        &self,
        cell: &Cell,
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
        let tracing = self.trace.map(|undo| Tracing::start(self.target, undo)).transpose()?;
        let before = DiskCounts::now(&self.target.device.name);
        let began = Instant::now();
        if cell.prefetch {
            self.ask_ahead(&file)?;
        }
        let asking_ns = began.elapsed().as_nanos() as u64;
        let mut result = match (&self.model, engine.0) {
            (None, JobEngine::Uring | JobEngine::Threads | JobEngine::Inline | JobEngine::Mmap) => {
                run_job(&file, &job, self.stop)?
            }
            _ => run_job_on(&self.device(write, cell.direct)?, &job, self.stop)?,
        };
        if cell.prefetch {
            result.runtime_ns += asking_ns;
        }
        let seconds = result.runtime_ns as f64 / 1e9;
        let device = before
            .zip(DiskCounts::now(&self.target.device.name))
            .filter(|_| self.model.is_none())
            .map(|(before, after)| DeviceWork::between(&before, &after, seconds));
        let mut described = describe(cell, repeat, &result, cached, device, doubts);
        described.pages_per_io = pages_per_io(&job, result.total_ios);
        if let Some(tracing) = tracing {
            let (trace, doubts) = tracing.finish(write)?;
            described.doubts.extend(doubts);
            described.trace = Some(trace);
        }
        Ok(described)
    }

    fn job(
        &self,
        cell: &Cell,
        engine: EngineName,
        pattern: Pattern,
        repeat: u32,
        write: bool,
    ) -> Result<Job, LabError> {
        let seed = self.seed.wrapping_add(u64::from(repeat) << 32);
        let places = Places::new(pattern, cell.bs, cell.align, 0, self.range, seed);
        let places = places.ok_or_else(|| too_small(self.target, self.range, cell.bs))?;
        // What was read once is in the page cache, and no longer the device's.
        let once = self.once || (!cell.direct && self.model.is_none());
        // Shorter intervals while the whole is short: ten of them tell more than three.
        let interval = if self.runtime >= Duration::from_secs(8) {
            Duration::from_secs(1)
        } else {
            (self.runtime / 10).max(Duration::from_millis(50))
        };
        Ok(Job {
            engine: engine.0,
            write,
            bs: cell.bs,
            huge_pages: cell.mem == Memory::MmapHuge,
            iodepth: cell.iodepth,
            places,
            first: 0,
            most: if once { (self.range / cell.bs).min(places.count()) } else { u64::MAX },
            runtime: self.runtime,
            interval,
        })
    }

    /// Has the kernel read the whole range: in pieces, because it reads no more of one than a request of the device holds.
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
    cell: &Cell,
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
    let ios = result.total_ios.max(1) as f64;
    let runtime_ns = result.runtime_ns.max(1) as f64;
    let write = cell.rw.ends_with("write");
    let moved = device.map(|d| if write { (d.writes, d.write_bytes) } else { (d.reads, d.read_bytes) });
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
        requests_per_io: moved.map(|(requests, _)| requests as f64 / ios),
        amplification,
        device,
        trace: None,
        doubts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_the_names_of_fio_and_ours() {
        for (text, name) in [
            ("uring", "io_uring"),
            ("io_uring", "io_uring"),
            ("inline", "psync"),
            ("psync", "psync"),
            ("mmap", "mmap"),
            ("threads", "threads"),
        ] {
            assert_eq!(text.parse::<EngineName>().unwrap().name(), name);
        }
        let error = "libaio".parse::<EngineName>().unwrap_err();
        assert!(error.contains("libaio") && error.contains("uring"), "{error}");
    }

    #[test]
    fn patterns() {
        for text in ["random", "sequential", "stride:1m"] {
            assert_eq!(show_pattern(parse_pattern(text).unwrap()), text);
        }
        assert!(parse_pattern("stride").unwrap_err().contains("stride:1m"));
        assert!(parse_pattern("zipf").unwrap_err().contains("zipf"));
        assert!(parse_pattern("stride:x").is_err());
    }
}
