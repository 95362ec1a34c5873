//! Measures a device from outside, in its own time: a model in virtual time, or a block device
//! in real time.
//!
//! Models and block devices are measured by the same code: clients are threads that read or write
//! in place, one request each. Only random reads of a block device go through the ring of one
//! thread, which submits many at once: waking as many threads takes longer than a fast device does.

use std::io::{IoSlice, IoSliceMut};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use parking_lot::Mutex;
use snowmelt_base::random::{GOLDEN, mix};
use snowmelt_io::{
    Access, AlignedBuf, Clock, Device, DeviceModel, FileDevice, IoError, Job, JobDirection, JobEngine,
    JobFile, Pattern, Places, Policy, SimulatedDevice, SparseMemoryDevice, SteadyLoad, run_job,
};

const MS: f64 = 1e6;

/// The smallest request.
const SECTOR: u64 = 512;

/// Something to be measured.
pub struct DeviceTarget {
    device: Arc<dyn Device>,
    clock: Clock,
    len: u64,
    /// Measurements may take so much of real time that they take fewer samples.
    real: bool,
    /// A block device, for jobs.
    file: Option<JobFile>,
    /// The model, in virtual time.
    simulated: Option<Arc<SimulatedDevice>>,
}

/// Latencies of a number of requests, and how long all took.
pub struct Sample {
    /// Each in nanoseconds, ascending.
    pub ns: Vec<u64>,
    /// From the first begin to the last end.
    pub total_ns: u64,
    /// Bytes moved.
    pub bytes: u64,
}

impl Sample {
    /// Mean latency in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.ns.iter().sum::<u64>() as f64 / self.ns.len() as f64 / MS
    }

    /// The `q` quantile in milliseconds.
    pub fn quantile_ms(&self, q: f64) -> f64 {
        self.ns[((self.ns.len() - 1) as f64 * q).round() as usize] as f64 / MS
    }

    /// Requests per second.
    pub fn per_s(&self) -> f64 {
        self.ns.len() as f64 / self.total_ns as f64 * 1e9
    }

    /// Bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.total_ns as f64 * 1e9
    }
}

/// A number of requests.
#[derive(Debug, Clone, Copy)]
pub struct DeviceLoad {
    /// Clients with one request each outstanding.
    pub depth: u64,
    /// Requests of all together.
    pub requests: u64,
    pub block: u64,
    pub write: bool,
}

impl DeviceTarget {
    /// A model with nothing around it, in virtual time; exact, and the same every time.
    pub fn model(model: &DeviceModel, len: u64) -> DeviceTarget {
        let clock = Clock::virtual_time(1024); // processors are not what is measured
        let bytes = Arc::new(SparseMemoryDevice::new("model", len, 1 << 40));
        let device = Arc::new(SimulatedDevice::new(model.clone(), bytes, &clock));
        DeviceTarget { device: device.clone(), clock, len, real: false, file: None, simulated: Some(device) }
    }

