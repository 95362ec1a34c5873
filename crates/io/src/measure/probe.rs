//! Measures a device: the cost of a request, the bandwidth, the depth it needs.
//!
//! 1. Find something to read: a block device, a file, or the largest file under a directory.
//!    Nothing is written.
//!    Parts that were never written are left out: they are read without the device.
//! 2. Random blocks at depths 1, 2, 4, … and large sequential requests at a few depths, each
//!    for its share of the allowed seconds and bytes, through the same queue and engine the
//!    store uses.
//! 3. The cost model follows from the figures. Latency is the median at depth 1. Bandwidth is
//!    the best sequential rate. Depth is the smallest that gives nine tenths of the best random
//!    rate. The cost per request is the rest of the time at that rate.
//! 4. So do the system statistics: the mean times of a random block and of a large sequential
//!    request, each alone.
//!
//! Reasons to doubt the figures (page cache, unwritten parts, a small file) are written into the
//! profile.

#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use serde::{Deserialize, Serialize};
use snowmelt_base::random::{GOLDEN, mix};

use crate::config::{IoEngine, QueueConfig};
use crate::cost::{CostModel, Law};
use crate::device::Device;
use crate::device::file::{Access, FileDevice};
use crate::device_queue::DeviceQueue;
use crate::error::{IoError, Operation};
use crate::measure::written::{WrittenBlocks, written_parts};
use crate::memory::buffer::{AlignedBuf, RawBuf};
use crate::queue::request::{Class, Request, Sink};
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// Limits of a probe.
#[derive(Debug, Clone)]
pub struct ProbeLimits {
    /// Time of all measurements together, in seconds.
    pub seconds: f64,
    /// Bytes read by all measurements together.
    pub bytes: u64,
    /// Size of the random reads, in bytes.
    pub block_bytes: u64,
    /// Size of the sequential reads, in bytes.
    pub extent_bytes: u64,
    /// Largest number of random reads at once.
    pub max_depth: u32,
    /// Engine to measure with.
    pub engine: IoEngine,
    /// Seed of the random places.
    pub seed: u64,
}

impl Default for ProbeLimits {
    fn default() -> ProbeLimits {
        ProbeLimits {
            seconds: 6.0,
            bytes: 16 << 30,
            block_bytes: 8192,
            extent_bytes: 2 << 20,
            max_depth: 128,
            engine: IoEngine::Uring,
            seed: 1,
        }
    }
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Requests kept outstanding.
    pub depth: u32,
    /// Bytes per request.
    pub request_bytes: u64,
    /// Requests per second.
    pub per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Median time of a request, in nanoseconds.
    pub p50_ns: u64,
    /// 99 of 100 were at most this, in nanoseconds.
    pub p99_ns: u64,
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The path that was asked for.
    pub path: PathBuf,
    /// The file that was read.
    pub file: PathBuf,
    /// Its length.
    pub len_bytes: u64,
    /// The engine that served.
    pub engine: String,
    /// Whether the page cache was passed by.
    pub direct: bool,
    /// Random reads by depth.
    pub random: Vec<RatePoint>,
    /// Sequential reads by depth.
    pub sequential: Vec<RatePoint>,
    /// The cost model that follows.
    pub cost: CostModel,
    /// Times of a read alone; profiles of older versions get them from the points above.
    #[serde(default)]
    pub reads: ProbedReads,
    /// Reasons to doubt the figures.
    pub doubts: Vec<String>,
}

/// Times of reads that are alone at the device: its system statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbedReads {
    /// Mean time of a read of one block, in nanoseconds (SREADTIM).
    pub single_ns: f64,
    /// Mean time of a read of many blocks, in nanoseconds (MREADTIM).
    pub multi_ns: f64,
    /// Bytes of such a read.
    pub multi_bytes: u64,
}

impl ProbedReads {
    /// Of the points that were measured at depth 1; 0 where there is none.
    fn from_points(random: &[RatePoint], sequential: &[RatePoint]) -> ProbedReads {
        let alone = |points: &[RatePoint]| points.iter().find(|p| p.depth == 1 && p.per_s > 0.0).cloned();
        let mean_ns = |point: &Option<RatePoint>| point.as_ref().map_or(0.0, |p| 1e9 / p.per_s);
        let (single, multi) = (alone(random), alone(sequential));
        ProbedReads {
            single_ns: mean_ns(&single),
            multi_ns: mean_ns(&multi),
            multi_bytes: multi.map_or(0, |p| p.request_bytes),
        }
    }
}

