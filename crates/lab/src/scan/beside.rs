//! The loads that may go on beside a scan, each one request at a time until the scan is over:
//!
//! * *random-read*: single blocks of the table at random places, as an index look-up reads.
//! * *write*: single blocks of a scratch file at random places, as a cache writes back.
//! * *sort*: the requests of an external merge sort. It writes sorted runs one after the
//!   other into the first half of the scratch file. Then it merges them: it reads the runs block
//!   by block, in an order that the keys decide, and writes the result into the second half.
//!   (Knuth, The Art of Computer Programming, volume 3, 5.4.)

use std::io::{IoSlice, IoSliceMut};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use snowmelt_base::random::lcg;
use snowmelt_io::{Access, AlignedBuf, Device, FileDevice, ReadDevice};

use super::plan::{Beside, Setup};
use super::table::ScanTable;
use crate::LabError;
use crate::stats::{Latencies, LatencySummary};

/// Size of single reads and writes.
const BLOCK: usize = 8192;
/// Sizes of a sort: a write of a run or of the result, a read of a run, a run.
const SORT_WRITE: u64 = 1 << 20;
/// See [`SORT_WRITE`].
const SORT_READ: u64 = 64 << 10;
/// See [`SORT_WRITE`].
const SORT_RUN: u64 = 4 << 20;

/// The least scratch file that a sort can do with: two runs, and their result.
pub(super) const LEAST_SCRATCH: u64 = 4 * SORT_RUN;

/// The part of a load beside a scan.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BesideDone {
    /// Times of its requests.
    pub times: LatencySummary,
    /// Bytes that it read.
    pub read_bytes: u64,
}

/// Does the work of a scan with the load of `setup` beside it, which ends with the work. Returns
/// the load's part as well.
///
/// # Errors
/// The work fails, or a file of the load cannot be opened, read or written.
pub(super) fn with_beside<T>(
    table: &ScanTable,
    setup: &Setup,
    scratch: Option<&Path>,
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(T, BesideDone), LabError> {
    if setup.beside == Beside::Nothing {
        return Ok((work()?, BesideDone::default()));
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| beside(table, setup, scratch, &over));
        let done = work();
        over.store(true, Ordering::Relaxed);
        let load = load.join().expect("it does not panic");
        Ok((done?, load?))
    })
}

/// Runs the load of `setup` until the scan is over.
fn beside(
    table: &ScanTable,
    setup: &Setup,
    scratch: Option<&Path>,
    over: &AtomicBool,
) -> Result<BesideDone, LabError> {
    let mut load = BesideLoad { times: Latencies::default(), read_bytes: 0, over, drawn: 0 };
    match (setup.beside, scratch) {
        (Beside::Write, Some(path)) => {
            load.blocks(&FileDevice::open(path, Access::ReadWrite, true)?, None)?
        }
        (Beside::Sort, Some(path)) => load.sorts(&FileDevice::open(path, Access::ReadWrite, true)?)?,
        _ => {
            let len = table.len / table.files.len() as u64;
            load.blocks(&FileDevice::open(&table.files[0], Access::Read, true)?, Some(len))?;
        }
    }
    Ok(BesideDone { times: load.times.summary(), read_bytes: load.read_bytes })
}

struct BesideLoad<'a> {
    times: Latencies,
    read_bytes: u64,
    over: &'a AtomicBool,
    drawn: u64,
}

