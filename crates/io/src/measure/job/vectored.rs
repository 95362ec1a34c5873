//! A job of one thread that gathers: it takes as many places as may be outstanding, sorts them,
//! reads before writes, and moves each run of adjacent ones by one `preadv` or `pwritev` (fio:
//! `vsync`).

use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};

use super::buffers::{Buffers, JobBuffer};
use super::tally::{JobTally, Start};
use super::{Job, JobFile, JobResult};
use crate::error::{IoError, Operation};

/// Most pieces of a call: the kernel's UIO_MAXIOV.
const MOST_PIECES: usize = 1024;

pub(super) fn run(file: &JobFile, job: &Job, stop: &AtomicBool) -> Result<JobResult, IoError> {
    let mut buffers = Buffers::new(job, job.iodepth);
    let start = Start::now(job.runtime, job.interval);
    let mut tally = start.tally();
    let mut taken = 0;
    while taken < job.most && !start.is_over(start.elapsed_ns()) && !stop.load(Ordering::Relaxed) {
        let batch = u64::from(job.iodepth).min(job.most - taken);
        let first = job.first + taken;
        let mut requests: Vec<(bool, u64)> = (first..first + batch).map(|i| job.request(i)).collect();
        requests.sort_unstable();
        let mut pieces: Vec<JobBuffer<'_>> = buffers.each().take(batch as usize).collect();
        let mut rest = &mut pieces[..];
        for run in runs(&requests, job.bs) {
            let (of_run, others) = std::mem::take(&mut rest).split_at_mut(run.len());
            transfer_run(file, job, of_run, run, &start, &mut tally)?;
            rest = others;
        }
        taken += batch;
    }
    Ok(start.result(job.bs, vec![tally]))
}

/// Adjacent places of one direction together, as many as one call takes.
fn runs(requests: &[(bool, u64)], bs: u64) -> impl Iterator<Item = &[(bool, u64)]> {
    let adjacent = requests.chunk_by(move |one, next| *next == (one.0, one.1 + bs));
    adjacent.flat_map(|run| run.chunks(MOST_PIECES))
}

/// The time of each piece is that of the call.
fn transfer_run(
    file: &JobFile,
    job: &Job,
    buffers: &mut [JobBuffer<'_>],
    run: &[(bool, u64)],
    start: &Start,
    tally: &mut JobTally,
) -> Result<(), IoError> {
    let (write_run, offset) = run[0];
    let began_ns = start.elapsed_ns();
    let begun = buffers.iter_mut().zip(run).map(|(buffer, (write, at))| buffer.begun(job, *write, *at));
    let bufs: Vec<&mut [u8]> = begun.collect();
    match write_run {
        true => write(file, bufs, offset)?,
        false => read(file, bufs, offset)?,
    }
    let now_ns = start.elapsed_ns();
    run.iter().for_each(|_| tally.add(write_run, began_ns, now_ns));
    Ok(())
}

fn write(file: &JobFile, bufs: Vec<&mut [u8]>, offset: u64) -> Result<(), IoError> {
    let mut slices: Vec<IoSlice<'_>> = bufs.iter().map(|buf| IoSlice::new(buf)).collect();
    let mut rest = &mut slices[..];
    moved(file, true, offset, bufs.iter().map(|buf| buf.len()).sum(), |at| {
        let n = rustix::io::pwritev(&file.file, rest, at)?;
        IoSlice::advance_slices(&mut rest, n);
        Ok(n)
    })
}

fn read(file: &JobFile, mut bufs: Vec<&mut [u8]>, offset: u64) -> Result<(), IoError> {
    let len = bufs.iter().map(|buf| buf.len()).sum();
    let mut slices: Vec<IoSliceMut<'_>> = bufs.iter_mut().map(|buf| IoSliceMut::new(buf)).collect();
    let mut rest = &mut slices[..];
    moved(file, false, offset, len, |at| {
        let n = rustix::io::preadv(&file.file, rest, at)?;
        IoSliceMut::advance_slices(&mut rest, n);
        Ok(n)
    })
}

/// Calls `call` until `len` bytes from `offset` on are moved.
fn moved(
    file: &JobFile,
    write: bool,
    offset: u64,
    len: usize,
    mut call: impl FnMut(u64) -> std::io::Result<usize>,
) -> Result<(), IoError> {
    let mut done = 0;
    while done < len {
        match call(offset + done as u64) {
            Ok(0) => {
                let operation = if write { Operation::Write } else { Operation::Read };
                return Err(IoError::short(&file.name, operation, offset, len as u64, done as u64));
            }
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(file.error(write, offset, len as u64, &e)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_places_are_one_call() {
        let reads = |places: &[u64]| places.iter().map(|at| (false, *at)).collect::<Vec<_>>();
        let lens_of = |requests: &[(bool, u64)]| runs(requests, 10).map(<[_]>::len).collect::<Vec<_>>();
        let lens = |places: &[u64]| lens_of(&reads(places));
        assert_eq!(lens(&[0, 10, 20, 40, 60, 70]), [3, 1, 2]);
        assert_eq!(lens(&[5, 5, 15]), [1, 2], "a place twice is two calls");
        let many: Vec<u64> = (0..2500).map(|i| i * 10).collect();
        assert_eq!(lens(&many), [1024, 1024, 452]);
        assert_eq!(lens_of(&[(false, 0), (false, 10), (true, 20), (true, 30), (true, 50)]), [2, 2, 1]);
    }
}
