//! One process at a time: an exclusive `flock` on the super-block, and one on the file `lock`,
//! which holds the holder's process id for the error message.
//!
//! The lock on the super-block decides: deleting `lock` lets no other process in. `lock` is taken
//! first, because a database that is being made has no super-block yet. The kernel drops both with
//! the process, so a killed process leaves nothing to clean up. Reading the super-block needs no
//! lock.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, OFlags, flock, major, minor};
use snowmelt_io::FileId;

use crate::error::{Lost, Result, StoreError};
use crate::settings::opener::{Directory, Placed};
use crate::superblock;

/// Name of the file.
pub const FILE_NAME: &str = "lock";

/// The held lock; dropping it lets others in.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
    super_block: OnceLock<File>,
}

impl Lock {
    /// Takes the lock of the database in `dir` without waiting.
    pub fn take(dir: &Directory) -> Result<Lock> {
        let mut file = hold_file(dir)?;
        let super_block = hold_super_block(dir, superblock::FILE_NAME)?;
        // The number is only for the message; failing to write it (a full disk) does not weaken
        // the lock.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock { _file: Some(file), super_block: super_block.map_or_else(OnceLock::new, OnceLock::from) })
    }

    /// Keeps writers out, and lets other readers in. Nothing is made or written. Where files cannot
    /// be locked it goes on without a lock: as far as is known, no writer could take one either.
    pub fn share(dir: &Directory) -> Result<Lock> {
        let path = dir.join(superblock::FILE_NAME);
        let file = match open(dir, superblock::FILE_NAME, OFlags::RDONLY) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Ok(Lock { _file: None, super_block: OnceLock::new() });
            }
            other => other.map_err(StoreError::file(&path, "open the super-block to lock it"))?,
        };
        let named = || {
            let text = std::io::read_to_string(open(dir, FILE_NAME, OFlags::RDONLY).ok()?).ok()?;
            Some(text.trim().to_owned())
        };
        let holder = || named().filter(|text| !text.is_empty()).or_else(|| holder_of(&file));
        match hold(&file, &path, FlockOperation::NonBlockingLockShared, holder) {
            Err(e @ StoreError::Locked { .. }) => Err(e),
            Err(_) => Ok(Lock { _file: None, super_block: OnceLock::new() }),
            Ok(()) => Ok(Lock { _file: None, super_block: OnceLock::from(file) }),
        }
    }

    /// Takes the super-block of this name too, which has been made since. The lock is of the file,
    /// and stays when that gets another name.
    pub fn take_super_block(&self, dir: &Directory, name: &str) -> Result<()> {
        if let Some(file) = hold_super_block(dir, name)? {
            let is_first = self.super_block.set(file).is_ok();
            debug_assert!(is_first, "a super-block is made once");
        }
        Ok(())
    }

    /// An error unless the super-block that is locked is the one that was opened.
    pub fn is_of(&self, opened: Option<&Placed>) -> Result<()> {
        let (Some(locked), Some(opened)) = (self.super_block.get(), opened) else { return Ok(()) };
        match FileId::of_file(locked) {
            Ok(id) if id != opened.id() => Err(StoreError::Lost { path: opened.path(), how: Lost::Replaced }),
            _ => Ok(()),
        }
    }
}

fn open(dir: &Directory, name: &str, flags: OFlags) -> std::io::Result<File> {
    dir.folder()?.open_file(Path::new(name), flags)
}

/// Opens or makes the file `lock`, and locks it. A process that takes back a database not
/// finished removes that file with the others, so a locked file counts only while it has the
/// name.
fn hold_file(dir: &Directory) -> Result<File> {
    let path = dir.join(FILE_NAME);
    let what = "open the lock file (the database's directory must be writable)";
    loop {
        let file =
            open(dir, FILE_NAME, OFlags::RDWR | OFlags::CREATE).map_err(StoreError::file(&path, what))?;
        hold(&file, &path, FlockOperation::NonBlockingLockExclusive, || {
            let mut text = String::new();
            let _ = (&file).read_to_string(&mut text);
            Some(text.trim().to_string()).filter(|t| !t.is_empty())
        })?;
        if has_name(&file, dir) {
            return Ok(file);
        }
    }
}