impl Profile {
    /// Stores it as JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), IoError> {
        self.write(path, OpenOptions::new().mode(0o666))
    }

    /// Stores it as a file of a database: its owner's alone.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, path: &Path) -> Result<(), IoError> {
        self.write(path, OpenOptions::new().mode(0o600))
    }

    fn write(&self, path: &Path, options: &mut OpenOptions) -> Result<(), IoError> {
        let name: Arc<str> = path.display().to_string().into();
        let text = serde_json::to_string_pretty(self).expect("a profile is plain data") + "\n";
        let made = options.write(true).create(true).truncate(true).open(path);
        let written = made.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|e| IoError::os(&name, Operation::Write, 0, 0, &e))
    }

    /// Reads what `save` (or `snowmelt probe --format json`) has written.
    ///
    /// # Errors
    /// The file cannot be read, or is no profile.
    pub fn load(path: &Path) -> Result<Profile, IoError> {
        Self::read(path, &OpenOptions::new())
    }

    /// Reads what `keep` has written: something else may have its name, and a pipe is not waited
    /// for.
    ///
    /// # Errors
    /// The file cannot be read, or is no profile.
    pub fn load_kept(path: &Path) -> Result<Profile, IoError> {
        Self::read(path, OpenOptions::new().custom_flags(libc::O_NONBLOCK))
    }

    fn read(path: &Path, options: &OpenOptions) -> Result<Profile, IoError> {
        /// No profile is as long.
        const MOST_BYTES: u64 = 4 << 20;
        let name: Arc<str> = path.display().to_string().into();
        let mut text = Vec::new();
        let opened = options.clone().read(true).open(path);
        let read = opened.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text));
        read.map_err(|e| IoError::os(&name, Operation::Read, 0, 0, &e))?;
        let not_one = |e: serde_json::Error| {
            IoError::invalid(&name, Operation::Read, format!("not a device profile: {e}"))
        };
        let mut profile: Profile = serde_json::from_slice(&text).map_err(not_one)?;
        if !profile.cost.is_possible() {
            let why = "not a device profile: no device has its costs".to_owned();
            return Err(IoError::invalid(&name, Operation::Read, why));
        }
        if profile.reads == ProbedReads::default() {
            profile.reads = ProbedReads::from_points(&profile.random, &profile.sequential);
        }
        Ok(profile)
    }
}

/// Smallest file worth measuring.
const LEAST_BYTES: u64 = 64 << 20;

/// Measures the device under `path` (a file, a directory, a block device) by reading.
///
/// # Errors
/// There is nothing large enough to read, or reading fails.
pub fn probe(path: &Path, limits: &ProbeLimits) -> Result<Profile, IoError> {
    let file = find_file(path)?;
    let device = FileDevice::open(&file, Access::Read, true)?;
    let direct = device.is_direct();
    let device: Arc<dyn Device> = Arc::new(device);
    let len_bytes = device.len()?;
    if len_bytes < LEAST_BYTES {
        let why = format!(
            "{len_bytes} bytes are too few to measure a device with: give a file or block device of at least {} MiB, \
             or a directory that holds one (a probe only reads, and makes no file itself)",
            LEAST_BYTES >> 20
        );
        return Err(IoError::invalid(device.name(), Operation::Open, why));
    }
    let parts = written_parts(&file, len_bytes)
        .map_err(|e| IoError::os(device.name(), Operation::Open, 0, len_bytes, &e))?;
    let written: u64 = parts.iter().map(|(_, len)| len).sum();
    let extents = WrittenBlocks::new(&parts, limits.extent_bytes).count();
    if written < LEAST_BYTES || extents == 0 {
        let why = format!(
            "of its {} MiB only {} were ever written, and the rest is read without the device: write at least {} MiB \
             in one piece (for example `head -c 1G /dev/urandom > FILE`), or give another file or the block device",
            len_bytes >> 20,
            written >> 20,
            LEAST_BYTES >> 20
        );
        return Err(IoError::invalid(device.name(), Operation::Open, why));
    }
    let depths: Vec<u32> =
        std::iter::successors(Some(1), |d| Some(d * 2)).take_while(|&d| d <= limits.max_depth).collect();
    let points = depths.len() + 3;
    let share = Allowance { seconds: limits.seconds / points as f64, bytes: limits.bytes / points as u64 };
    let mut engine = limits.engine.as_str();
    let mut measure = |block, depth, places| -> Result<RatePoint, IoError> {
        let (point, served) = run(&device, &parts, block, depth, places, limits, &share)?;
        engine = served;
        Ok(point)
    };
    let mut random = Vec::new();
    for depth in depths {
        random.push(measure(limits.block_bytes, depth, ProbePattern::Random)?);
        if no_longer_grows(&random) {
            break;
        }
    }
    let mut sequential = Vec::new();
    for depth in [1, 2, 4] {
        sequential.push(measure(limits.extent_bytes, depth, ProbePattern::Sequential)?);
    }
    let cost = fit(&random, &sequential);
    let reads = ProbedReads::from_points(&random, &sequential);
    let doubts = doubts(direct, len_bytes, written);
    let engine = engine.to_string();
    Ok(Profile {
        path: path.to_path_buf(),
        file,
        len_bytes,
        engine,
        direct,
        random,
        sequential,
        cost,
        reads,
        doubts,
    })
}

