//! A job on threads: each has one request at a time, in the system call that moves it.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::buffers::{Buffers, JobBuffer};
use super::tally::{JobTally, Start};
use super::{Job, JobFile, JobResult};
use crate::error::{IoError, Operation};

pub(super) fn run(file: &JobFile, job: &Job, threads: u32, stop: &AtomicBool) -> Result<JobResult, IoError> {
    let mut buffers = Buffers::new(job, threads);
    let start = Start::now(job.runtime, job.interval);
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let work = |buffer: JobBuffer<'_>| {
        let result = work(file, job, &start, &next, buffer, &|| {
            stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed)
        });
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    };
    let work = &work;
    let tallies: Result<Vec<JobTally>, IoError> = if threads == 1 {
        buffers.each().map(work).collect()
    } else {
        std::thread::scope(|scope| {
            let all: Vec<_> = buffers.each().map(|buffer| scope.spawn(move || work(buffer))).collect();
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
    mut buffer: JobBuffer<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<JobTally, IoError> {
    let mut tally = start.tally();
    let mut now_ns = start.elapsed_ns();
    while !start.is_over(now_ns) && !stopped() {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= job.most {
            break;
        }
        let (write, offset) = job.request(job.first + i);
        let began_ns = now_ns;
        transfer(file, write, buffer.begun(job, write, offset), offset)?;
        now_ns = start.elapsed_ns();
        tally.add(write, began_ns, now_ns);
    }
    Ok(tally)
}

fn transfer(file: &JobFile, write: bool, buf: &mut [u8], offset: u64) -> Result<(), IoError> {
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
            Ok(0) => {
                let operation = if write { Operation::Write } else { Operation::Read };
                return Err(IoError::short(&file.name, operation, offset, len, done as u64));
            }
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(file.error(write, offset, len, &e)),
        }
    }
    Ok(())
}
