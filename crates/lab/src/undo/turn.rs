//! Files and folders that one process has at a time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often one that waits looks again.
const LOOK: Duration = Duration::from_millis(100);

/// A folder that is this process's alone until it is dropped; nothing when another process has it
/// for longer than `patience`. `waits` is called once before it is waited for.
///
/// # Errors
/// The folder is not there, or cannot be locked.
pub fn turn(folder: &Path, patience: Duration, mut waits: impl FnMut()) -> io::Result<Option<File>> {
    let lock = File::open(folder)?;
    let begun = Instant::now();
    let mut told = false;
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(lock)),
            Err(Errno::WOULDBLOCK) if begun.elapsed() >= patience => return Ok(None),
            Err(Errno::WOULDBLOCK) => {}
            Err(e) => return Err(e.into()),
        }
        if !told {
            waits();
            told = true;
        }
        std::thread::sleep(LOOK);
    }
}

/// A file or folder that is this process's alone until it is dropped; nothing when it was removed
/// while it was opened.
///
/// # Errors
/// It cannot be opened, or another process has it (would block).
pub fn locked(path: &Path, options: &OpenOptions) -> io::Result<Option<File>> {
    let file = options.open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(is_at(path, &file).then_some(file))
}

/// True while the name is that of the open file.
pub(super) fn is_at(path: &Path, file: &File) -> bool {
    let at = |meta: io::Result<std::fs::Metadata>| meta.map(|meta| (meta.dev(), meta.ino())).ok();
    at(std::fs::metadata(path)).is_some_and(|there| Some(there) == at(file.metadata()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_one_that_hangs_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let take = |patience| turn(dir.path(), patience, || ()).unwrap();
        let first = take(Duration::ZERO).unwrap();
        assert!(take(Duration::ZERO).is_none());
        std::thread::scope(|scope| {
            let second = scope.spawn(|| take(Duration::from_secs(60)).is_some());
            std::thread::sleep(2 * LOOK);
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().unwrap());
        });
        assert!(turn(&dir.path().join("none"), Duration::ZERO, || ()).is_err());
    }
}