/// Two doublings of the depth in a row that gave less than 3 % each: deeper is not measured.
fn no_longer_grows(random: &[RatePoint]) -> bool {
    let grew = |pair: &[RatePoint]| pair[1].per_s > pair[0].per_s * 1.03;
    random.len() > 4 && random[random.len() - 3..].windows(2).all(|pair| !grew(pair))
}

fn fit(random: &[RatePoint], sequential: &[RatePoint]) -> CostModel {
    let rate = |points: &[RatePoint], of: fn(&RatePoint) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let best = rate(random, |p| p.per_s);
    let bytes_per_s = rate(sequential, |p| p.bytes_per_s).max(rate(random, |p| p.bytes_per_s));
    let enough =
        random.iter().find(|p| p.per_s >= 0.9 * best).expect("the best is at least nine tenths of the best");
    let transfer_ns = random[0].request_bytes as f64 / bytes_per_s * 1e9;
    CostModel {
        latency_ns: (random[0].p50_ns as f64 - transfer_ns).max(1000.0) as u64,
        ns_per_request: (1e9 / best - transfer_ns).max(100.0) as u64,
        bytes_per_s: bytes_per_s as u64,
        depth: enough.depth,
        law: Law::Sum,
    }
}

fn doubts(direct: bool, len: u64, written: u64) -> Vec<String> {
    let mut doubts = Vec::new();
    if !direct {
        doubts.push("O_DIRECT is refused here: the page cache was measured as well".to_string());
    }
    if written < len {
        let (written, len) = (written >> 20, len >> 20);
        doubts.push(format!("{written} of {len} MiB were ever written: the rest was not measured"));
    }
    if written < 1 << 30 {
        doubts.push(
            "the file is small: a cache in the device, its controller or a hypervisor may hold all of it"
                .to_string(),
        );
    }
    doubts
}

/// The block device or file itself, or the largest file under a directory.
fn find_file(path: &Path) -> Result<PathBuf, IoError> {
    let name: Arc<str> = path.display().to_string().into();
    let meta = path.metadata().map_err(|e| IoError::os(&name, Operation::Open, 0, 0, &e))?;
    if meta.is_file() || meta.file_type().is_block_device() {
        return Ok(path.to_path_buf());
    }
    let largest = if meta.is_dir() { largest_file(path, 4) } else { None };
    match largest {
        Some((len, file)) if len >= LEAST_BYTES => Ok(file),
        _ => Err(IoError::invalid(
            &name,
            Operation::Open,
            format!(
                "no file of at least {} MiB to read in it: make one on that device first (for example \
                 `head -c 1G /dev/urandom > FILE`), or give the block device; a probe itself writes nothing",
                LEAST_BYTES >> 20
            ),
        )),
    }
}

