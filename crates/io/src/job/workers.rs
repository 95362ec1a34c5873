//! A job on threads: each has one request at a time, in the system call that moves it.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::tally::{Start, Tally};
use super::{Job, JobFile, JobResult};
use crate::buffer::AlignedBuf;
use crate::error::{IoError, Operation};

pub(super) fn run(file: &JobFile, job: &Job, threads: u32, stop: &AtomicBool) -> Result<JobResult, IoError> {
    let start = Start::now(job.runtime, job.interval);
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let work = |i: u64| {
        let result = work(file, job, &start, &next, i, &|| {
            stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed)
        });
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    };
    let tallies: Result<Vec<Tally>, IoError> = if threads == 1 {
        work(0).map(|tally| vec![tally])
    } else {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..u64::from(threads)).map(|i| scope.spawn(move || work(i))).collect();
            all.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
        })
    };
    Ok(start.result(job.bs, tallies?))
}

fn work(
    file: &JobFile,
    job: &Job,
    start: &Start,
    next: &AtomicU64,
    worker: u64,
    stopped: &dyn Fn() -> bool,
) -> Result<Tally, IoError> {
    let mut buf = buffer(job, worker);
    let mut tally = start.tally();
    let mut now_ns = start.elapsed_ns();
    while !start.is_over(now_ns) && !stopped() {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= job.most {
            break;
        }
        let offset = job.places.at(job.first + i);
        let began_ns = now_ns;
        transfer(file, job.write, &mut buf, offset)?;
        now_ns = start.elapsed_ns();
        tally.add(began_ns, now_ns);
    }
    Ok(tally)
}

fn transfer(file: &JobFile, write: bool, buf: &mut AlignedBuf, offset: u64) -> Result<(), IoError> {
    let len = buf.len() as u64;
    let mut done = 0;
    while done < buf.len() {
        let at = offset + done as u64;
        let moved = if write {
            file.file.write_at(&buf[done..], at)
        } else {
            file.file.read_at(&mut buf[done..], at)
        };
        match moved {
            Ok(0) => return Err(IoError::short(&file.name, Operation::Read, offset, len, done as u64)),
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(file.error(write, offset, len, &e)),
        }
    }
    Ok(())
}

/// A buffer for one request; for writes filled with bytes that no device could compress.
pub(super) fn buffer(job: &Job, seed: u64) -> AlignedBuf {
    let allocate = if job.huge_pages { AlignedBuf::in_huge_pages } else { AlignedBuf::new };
    let mut buf = allocate(job.bs as usize);
    buf.fill(0); // what the kernel gives at the first touch is not the device's time
    if job.write {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for chunk in buf.chunks_mut(8) {
            // xorshift64
            z ^= z << 13;
            z ^= z >> 7;
            z ^= z << 17;
            chunk.copy_from_slice(&z.to_ne_bytes()[..chunk.len()]);
        }
    }
    buf
}
