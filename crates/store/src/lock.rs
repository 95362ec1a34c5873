//! One process at a time: an exclusive `flock` on the file `lock`, which holds the holder's process id for the error message.
//!
//! The kernel drops the lock with the process, so a killed process leaves nothing to clean up.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Result, StoreError};

/// Name of the file.
pub const FILE_NAME: &str = "lock";

/// The held lock; dropping it lets others in.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the database in `dir` without waiting.
    pub fn take(dir: &Path) -> Result<Lock> {
        let path = dir.join(FILE_NAME);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(
                StoreError::file(&path, "open the lock file (the database's directory must be writable)"),
            )?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                let holder = text.trim();
                let holder = if holder.is_empty() { "unknown" } else { holder }.to_string();
                return Err(StoreError::Locked { path, holder });
            }
            Err(e) => return Err(StoreError::os(&path, "lock the database")(e)),
        }
        // The number is only for the message; failing to write it (a full disk) does not weaken the lock.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_taker_is_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        let e = Lock::take(dir.path()).unwrap_err();
        assert!(
            matches!(&e, StoreError::Locked { holder, .. } if *holder == std::process::id().to_string()),
            "{e}"
        );
        drop(first);
        Lock::take(dir.path()).unwrap();
    }
}
