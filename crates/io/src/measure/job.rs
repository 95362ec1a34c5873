//! Jobs: a steady load on one file, as fio runs it, for measuring devices rather than this
//! library.
//!
//! A job keeps `iodepth` requests of `bs` bytes outstanding, at places that follow a pattern,
//! until its time is over. The engines `uring`, `threads`, `inline`, `mmap` and `vectored` have
//! loops of their own below the scheduler: the cost of a request is then the kernel's. With
//! [`JobEngine::Queue`] the same load goes through a [`DeviceQueue`](crate::DeviceQueue); the
//! difference is the cost of the scheduler, or what its order is worth where fewer requests may be
//! at the device than are outstanding.
//!
//! Names and units are fio's: `rw`, `bs`, `iodepth`, `iops`, `clat`.

mod buffers;
mod direction;
mod faults;
mod mapped;
mod places;
mod queued;
mod ring;
mod stamp;
mod tally;
mod vectored;
mod workers;
mod zipf;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::fs::{AtFlags, StatxFlags};

use crate::config::IoEngine;
use crate::device::{Alignment, Device};
use crate::error::{IoError, Operation};
use crate::queue::order::Policy;
use crate::system::priority::IoPriority;

pub use direction::JobDirection;
pub use places::{Pattern, Places};
pub use stamp::{FoundInstead, LEAST_STAMPED, StampFault, check_stamp, stamp};
pub use tally::{CpuUse, JobResult, OneWay};

/// The engine that carries the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEngine {
    /// One thread with a ring (fio: `io_uring`).
    Uring,
    /// `iodepth` threads with one request each (fio: `psync` with `numjobs`).
    Threads,
    /// One thread with one request (fio: `psync`); `iodepth` is 1.
    Inline,
    /// One thread that touches mapped memory (fio: `mmap`); `iodepth` is 1.
    Mmap,
    /// One thread that moves runs of adjacent requests, of `iodepth` sorted ones, by one call
    /// each (fio: `vsync`).
    Vectored,
    /// A queue with its scheduler.
    Queue(IoEngine),
}

/// A load.
#[derive(Debug, Clone)]
pub struct Job {
    /// The engine that carries the requests.
    pub engine: JobEngine,
    /// The order of those that wait in a queue.
    pub policy: Policy,
    /// Which requests read, and which write what is in the buffers (random bytes).
    pub rw: JobDirection,
    /// Bytes per request.
    pub bs: u64,
    /// The buffers lie in huge pages (fio: `mem=mmaphuge`, but transparent ones: none need be
    /// reserved).
    pub huge_pages: bool,
    /// Requests outstanding.
    pub iodepth: u32,
    /// Most of them at the device, of a job through a queue; the others wait in its order. All
    /// without.
    pub queue_depth: Option<u32>,
    /// Priority of the requests; without, that of the calling thread.
    pub ioprio: Option<IoPriority>,
    /// Writes are stamped with this seed and their offsets, see [`stamp`].
    pub verify: Option<u64>,
    /// Where the requests go.
    pub places: Places,
    /// The first place, counted from 0: a job can go on where another stopped.
    pub first: u64,
    /// Most requests; `u64::MAX` for as many as the time allows.
    pub most: u64,
    /// When to begin no more requests.
    pub runtime: Duration,
    /// Length of the intervals in which completions are counted.
    pub interval: Duration,
}

impl Job {
    /// Direction and offset of request number `i`, counted from the first place of all.
    fn request(&self, i: u64) -> (bool, u64) {
        (self.rw.writes(i), self.places.at(i))
    }
}

impl JobEngine {
    /// Most requests it can keep outstanding; `None` for any number.
    pub fn most_depth(self) -> Option<u32> {
        match self {
            JobEngine::Inline | JobEngine::Mmap | JobEngine::Queue(IoEngine::Inline) => Some(1),
            JobEngine::Uring | JobEngine::Threads | JobEngine::Vectored | JobEngine::Queue(..) => None,
        }
    }
}

/// A file opened for jobs: with O_DIRECT or not, never one in place of the other.
pub struct JobFile {
    name: Arc<str>,
    file: File,
    alignment: Alignment,
    len: u64,
}

impl JobFile {
    /// Opens a file or block device that exists.
    ///
    /// # Errors
    /// The file cannot be opened as asked, O_DIRECT included.
    pub fn open(path: &std::path::Path, write: bool, direct: bool) -> Result<JobFile, IoError> {
        let name: Arc<str> = path.display().to_string().into();
        let fail = |e: std::io::Error| IoError::os(&name, Operation::Open, 0, 0, &e);
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let file = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path).map_err(fail)?;
        // The end of a block device is found by seeking only.
        let len = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
            .map_err(|e| IoError::os(&name, Operation::Length, 0, 0, &e.into()))?;
        let alignment = if direct { direct_alignment(&file, &name)? } else { Alignment::NONE };
        Ok(JobFile { name, file, alignment, len })
    }

    /// Multiples that requests must be.
    pub fn alignment(&self) -> Alignment {
        self.alignment
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn error(&self, write: bool, offset: u64, len: u64, error: &std::io::Error) -> IoError {
        let operation = if write { Operation::Write } else { Operation::Read };
        IoError::os(&self.name, operation, offset, len, error)
    }
}