impl BesideLoad<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn draw(&mut self, below: u64) -> u64 {
        (lcg(&mut self.drawn) >> 33) % below.max(1)
    }

    fn read(&mut self, file: &FileDevice, offset: u64, buf: &mut [u8]) -> Result<(), LabError> {
        let begun = Instant::now();
        self.read_bytes += buf.len() as u64;
        file.read_at(&mut [IoSliceMut::new(buf)], offset)?;
        self.times.add(begun.elapsed().as_nanos() as u64);
        Ok(())
    }

    fn write(&mut self, file: &FileDevice, offset: u64, buf: &[u8]) -> Result<(), LabError> {
        let begun = Instant::now();
        file.write_at(&[IoSlice::new(buf)], offset)?;
        self.times.add(begun.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// Blocks at random places: reads of the first `read` bytes, or writes.
    fn blocks(&mut self, file: &FileDevice, read: Option<u64>) -> Result<(), LabError> {
        let blocks = read.map_or_else(|| file.len(), Ok)? / BLOCK as u64;
        let mut buffer = AlignedBuf::new(BLOCK);
        while !self.is_over() {
            let offset = self.draw(blocks) * BLOCK as u64;
            match read {
                Some(_) => self.read(file, offset, &mut buffer)?,
                None => self.write(file, offset, &buffer)?,
            }
        }
        Ok(())
    }

    /// One sort after the other.
    fn sorts(&mut self, file: &FileDevice) -> Result<(), LabError> {
        let half = file.len()? / 2 / SORT_RUN * SORT_RUN;
        assert!(half >= 2 * SORT_RUN, "the scratch file was measured before");
        let mut buffer = AlignedBuf::new(SORT_WRITE as usize);
        while !self.is_over() {
            self.runs(file, half, &buffer)?;
            self.merge(file, half, &mut buffer)?;
        }
        Ok(())
    }

    fn runs(&mut self, file: &FileDevice, half: u64, buffer: &[u8]) -> Result<(), LabError> {
        for offset in (0..half).step_by(SORT_WRITE as usize) {
            if self.is_over() {
                break;
            }
            self.write(file, offset, buffer)?;
        }
        Ok(())
    }

    fn merge(&mut self, file: &FileDevice, half: u64, buffer: &mut AlignedBuf) -> Result<(), LabError> {
        // The rest of each run: its next block, and its end.
        let mut runs: Vec<(u64, u64)> =
            (0..half).step_by(SORT_RUN as usize).map(|run| (run, run + SORT_RUN)).collect();
        let (mut merged, mut written) = (0, 0);
        while !runs.is_empty() && !self.is_over() {
            let which = self.draw(runs.len() as u64) as usize;
            let (next, end) = &mut runs[which];
            let offset = *next;
            *next += SORT_READ;
            if next == end {
                runs.swap_remove(which);
            }
            self.read(file, offset, &mut buffer[..SORT_READ as usize])?;
            merged += SORT_READ;
            if merged - written == SORT_WRITE {
                self.write(file, half + written, buffer)?;
                written = merged;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Data, Layout, Workers};
    use super::*;
    use crate::run::arguments::OnOff;

    /// One sort of so many bytes: its requests, and the file afterwards.
    fn some_sorts(bytes: u64) -> (u64, Vec<u8>) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), vec![7; bytes as usize]).expect("written");
        let device = FileDevice::open(file.path(), Access::ReadWrite, false).expect("just made");
        let over = AtomicBool::new(false);
        let mut load = BesideLoad { times: Latencies::default(), read_bytes: 0, over: &over, drawn: 0 };
        let half = bytes / 2;
        let mut buffer = AlignedBuf::new(SORT_WRITE as usize);
        load.runs(&device, half, &buffer).expect("written");
        load.merge(&device, half, &mut buffer).expect("merged");
        assert_eq!(load.read_bytes, half, "each run is read once");
        (load.times.summary().count, std::fs::read(file.path()).expect("there"))
    }

    #[test]
    fn a_load_ends_with_the_work_beside_it_also_with_one_that_fails() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), vec![7; 1 << 20]).expect("written");
        let files = vec![(file.path().to_path_buf(), 1 << 20)];
        let table = ScanTable::new(files, Layout::Single, None).expect("large enough");
        let setup = Setup {
            scheduler: "as-is".parse().expect("known"),
            read_ahead_kb: None,
            direct: OnOff::Off,
            workers: Workers::Independent,
            chunks: "64k".parse().expect("a size"),
            reads: None,
            layout: Layout::Single,
            users: 1,
            data: Data::Same,
            beside: Beside::RandomRead,
            queue: None,
        };
        let wait = || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            Ok(7)
        };
        let (done, load) = with_beside(&table, &setup, None, wait).expect("done");
        assert!(done == 7 && load.times.count > 0, "{load:?}");
        assert_eq!(load.read_bytes, load.times.count * BLOCK as u64);
        let fails = || -> Result<(), LabError> { Err(LabError::Stopped) };
        assert!(with_beside(&table, &setup, None, fails).is_err());
    }

    #[test]
    fn a_sort_writes_and_reads_every_byte_once_in_each_pass() {
        let half = 3 * SORT_RUN;
        let (requests, bytes) = some_sorts(2 * half);
        assert_eq!(requests, half / SORT_WRITE + half / SORT_READ + half / SORT_WRITE);
        assert!(bytes.iter().all(|b| *b == 0), "runs and result are written whole");
    }

    #[test]
    fn a_sort_ends_with_the_scan() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), vec![7; LEAST_SCRATCH as usize]).expect("written");
        let device = FileDevice::open(file.path(), Access::ReadWrite, false).expect("just made");
        let over = AtomicBool::new(true);
        let mut load = BesideLoad { times: Latencies::default(), read_bytes: 0, over: &over, drawn: 0 };
        load.sorts(&device).expect("ended");
        assert_eq!(load.times.summary().count, 0);
    }
}