    /// A block device, past the page cache. Writes need `write`.
    pub fn block_device(path: &Path, write: bool) -> Result<DeviceTarget, IoError> {
        let access = if write { Access::ReadWrite } else { Access::Read };
        let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, access, true)?);
        let len = device.len()?;
        let file = Some(JobFile::open(path, false, true)?);
        Ok(DeviceTarget { device, clock: Clock::real(), len, real: true, file, simulated: None })
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// `few` in real time, `many` in virtual.
    pub fn count(&self, few: u64, many: u64) -> u64 {
        if self.real { few } else { many }
    }

    /// Has a model's burst credits be gone; those of a block device are its server's.
    pub fn spend_credits(&self) {
        self.simulated.iter().for_each(|simulated| simulated.spend_credits());
    }

    /// The ends of a load on the model alone, in seconds: without threads, hours take a moment.
    fn ends_s(&self, load: SteadyLoad) -> impl Iterator<Item = f64> {
        let simulated = self.simulated.as_ref().expect("measured on the model only");
        let ends = load.on(simulated.model()).expect("a model that runs is in bounds");
        ends.map(|ns| ns as f64 / 1e9)
    }

    /// How long `load` gets more than `per_s` per second, in seconds.
    pub fn lasts_s(&self, load: SteadyLoad, per_s: f64) -> f64 {
        // Allows for many requests, so that one slow request does not end it.
        let many = (per_s / 2.0).ceil().max(1.0) as usize;
        let mut begin_s = 0.0;
        let slow = |end_s: &f64| {
            let is_slow = many as f64 / (end_s - begin_s) < per_s;
            begin_s = *end_s;
            is_slow
        };
        self.ends_s(load).skip(many - 1).step_by(many).find(slow).expect("credits end")
    }

    /// The time of `n` requests of `load`, in seconds.
    pub fn takes_s(&self, load: SteadyLoad, n: u64) -> f64 {
        self.ends_s(load).nth(n as usize - 1).expect("it has no end")
    }

    /// Copies `pieces` of 1 MiB from one half of the device to the other, several at once: reads
    /// of some go on while others are written. Bytes copied per second.
    pub fn copy_bytes_per_s(&self, pieces: u64) -> Result<f64, IoError> {
        const PIECE: u64 = 1 << 20;
        let to = self.len / 2 / PIECE * PIECE;
        let pieces = pieces.min(to / PIECE); // a small device has fewer
        let next = AtomicU64::new(0);
        let client = |_| -> Result<(u64, u64), IoError> {
            let mut buf = AlignedBuf::new(PIECE as usize);
            let began = self.clock.now_ns();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed) * PIECE;
                if at >= pieces * PIECE {
                    return Ok((began, self.clock.now_ns()));
                }
                self.transfer(at, &mut buf, false)?;
                self.transfer(to + at, &mut buf, true)?;
            }
        };
        let spans = self.clients(4, client).into_iter().collect::<Result<Vec<_>, IoError>>()?;
        let began = spans.iter().map(|(began, _)| *began).min().unwrap_or_default();
        let ended = spans.iter().map(|(_, ended)| *ended).max().unwrap_or_default();
        Ok((pieces * PIECE) as f64 / (ended - began).max(1) as f64 * 1e9)
    }

    /// Writes of 4 KiB at random places, each followed by a flush. Bytes per second.
    pub fn synced_bytes_per_s(&self, writes: u64) -> Result<f64, IoError> {
        let client = |_| -> Result<f64, IoError> {
            let mut buf = AlignedBuf::new(4096);
            let began = self.clock.now_ns();
            for n in 0..writes {
                self.transfer(random(55, n) % (self.len / 4096) * 4096, &mut buf, true)?;
                self.device.sync()?;
            }
            Ok((writes * 4096) as f64 / (self.clock.now_ns() - began) as f64 * 1e9)
        };
        self.clients(1, client).pop().expect("one client")
    }

    fn transfer(&self, offset: u64, buf: &mut AlignedBuf, write: bool) -> Result<u64, IoError> {
        let began = self.clock.now_ns();
        match write {
            true => self.device.write_at(&[IoSlice::new(buf)], offset)?,
            false => self.device.read_at(&mut [IoSliceMut::new(buf)], offset)?,
        }
        Ok(self.clock.now_ns() - began)
    }

    /// Runs `body` in `clients` threads, in the device's time.
    fn clients<R: Send>(&self, clients: u64, body: impl Fn(u64) -> R + Sync) -> Vec<R> {
        let tickets = self.clock.reserve(clients as usize);
        std::thread::scope(|scope| {
            let body = &body;
            let threads: Vec<_> = (0..clients)
                .zip(tickets)
                .map(|(i, ticket)| {
                    scope.spawn(move || {
                        if self.real {
                            // The device is measured, not who else uses the machine.
                            snowmelt_io::run_urgently();
                        }
                        let _part = ticket.enter();
                        body(i)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("clients do not panic")).collect()
        })
    }

    /// Requests at the places `place` gives for their numbers.
    pub fn run(&self, load: DeviceLoad, place: impl Fn(u64) -> u64 + Sync) -> Result<Sample, IoError> {
        let next = AtomicU64::new(0);
        let began = Mutex::new(None);
        let start = Barrier::new(load.depth as usize);
        let client = |_| {
            let mut buf = AlignedBuf::new(load.block as usize);
            if self.real {
                start.wait(); // in virtual time all begin at once anyhow
            }
            began.lock().get_or_insert_with(|| self.clock.now_ns());
            let mut ns = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= load.requests {
                    return Ok((ns, self.clock.now_ns()));
                }
                ns.push(self.transfer(place(n), &mut buf, load.write)?);
            }
        };
        let results: Vec<Result<_, IoError>> = self.clients(load.depth, client);
        let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let ended = results.iter().map(|(_, end)| *end).max().unwrap_or_default();
        let mut ns: Vec<u64> = results.into_iter().flat_map(|(ns, _)| ns).collect();
        ns.sort_unstable();
        let began = began.lock().unwrap_or_default();
        Ok(Sample { ns, total_ns: (ended - began).max(1), bytes: load.requests * load.block })
    }

    /// At random places all over the device.
    pub fn random(&self, load: DeviceLoad, seed: u64) -> Result<Sample, IoError> {
        if let Some(file) = self.file.as_ref().filter(|_| !load.write) {
            return self.through_ring(file, load, seed);
        }
        let blocks = self.len / load.block;
        self.run(load, |n| random(seed, n) % blocks * load.block)
    }

    fn through_ring(&self, file: &JobFile, load: DeviceLoad, seed: u64) -> Result<Sample, IoError> {
        let places = Places::new(Pattern::Random, load.block, load.block, 0, self.len, seed);
        let job = Job {
            engine: JobEngine::Uring,
            policy: Policy::Elevator,
            rw: JobDirection::Read,
            bs: load.block,
            huge_pages: false,
            iodepth: load.depth as u32,
            queue_depth: None,
            ioprio: None,
            verify: None,
            places: places.expect("a device is longer than a request"),
            first: 0,
            most: load.requests,
            runtime: Duration::from_secs(3600),
            interval: Duration::from_secs(1),
        };
        let threads = Job { engine: JobEngine::Threads, ..job.clone() };
        let stop = AtomicBool::new(false);
        // Threads where rings are not permitted.
        let run = |_| run_job(file, &job, &stop).or_else(|_| run_job(file, &threads, &stop));
        let result = self.clients(1, run).pop().expect("one client")?;
        let recorded = result.clat_ns.iter_recorded();
        let ns = recorded.flat_map(|v| (0..v.count_at_value()).map(move |_| v.value_iterated_to()));
        Ok(Sample { ns: ns.collect(), total_ns: result.runtime_ns.max(1), bytes: result.io_bytes })
    }

    /// One after the other, from `start` on.
    pub fn sequential(&self, start: u64, bytes: u64, block: u64, write: bool) -> Result<Sample, IoError> {
        let start = start / block * block;
        self.run(DeviceLoad { depth: 1, requests: bytes / block, block, write }, |n| start + n * block)
    }

    /// Time of a read that the device has in its buffer, in milliseconds: the way there and
    /// back. With pauses as between seeks, in which a processor falls asleep.
    fn buffered_ms(&self) -> Result<f64, IoError> {
        let client = |_| -> Result<Vec<u64>, IoError> {
            let mut buf = AlignedBuf::new(SECTOR as usize);
            let place = self.len / 2 / SECTOR * SECTOR;
            self.transfer(place, &mut buf, false)?;
            let mut read = || {
                self.clock.sleep_ns(4_000_000);
                self.transfer(place, &mut buf, false)
            };
            (0..41).map(|_| read()).collect()
        };
        let mut ns = self.clients(1, client).pop().expect("one client")?;
        ns.sort_unstable();
        Ok(ns[ns.len() / 2] as f64 / MS)
    }

    /// Seek time over `way` of the whole stroke of `capacity`, in milliseconds: the shortest of
    /// many reads from somewhere and then that far away, in which the platter happened to stand
    /// right, less the way there and back. None when the buffer had all of them.
    pub fn seek_ms(&self, way: f64, capacity: u64) -> Result<Option<f64>, IoError> {
        let distance = (way * capacity as f64) as u64 / SECTOR;
        // A turn's worth of places, so that the platter stands everywhere once; never far from
        // the distance.
        let spread = (distance / 8).clamp(1, (2 << 20) / SECTOR);
        let room = (self.len / SECTOR).saturating_sub(distance + 1).max(1);
        let pairs = self.count(400, 1500);
        let buffered_ms = self.buffered_ms()?;
        // A read from a buffer was no seek.
        let no_seek_ns = ((2.0 * buffered_ms + 0.1) * MS) as u64;
        let shortest = AtomicU64::new(u64::MAX);
        let client = |_| -> Result<(), IoError> {
            let mut buf = AlignedBuf::new(SECTOR as usize);
            for n in 0..pairs {
                let from = random(77, n) % room;
                self.transfer(from * SECTOR, &mut buf, false)?;
                let to = from + distance - random(78, n) % spread;
                let ns = self.transfer(to * SECTOR, &mut buf, false)?;
                if ns > no_seek_ns {
                    shortest.fetch_min(ns, Ordering::Relaxed);
                }
            }
            Ok(())
        };
        self.clients(1, client).into_iter().collect::<Result<(), IoError>>()?;
        let shortest = Some(shortest.into_inner()).filter(|ns| *ns < u64::MAX);
        Ok(shortest.map(|ns| ns as f64 / MS - buffered_ms))
    }

    /// How long a flush takes after `writes` scattered writes, in milliseconds: the mean of
    /// several.
    pub fn flush_ms(&self, writes: u64) -> Result<f64, IoError> {
        let rounds = self.count(5, 40);
        let client = |_| -> Result<u64, IoError> {
            let mut buf = AlignedBuf::new(4096);
            let mut total = 0;
            for round in 0..rounds {
                self.device.sync()?;
                for n in 0..writes {
                    let place = random(1000 + round, n) % (self.len / 4096) * 4096;
                    self.transfer(place, &mut buf, true)?;
                }
                let began = self.clock.now_ns();
                self.device.sync()?;
                total += self.clock.now_ns() - began;
            }
            Ok(total)
        };
        let totals = self.clients(1, client).into_iter().collect::<Result<Vec<u64>, IoError>>()?;
        Ok(totals[0] as f64 / rounds as f64 / MS)
    }
}

/// A random number that depends on a seed and a number alone.
fn random(seed: u64, n: u64) -> u64 {
    mix(seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(n.wrapping_mul(GOLDEN)))
}