fn direct_alignment(file: &File, name: &Arc<str>) -> Result<Alignment, IoError> {
    let unknown = Alignment { memory: 4096, offset: 4096 };
    match rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(s) if s.stx_mask & StatxFlags::DIOALIGN.bits() == 0 => Ok(unknown),
        Ok(s) if s.stx_dio_offset_align == 0 => {
            Err(IoError::invalid(name, Operation::Open, "the file system has no O_DIRECT for this file"))
        }
        Ok(s) => {
            Ok(Alignment { memory: s.stx_dio_mem_align as usize, offset: s.stx_dio_offset_align as usize })
        }
        Err(_) => Ok(unknown), // kernels before 6.1 cannot say
    }
}

/// Runs `job` on `file` until its time or its requests are over, or `stop` is set. Fails at the
/// first request that fails.
///
/// # Errors
/// The job does not fit the file, its engine needs a queue, or a request failed.
pub fn run_job(file: &JobFile, job: &Job, stop: &AtomicBool) -> Result<JobResult, IoError> {
    check(job, file.alignment, file.len, &file.name)?;
    with_priority(job, &file.name, || match job.engine {
        JobEngine::Uring => ring::run(file, job, stop),
        JobEngine::Threads => workers::run(file, job, job.iodepth, stop),
        JobEngine::Inline => workers::run(file, job, 1, stop),
        JobEngine::Mmap => mapped::run(file, job, stop),
        JobEngine::Vectored => vectored::run(file, job, stop),
        JobEngine::Queue(..) => {
            let message = "a queue needs a device: run_job_on";
            Err(IoError::invalid(&file.name, Operation::Engine, message))
        }
    })
}

/// Runs a job on a thread that has its priority, so that none is left on the caller's.
fn with_priority(
    job: &Job,
    name: &Arc<str>,
    run: impl FnOnce() -> Result<JobResult, IoError> + Send,
) -> Result<JobResult, IoError> {
    let Some(priority) = job.ioprio else { return run() };
    let prioritised = || {
        priority.apply().map_err(|e| IoError::os(name, Operation::Priority, 0, 0, &e))?;
        run()
    };
    std::thread::scope(|scope| scope.spawn(prioritised).join().expect("a job does not panic"))
}

/// Runs `job` on a device of any kind through a queue, whatever its engine.
///
/// # Errors
/// The job does not fit the device, or a request failed.
pub fn run_job_on(device: &Arc<dyn Device>, job: &Job, stop: &AtomicBool) -> Result<JobResult, IoError> {
    check(job, device.alignment(), device.len()?, device.name())?;
    if job.ioprio.is_some() {
        let message = "a queue gives its requests the priorities of their classes";
        return Err(IoError::invalid(device.name(), Operation::Engine, message));
    }
    let engine = match job.engine {
        JobEngine::Queue(engine) => engine,
        JobEngine::Uring => IoEngine::Uring,
        JobEngine::Threads => IoEngine::Threads,
        JobEngine::Inline | JobEngine::Mmap | JobEngine::Vectored => IoEngine::Inline,
    };
    queued::run(device, job, engine, stop)
}

/// Refuses what no request could do.
fn check(job: &Job, alignment: Alignment, len: u64, name: &Arc<str>) -> Result<(), IoError> {
    let operation = if job.rw.any_write() { Operation::Write } else { Operation::Read };
    let invalid = |why: String| Err(IoError::invalid(name, operation, why));
    let unit = alignment.offset as u64;
    if job.bs == 0 || job.iodepth == 0 {
        return invalid("a job needs a size and a depth above zero".into());
    }
    if !job.bs.is_multiple_of(unit) || !job.places.align().is_multiple_of(unit) {
        return invalid(format!("O_DIRECT needs sizes and offsets that are multiples of {unit} bytes here"));
    }
    if job.verify.is_some() && job.bs < LEAST_STAMPED {
        return invalid(format!("a block that can be verified has at least {LEAST_STAMPED} bytes"));
    }
    if job.queue_depth == Some(0) {
        return invalid("at a depth of 0 the device gets nothing".into());
    }
    if job.places.end(job.bs) > len {
        return invalid(format!("the file has {len} bytes only"));
    }
    Ok(())
}

/// An error of the operating system in a result of a system call.
fn os_error(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

#[cfg(test)]
mod tests;