/// Whether an open file is the one that is called `lock`.
fn has_name(file: &File, dir: &Directory) -> bool {
    let named = open(dir, FILE_NAME, OFlags::RDONLY).and_then(|named| FileId::of_file(&named));
    matches!((FileId::of_file(file), named), (Ok(own), Ok(named)) if own == named)
}

/// Locks the super-block; `None` when there is none: it is yet to be made, or lies on a
/// simulated disk.
fn hold_super_block(dir: &Directory, name: &str) -> Result<Option<File>> {
    let path = &dir.join(superblock::FILE_NAME);
    let file = match open(dir, name, OFlags::RDWR) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(StoreError::file(path, "open the super-block to lock it"))?,
    };
    hold(&file, path, FlockOperation::NonBlockingLockExclusive, || holder_of(&file))?;
    Ok(Some(file))
}

/// Locks a stripe that is written to; `None` where files cannot be locked, or there is none.
pub(crate) fn hold_stripe(dir: &Directory, name: &Path) -> Result<Option<File>> {
    let path = &dir.join(name);
    let Ok(file) = dir.folder().and_then(|folder| folder.open_file(name, OFlags::RDWR)) else {
        return Ok(None);
    };
    match hold(&file, path, FlockOperation::NonBlockingLockExclusive, || holder_of(&file)) {
        Err(e @ StoreError::Locked { .. }) => Err(e),
        Err(_) => Ok(None),
        Ok(()) => Ok(Some(file)),
    }
}

fn hold(
    file: &File,
    path: &Path,
    how: FlockOperation,
    holder: impl FnOnce() -> Option<String>,
) -> Result<()> {
    match flock(file, how) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let holder = holder().unwrap_or_else(|| "unknown".into());
            Err(StoreError::Locked { path: path.to_path_buf(), holder })
        }
        Err(e) => Err(StoreError::os(path, "lock the database")(e)),
    }
}

/// The process that holds the lock of a file, as the kernel lists it, for when `lock` does not say.
fn holder_of(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let place = format!("{:02x}:{:02x}:{}", major(meta.dev()), minor(meta.dev()), meta.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let line = locks.lines().find(|line| line.contains("FLOCK") && line.contains(&place))?;
    // Number, kind, how, access, process, place: the process comes before the place.
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == place)?;
    Some(words[at.checked_sub(1)?].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(dir: &Path) -> Result<Lock> {
        Lock::take(&Directory::open(dir, None).unwrap())
    }

    fn is_refused(dir: &Path) {
        let e = take(dir).unwrap_err();
        let own = std::process::id().to_string();
        assert!(matches!(&e, StoreError::Locked { holder, .. } if *holder == own), "{e}");
    }

    #[test]
    fn second_taker_is_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = take(dir.path()).unwrap();
        is_refused(dir.path());
        drop(first);
        take(dir.path()).unwrap();
    }

    /// A process that waits at the door with the old file in hand does not get in beside one that
    /// has made a new one.
    #[test]
    fn a_lock_file_that_was_removed_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let folder = Directory::open(dir.path(), None).unwrap();
        let first = take(dir.path()).unwrap();
        let old = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        drop(first);
        flock(&old, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(!has_name(&old, &folder), "there is no such name");
        let _second = take(dir.path()).unwrap();
        assert!(!has_name(&old, &folder), "it is another file's");
        assert!(has_name(&File::open(&path).unwrap(), &folder));
        is_refused(dir.path());
    }

    /// Deleting `lock` lets no other process in, whether the super-block was there before or was
    /// made under the lock.
    #[test]
    fn without_the_lock_file_the_super_block_is_still_locked() {
        let dir = tempfile::tempdir().unwrap();
        let first = take(dir.path()).unwrap();
        std::fs::write(dir.path().join(superblock::FILE_NAME), b"made under the lock").unwrap();
        first.take_super_block(&Directory::open(dir.path(), None).unwrap(), superblock::FILE_NAME).unwrap();
        for _ in 0..2 {
            std::fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
            is_refused(dir.path());
        }
        drop(first);
        let second = take(dir.path()).unwrap();
        std::fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
        is_refused(dir.path());
        drop(second);
        take(dir.path()).unwrap();
    }
}