fn largest_file(dir: &Path, levels: u32) -> Option<(u64, PathBuf)> {
    let entries = std::fs::read_dir(dir).ok()?.flatten().take(10_000);
    let sized = entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?; // of a link: its own, so it is passed over
        match () {
            () if meta.is_file() => Some((meta.len(), entry.path())),
            () if meta.is_dir() && levels > 1 => largest_file(&entry.path(), levels - 1),
            () => None,
        }
    });
    sized.max()
}

struct Allowance {
    seconds: f64,
    bytes: u64,
}

#[derive(Clone, Copy)]
enum ProbePattern {
    Random,
    Sequential,
}

/// Keeps a number of reads outstanding: each completion begins the next.
struct ProbePump {
    queue: OnceLock<Weak<DeviceQueue>>,
    /// Addresses of the buffers, by tag.
    bufs: Vec<usize>,
    blocks: WrittenBlocks,
    places: ProbePattern,
    turn: AtomicU64,
    until_ns: u64,
    /// Requests that may still be begun.
    budget: AtomicU64,
    clock: Clock,
    outstanding: AtomicU64,
    failed: OnceLock<IoError>,
    stopped: AtomicBool,
    over: EventCount,
}

impl ProbePump {
    fn request(&self, tag: u64) -> Request {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let place = match self.places {
            ProbePattern::Sequential => turn % self.blocks.count(),
            ProbePattern::Random => mix(turn.wrapping_mul(GOLDEN)) % self.blocks.count(),
        };
        // SAFETY: the buffers live until the queue is closed, and one request at a time has
        // each.
        let buf = unsafe { RawBuf::read_into(self.bufs[tag as usize] as *mut u8, self.blocks.len()) };
        Request { offset: self.blocks.offset(place), buf, class: Class::Demand, tag }
    }

    fn may_go_on(&self) -> bool {
        let budget = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        budget.is_ok() && !self.stopped.load(Ordering::Relaxed) && self.clock.now_ns() < self.until_ns
    }
}

impl Sink for ProbePump {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        if let Err(e) = result {
            let _ = self.failed.set(e); // the first one is told
            self.stopped.store(true, Ordering::Relaxed);
        }
        let queue = self.queue.get().and_then(Weak::upgrade);
        match queue.filter(|_| self.may_go_on()) {
            Some(queue) => queue.submit(&mut vec![self.request(tag)]),
            None => {
                self.outstanding.fetch_sub(1, Ordering::SeqCst);
                self.over.notify_all();
            }
        }
    }
}

