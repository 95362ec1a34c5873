//! Why an extent cache cannot be opened: the place, the reason, and a way on.

use std::io;
use std::path::{Path, PathBuf};

/// The failure to make or open an extent cache. An opened cache has none: it steps aside.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Not even one object fits.
    #[error("a cache of {bytes} bytes is too small: one extent needs {least}")]
    TooSmall {
        /// Bytes asked for.
        bytes: u64,
        /// Least bytes that make a cache.
        least: u64,
    },
    /// A length of slots that no cache has.
    #[error("slots of {slot_bytes} bytes are impossible: a multiple of 32 up to {most} is needed")]
    SlotLength {
        /// Bytes asked for.
        slot_bytes: u32,
        /// Most bytes of a slot.
        most: u32,
    },
    /// The folder holds other things, and no cache yet.
    #[error(
        "{} is no extent cache and not empty (it has {name:?}): choose an empty or a new folder",
        folder.display()
    )]
    HoldsOther {
        /// The folder.
        folder: PathBuf,
        /// Something in it.
        name: String,
    },
    /// A version of this program with another format has written it.
    #[error(
        "{} has format {found} of extent caches, this program knows {known}: choose another folder, \
         or delete this one, which holds copies only",
        path.display()
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format of this program.
        known: u32,
    },
    /// The cache is one for extents of another length.
    #[error(
        "the extent cache {} has slots of {found} bytes, wanted are {wanted}: choose another folder, \
         or delete this one, which holds copies only",
        folder.display()
    )]
    OtherSlots {
        /// The folder.
        folder: PathBuf,
        /// Bytes of its slots.
        found: u32,
        /// Bytes asked for.
        wanted: u32,
    },
    /// The files of two caches lie in one folder.
    #[error(
        "{} and {} belong to different extent caches: delete both, they hold copies only",
        index.display(), data.display()
    )]
    TwoCaches {
        /// The index of one.
        index: PathBuf,
        /// The data file of the other.
        data: PathBuf,
    },
    /// The folder or a file may not be written.
    #[error("cannot {action} {}: {source}; an extent cache needs a folder that can be written", path.display())]
    NotAllowed {
        /// The action that was refused.
        action: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No room is left, or the quota is used up.
    #[error(
        "cannot {action} {}: {source}; make room there, or choose a folder on another disk",
        path.display()
    )]
    NoRoom {
        /// The action that failed.
        action: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file system has no locks on bytes of files.
    #[error(
        "cannot lock {}: {source}; processes that share a cache need a file system with locks: choose \
         a folder on a local disk",
        path.display()
    )]
    NoLocks {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another process has had the index locked for seconds, which takes microseconds.
    #[error(
        "{} has been locked by another process for {seconds} s: continue or end the process that was \
         stopped while it held the lock",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// Seconds waited.
        seconds: u64,
    },
    /// Another error of the system.
    #[error("cannot {action} {}: {source}", path.display())]
    Os {
        /// The action that failed.
        action: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl CacheError {
    /// The error of an action on a path, by the number of the system's.
    pub(super) fn os<'a>(path: &'a Path, action: &'static str) -> impl FnOnce(io::Error) -> CacheError + 'a {
        move |source| {
            let path = path.to_path_buf();
            match source.raw_os_error() {
                Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
                    CacheError::NotAllowed { action, path, source }
                }
                Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => {
                    CacheError::NoRoom { action, path, source }
                }
                _ => CacheError::Os { action, path, source },
            }
        }
    }
}
