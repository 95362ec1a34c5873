//! The scan: threads that read a file past the page cache, each its own range from end to end and
//! again, until the work beside it is done.

use std::io::IoSliceMut;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use snowmelt_io::{Access, AlignedBuf, FileDevice, ReadDevice};

/// A read, as a worker of `lab scan` does it.
const CHUNK: u64 = 128 << 10;

/// A scan that is ready.
pub struct Scan {
    /// One of each scanner.
    files: Vec<FileDevice>,
    /// Bytes of a range.
    range: u64,
}

/// The bytes of a scan, and its seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScannedBytes {
    pub bytes: u64,
    pub seconds: f64,
}

impl Scan {
    /// Opens the file for each scanner; for none if there is nothing to be scanned.
    pub fn open(path: &Path, scanners: u32, scans: bool) -> Result<Self> {
        let open = |_| {
            let file = FileDevice::open(path, Access::Read, true)?;
            ensure!(file.is_direct(), "{}: its file system refuses O_DIRECT", path.display());
            Ok(file)
        };
        let scanners = if scans { scanners } else { 0 };
        let files = (0..scanners).map(open).collect::<Result<Vec<_>>>()?;
        let len = files.first().map_or(Ok(0), ReadDevice::len)?;
        let range = len / u64::from(scanners.max(1)) / CHUNK * CHUNK;
        ensure!(!scans || range > 0, "{}: too small for {scanners} scanners", path.display());
        Ok(Self { files, range })
    }

    /// Does some work with the scan beside it.
    pub fn beside<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, ScannedBytes)> {
        let (over, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let begun = Instant::now();
            let scanners: Vec<_> = (0..)
                .zip(&self.files)
                .map(|(number, file)| {
                    let (over, bytes) = (&over, &bytes);
                    scope.spawn(move || self.read(file, number, over, bytes))
                })
                .collect();
            let done = work();
            over.store(true, Ordering::Relaxed);
            let read: Result<Vec<()>> =
                scanners.into_iter().map(|scanner| scanner.join().expect("it does not panic")).collect();
            read.context("the scan failed")?;
            let seconds = begun.elapsed().as_secs_f64();
            Ok((done?, ScannedBytes { bytes: bytes.load(Ordering::Relaxed), seconds }))
        })
    }

    fn read(&self, file: &FileDevice, number: u64, over: &AtomicBool, bytes: &AtomicU64) -> Result<()> {
        let mut buffer = AlignedBuf::new(CHUNK as usize);
        let (from, mut at) = (number * self.range, 0);
        while !over.load(Ordering::Relaxed) {
            file.read_at(&mut [IoSliceMut::new(&mut buffer)], from + at)?;
            bytes.fetch_add(CHUNK, Ordering::Relaxed);
            at = (at + CHUNK) % self.range;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_until_the_work_is_done() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 3 * CHUNK as usize]).unwrap();
        let Ok(scan) = Scan::open(file.path(), 2, true) else {
            return println!("skipped: temporary files have no O_DIRECT here");
        };
        let wait = || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            Ok(7)
        };
        let (done, scanned) = scan.beside(wait).unwrap();
        assert!(done == 7 && scanned.bytes >= 2 * CHUNK && scanned.seconds >= 0.1, "{scanned:?}");
        assert!(scan.beside(|| -> Result<()> { anyhow::bail!("no") }).is_err());
        let none = Scan::open(file.path(), 2, false).unwrap();
        assert_eq!(none.beside(|| Ok(())).unwrap().1.bytes, 0);
        assert!(Scan::open(file.path(), 4, true).is_err(), "a range of nothing");
    }
}