fn run(
    device: &Arc<dyn Device>,
    parts: &[(u64, u64)],
    block: u64,
    depth: u32,
    places: ProbePattern,
    limits: &ProbeLimits,
    share: &Allowance,
) -> Result<(RatePoint, &'static str), IoError> {
    let clock = Clock::real();
    let mut bufs: Vec<AlignedBuf> = (0..depth).map(|_| AlignedBuf::new(block as usize)).collect();
    let began = clock.now_ns();
    let pump = Arc::new(ProbePump {
        queue: OnceLock::new(),
        bufs: bufs.iter_mut().map(|b| b.as_mut_ptr() as usize).collect(),
        blocks: WrittenBlocks::new(parts, block),
        places,
        turn: AtomicU64::new(limits.seed << 32),
        until_ns: began + (share.seconds * 1e9) as u64,
        budget: AtomicU64::new(share.bytes / block),
        outstanding: AtomicU64::new(u64::from(depth)),
        failed: OnceLock::new(),
        stopped: AtomicBool::new(false),
        over: EventCount::new(&clock),
        clock: clock.clone(),
    });
    let config = QueueConfig {
        engine: if limits.engine == IoEngine::Inline { IoEngine::Threads } else { limits.engine },
        depth: Some(depth),
        gap_bytes: Some(0),
        max_request_bytes: block, // nothing is merged
        ..Default::default()
    };
    let queue = DeviceQueue::open(device.clone(), config, clock.clone(), pump.clone())?;
    pump.queue.set(Arc::downgrade(&queue)).expect("set once");
    queue.submit(&mut (0..u64::from(depth)).map(|tag| pump.request(tag)).collect());
    pump.over.wait_until(|| pump.outstanding.load(Ordering::SeqCst) == 0);
    let seconds = (clock.now_ns() - began) as f64 / 1e9;
    queue.close();
    drop(bufs);
    if let Some(e) = pump.failed.get() {
        return Err(e.clone());
    }
    let latency = queue.counters().class(Class::Demand).latency;
    let per_s = latency.count as f64 / seconds;
    let point = RatePoint {
        depth,
        request_bytes: block,
        per_s,
        bytes_per_s: per_s * block as f64,
        p50_ns: latency.p50_ns,
        p99_ns: latency.p99_ns,
    };
    Ok((point, queue.engine()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(depth: u32, request_bytes: u64, per_s: f64, p50_ns: u64) -> RatePoint {
        RatePoint {
            depth,
            request_bytes,
            per_s,
            bytes_per_s: per_s * request_bytes as f64,
            p50_ns,
            p99_ns: p50_ns,
        }
    }

    #[test]
    fn a_capped_volume_is_recognised() {
        let iops = [333.0, 666.0, 1333.0, 2666.0, 3000.0, 3000.0];
        let random: Vec<_> =
            iops.iter().enumerate().map(|(i, &n)| point(1 << i, 8192, n, 3_000_000)).collect();
        let sequential = [point(1, 2 << 20, 62.5, 16_000_000)];
        assert!(
            !no_longer_grows(&random[..5])
                && no_longer_grows(&[&random[..], &[point(64, 8192, 3000.0, 1)]].concat())
        );
        let cost = fit(&random, &sequential);
        assert_eq!((cost.depth, cost.bytes_per_s), (16, 125 << 20));
        assert!((cost.request_ns(8192) as f64 / 333_333.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn what_was_never_written_is_not_measured() {
        use rustix::fs::FallocateFlags;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let small = ProbeLimits { seconds: 0.2, bytes: 64 << 20, ..Default::default() };
        let file = std::fs::File::create(&path).unwrap();
        if rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 256 << 20).is_err()
            || written_parts(&path, 256 << 20).unwrap() == [(0, 256 << 20)]
        {
            eprintln!("skipped: this file system does not reserve room, or does not tell it");
            return;
        }
        let refused = probe(&path, &small).unwrap_err().to_string();
        assert!(refused.contains("of its 256 MiB only 0 were ever written"), "{refused}");
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 64 << 20], 32 << 20).unwrap();
        file.sync_all().unwrap();
        let profile = probe(&path, &small).unwrap();
        let doubt = "64 of 256 MiB were ever written: the rest was not measured";
        assert!(profile.doubts.iter().any(|told| told == doubt), "{:?}", profile.doubts);
    }

    #[test]
    fn a_probe_of_a_file_gives_a_profile_that_can_be_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let small = ProbeLimits { seconds: 0.2, bytes: 64 << 20, ..Default::default() };
        let error = probe(dir.path(), &small).unwrap_err();
        assert!(error.to_string().contains("at least 64 MiB"), "{error}");
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        std::fs::write(dir.path().join("deep/data"), vec![1; 64 << 20]).unwrap();
        let profile = probe(dir.path(), &small).unwrap();
        assert_eq!(profile.file, dir.path().join("deep/data"));
        assert!(profile.random.iter().all(|p| p.per_s > 0.0) && profile.sequential.len() == 3);
        assert!(profile.doubts.iter().any(|d| d.contains("small")));
        let stored = dir.path().join("profile.json");
        profile.save(&stored).unwrap();
        assert_eq!(Profile::load(&stored).unwrap().cost, profile.cost);
        assert!(profile.reads.single_ns > 0.0 && profile.reads.multi_ns > 0.0);
        assert_eq!(profile.reads.multi_bytes, 2 << 20);
        // A version that did not know of system statistics has measured them all the same.
        let mut old = serde_json::to_value(&profile).unwrap();
        old.as_object_mut().unwrap().remove("reads").unwrap();
        std::fs::write(&stored, old.to_string()).unwrap();
        let again = Profile::load(&stored).unwrap().reads;
        assert!((again.single_ns / profile.reads.single_ns - 1.0).abs() < 1e-9, "{again:?}");
        assert!((again.multi_ns / profile.reads.multi_ns - 1.0).abs() < 1e-9, "{again:?}");
        std::fs::write(&stored, "{}").unwrap();
        assert!(Profile::load(&stored).unwrap_err().to_string().contains("not a device profile"));
    }
}
