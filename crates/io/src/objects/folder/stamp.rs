//! The lock of a folder, and the times that make versions of its files.
//!
//! The lock's file holds the last time given, 8 bytes. Under the lock a file that is about to be
//! put gets a later one: the present, or the next moment that the file system can keep. So no two
//! puts have the same time, wherever clocks go and inodes come again. Files that were put in the
//! folder by other means have the times they came with.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::retry_on_intr;

use crate::objects::Version;
use crate::system::folder::Folder;

/// Steps of time that file systems keep, in nanoseconds.
const STEPS_NS: [u64; 5] = [1, 1_000, 1_000_000, 1_000_000_000, 2_000_000_000];

/// The lock, held until it is dropped.
pub(super) struct FolderLock(File);

impl FolderLock {
    /// Waits for the lock of the store whose own folder is `own`.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn take(own: &Folder) -> io::Result<FolderLock> {
        // Opened anew for each holder: the lock belongs to what is opened.
        let file = own.open_file(Path::new("lock"), OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW)?;
        retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))?;
        Ok(FolderLock(file))
    }

    /// Gives `file` a time that no other put has.
    ///
    /// # Errors
    /// Those of the system, or the file system keeps no times.
    pub(super) fn stamp(&self, file: &File) -> io::Result<()> {
        let last_ns = self.last_ns()?;
        let now_ns = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
        for step_ns in STEPS_NS {
            let at_ns = now_ns.max(last_ns.saturating_add(step_ns));
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_nanos(at_ns))?;
            let kept_ns = time_ns(&file.metadata()?);
            if kept_ns > last_ns {
                return self.0.write_all_at(&kept_ns.to_le_bytes(), 0);
            }
        }
        Err(io::Error::other("the file system keeps no times of files"))
    }

    fn last_ns(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        match self.0.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(u64::from_le_bytes(bytes)),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            Err(e) => Err(e),
        }
    }
}

/// When a file was written, nanoseconds since 1970.
fn time_ns(of: &Metadata) -> u64 {
    let since = of.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.unwrap_or_default().as_nanos() as u64
}

/// When a file was written, milliseconds since 1970.
pub(super) fn time_ms(of: &Metadata) -> u64 {
    time_ns(of) / 1_000_000
}

/// The version of a file.
pub(super) fn version(of: &Metadata) -> Version {
    Version(format!("{:x}-{:x}-{:x}", time_ns(of), of.len(), of.ino()).into())
}
