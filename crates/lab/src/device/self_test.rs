//! Test of an emulated device before it is used: do many requests really reach the model at
//! once, and how long is their way?
//!
//! A loop device that is not asynchronous, or FUSE without its background limits raised, would
//! serve one request (or 12) at a time, and every scheduler would look alike. So reads are held
//! back where they reach the server, and counted, until all are there or no more come.
//!
//! The way of a request through the kernel and back is measured as well. The model hears of
//! each request earlier by that time, or fast devices would be slow.

use std::io::IoSliceMut;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snowmelt_io::{Access, AlignedBuf, Clock, FileDevice, IoError, ReadDevice};

use crate::LabError;

/// Readers at once.
const READERS: usize = 128;

/// Reads that must be at the model at once.
const LEAST: usize = 64;

/// No more come when none has come for so long: the machine may be busy.
const QUIET: Duration = Duration::from_millis(500);

type Held = Box<dyn FnOnce() + Send>;

/// Holds requests back while it is closed. A new one lets them pass by the model: until the
/// self-test has no measurement beside it, and the kernel, which flushes and reads a device
/// while it is attached, holds locks of all loop devices meanwhile.
pub struct Gate {
    held: Mutex<Option<Vec<Held>>>,
    /// Requests pass by the model.
    direct: AtomicBool,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { held: Mutex::default(), direct: AtomicBool::new(true) }
    }
}

impl Gate {
    /// Does it now, or when the gate opens.
    pub fn pass(&self, act: impl FnOnce() + Send + 'static) {
        match &mut *self.held.lock() {
            Some(held) => held.push(Box::new(act)),
            None => act(),
        }
    }

    /// True when requests are to be answered at once, without the model.
    pub fn is_direct(&self) -> bool {
        self.direct.load(Ordering::Relaxed)
    }

    fn close(&self) {
        self.held.lock().get_or_insert_default();
        self.direct.store(false, Ordering::Relaxed);
    }

    fn open(&self) {
        let held = self.held.lock().take();
        held.into_iter().flatten().for_each(|act| act());
    }

    fn count(&self) -> usize {
        self.held.lock().as_ref().map_or(0, Vec::len)
    }

    /// Returns when `all` are held or no more come: how many are.
    fn fill(&self, all: usize) -> usize {
        let (mut count, mut since) = (0, Instant::now());
        while count < all && since.elapsed() < QUIET {
            std::thread::sleep(Duration::from_millis(1));
            let now = self.count();
            if now > count {
                (count, since) = (now, Instant::now());
            }
        }
        count
    }
}

/// Reads to measure the way.
const TRIPS: u64 = 200;

/// More than this is the machine's business, not the way's.
const LONGEST_WAY_NS: u64 = 150_000;

/// The time of reads that are answered at once, in nanoseconds: of four, the quickest, so that
/// a busy moment is not made good for ever. Between two of them passes what a device of this
/// latency takes, at most a millisecond: that long a processor rests, and the longer it did the
/// longer it takes to wake.
pub fn measure_way(device: &Path, gate: &Gate, latency: Duration) -> Result<u64, LabError> {
    let file = FileDevice::open(device, Access::Read, true)?;
    let blocks = (file.len()? / 4096).max(1);
    let mut buf = AlignedBuf::new(4096);
    let clock = Clock::real();
    gate.direct.store(true, Ordering::Relaxed);
    let mut trips = Vec::new();
    for i in 0..TRIPS {
        std::thread::sleep(latency.min(Duration::from_millis(1)));
        let began = clock.now_ns();
        let read = file.read_at(&mut [IoSliceMut::new(&mut buf)], i * 7919 % blocks * 4096);
        trips.push(read.map(|()| clock.now_ns() - began));
    }
    gate.direct.store(false, Ordering::Relaxed);
    let mut trips = trips.into_iter().collect::<Result<Vec<u64>, IoError>>()?;
    trips.sort_unstable();
    Ok(trips[trips.len() / 4].min(LONGEST_WAY_NS))
}

/// Reads `device` from many threads at once. Returns how many reads were at `gate` together.
pub fn prove_depth(device: &Path, gate: &Arc<Gate>) -> Result<u64, LabError> {
    let file = FileDevice::open(device, Access::Read, true)?;
    let blocks = (file.len()? / 4096).max(1);
    let read = |i: usize| -> Result<(), IoError> {
        let mut buf = AlignedBuf::new(4096);
        // Spread over the device, so that nothing merges.
        let place = (i as u64 * 2_654_435_761 + 17) % blocks * 4096;
        file.read_at(&mut [IoSliceMut::new(&mut buf)], place)
    };
    gate.close();
    let (depth, results) = std::thread::scope(|scope| {
        let read = &read;
        let readers: Vec<_> = (0..READERS).map(|i| scope.spawn(move || read(i))).collect();
        let depth = gate.fill(READERS);
        gate.open();
        let join =
            |reader: std::thread::ScopedJoinHandle<'_, _>| reader.join().expect("readers do not panic");
        (depth, readers.into_iter().map(join).collect::<Vec<Result<(), IoError>>>())
    });
    results.into_iter().collect::<Result<(), _>>()?;
    if depth < LEAST {
        return Err(LabError::refused(
            format!("emulate a device on {}", device.display()),
            format!(
                "of {READERS} reads at once only {depth} reached the model together, so that it would be measured with a shallow queue"
            ),
            "a kernel with FUSE_ASYNC_DIO and loop devices with direct I/O is needed (5.8 or later)",
        ));
    }
    Ok(depth as u64)
}
