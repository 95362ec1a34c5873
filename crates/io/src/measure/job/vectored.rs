//! A job of one thread that gathers: it takes as many places as may be outstanding, sorts them,
//! and moves each run of adjacent ones by one `preadv` or `pwritev` (fio: `vsync`).

use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};

use super::buffers::Buffers;
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
        let mut places: Vec<u64> = (first..first + batch).map(|i| job.places.at(i)).collect();
        places.sort_unstable();
        let mut pieces: Vec<&mut [u8]> = buffers.each().take(batch as usize).collect();
        for run in runs(&places, job.bs) {
            let rest = pieces.split_off(run.len());
            let bufs = std::mem::replace(&mut pieces, rest);
            transfer_run(file, job, bufs, run[0], &start, &mut tally)?;
        }
        taken += batch;
    }
    Ok(start.result(job.bs, vec![tally]))
}

/// Adjacent places together, as many as one call takes.
fn runs(places: &[u64], bs: u64) -> impl Iterator<Item = &[u64]> {
    let adjacent = places.chunk_by(move |one, next| *next == one + bs);
    adjacent.flat_map(|run| run.chunks(MOST_PIECES))
}

/// The time of each piece is that of the call.
fn transfer_run(
    file: &JobFile,
    job: &Job,
    bufs: Vec<&mut [u8]>,
    offset: u64,
    start: &Start,
    tally: &mut JobTally,
) -> Result<(), IoError> {
    let pieces = bufs.len();
    let began_ns = start.elapsed_ns();
    match job.write {
        true => write(file, bufs, offset)?,
        false => read(file, bufs, offset)?,
    }
    let now_ns = start.elapsed_ns();
    (0..pieces).for_each(|_| tally.add(began_ns, now_ns));
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
        let lens = |places: &[u64]| runs(places, 10).map(<[u64]>::len).collect::<Vec<_>>();
        assert_eq!(lens(&[0, 10, 20, 40, 60, 70]), [3, 1, 2]);
        assert_eq!(lens(&[5, 5, 15]), [1, 2], "a place twice is two calls");
        let many: Vec<u64> = (0..2500).map(|i| i * 10).collect();
        assert_eq!(lens(&many), [1024, 1024, 452]);
    }
}
