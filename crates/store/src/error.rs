//! Errors from below the trees. Each names the file, and where it applies the offset and the page.
//!
//! Errors are cheap to clone (the cause is shared), because one failed read is told to every
//! thread that waited for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::{IoError, ObjectError};

use crate::format::lineage::StateName;
use crate::page::{Damage, PageId};

/// Result of the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// An error of the store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A page is not what was written there.
    #[error("{}: page {page} at byte {offset} is damaged: {why}", .file.display())]
    Damaged {
        /// Stripe file.
        file: PathBuf,
        /// Byte offset of the page in the file.
        offset: u64,
        /// The page.
        page: PageId,
        /// The damage.
        why: Damage,
    },
    /// A part of the journal that was durable is not what was written there.
    #[error("{}: byte {offset}: {why}", .file.display())]
    JournalDamaged {
        /// Journal file.
        file: PathBuf,
        /// Byte offset of the record.
        offset: u64,
        /// The fault, in words.
        why: String,
        /// True when [`crate::Salvage::CutJournal`] opens the state before it.
        is_cuttable: bool,
    },
    /// A page could not be read.
    #[error("{}: page {page} at byte {offset} cannot be read: {}", .file.display(), .cause.kind)]
    Read {
        /// Stripe file.
        file: PathBuf,
        /// Byte offset of the page in the file.
        offset: u64,
        /// The page.
        page: PageId,
        /// Error of the device.
        cause: Arc<IoError>,
    },
    /// Temporary space gave back other bytes than were written to it. The data are not concerned.
    #[error(
        "{}: byte {offset} of temporary space is not as it was written; the data are not concerned, try again and look after the device",
        .path.display()
    )]
    TempChanged {
        /// The database, or the temporary file.
        path: PathBuf,
        /// Byte offset in the temporary space.
        offset: u64,
    },
    /// A file operation failed.
    #[error("{}: cannot {what}: {cause}", .path.display())]
    File {
        /// File or directory.
        path: PathBuf,
        /// The operation, as a verb phrase.
        what: &'static str,
        /// Error of the system.
        cause: Arc<std::io::Error>,
    },
    /// Writing failed because the file system is full.
    #[error("{}: no space left while writing; the database is as it was before, free space and try again", .path.display())]
    Full {
        /// File that could not grow.
        path: PathBuf,
    },
    /// A device operation other than a page read failed.
    #[error("{}: cannot {what}: {}", .path.display(), .cause.kind)]
    Device {
        /// Stripe file.
        path: PathBuf,
        /// The operation, as a verb phrase.
        what: &'static str,
        /// Error of the device.
        cause: Arc<IoError>,
    },
    /// There is no database at the path.
    #[error("{}: not a Snowmelt database ({why}); make one with `snowmelt load`", .path.display())]
    NotADatabase {
        /// Directory or file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// There is already a database at the path.
    #[error("{}: there is already a database", .path.display())]
    Exists {
        /// Directory.
        path: PathBuf,
    },
    /// Another version of the file format.
    #[error("{}: written in file format {found}, this program reads formats {} to {expected}; use a program that reads it, or dump with that and load again", .path.display(), crate::format::version::OLDEST_FORMAT)]
    Format {
        /// Super-block file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
        /// The newest version this program reads.
        expected: u32,
    },
    /// Another process has the database open.
    #[error("{}: the database is in use by process {holder}; stop it, or ask it over HTTP", .path.display())]
    Locked {
        /// Lock file.
        path: PathBuf,
        /// Process id of the holder as it wrote it, "unknown" if it did not.
        holder: String,
    },
    /// A file outside of the folder is that of the database in another folder.
    #[error("{}: it is a file of the database in {}, and {} is a copy of that folder alone; open that one, or make a database of your own of it with backup or restore", .stripe.display(), .owner.display(), .copy.display())]
    StripeOf {
        /// The file.
        stripe: PathBuf,
        /// The folder of its database.
        owner: PathBuf,
        /// The folder that was to be opened.
        copy: PathBuf,
    },
    /// A file of the open database is no longer under its name: what is written to it would be
    /// lost with the process.
    #[error("{}: {how} while the database was open; reads go on, also of what it held: dump the database before you stop the program, or stop it, put the file back or restore a copy, and open it again", .path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// How it lost its name.
        how: Lost,
    },
    /// The super-block or the meta run cannot be used.
    #[error("{}: {why}", .path.display())]
    Corrupt {
        /// File.
        path: PathBuf,
        /// The fault, in words.
        why: String,
    },
    /// A part of a set of backups cannot be used.
    #[error("{}: no usable part of a backup: {why}", .path.display())]
    Backup {
        /// The part, or the set.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The newest state of a set of backups did not lead to the state of the database.
    #[error("{}: its newest state is {set}, and the database is at transaction {txn} of another one ({database}): it was put back to an older state, or a copy of it was written on its own; nothing was added. Begin a new set in an empty directory; this one still restores what it has", .path.display())]
    Fork {
        /// The set.
        path: PathBuf,
        /// The newest state of the set.
        set: StateName,
        /// The newest transaction of the database.
        txn: u64,
        /// The history of the database, in words.
        database: String,
    },
    /// A request to an object store failed.
    #[error("{cause}")]
    Object {
        /// The failure, which names store and object.
        cause: Arc<ObjectError>,
    },
    /// A published database cannot be used, or not be published to.
    #[error("{store}: {why}")]
    Published {
        /// The address of the object store.
        store: Arc<str>,
        /// Why not, in words.
        why: String,
    },
    /// A file is shorter than the database says.
    #[error("{}: the file has {found} bytes, the database needs {expected}: it was truncated; restore it from a copy", .path.display())]
    Truncated {
        /// Stripe file.
        path: PathBuf,
        /// Length in bytes.
        found: u64,
        /// Bytes the extent map needs.
        expected: u64,
    },
    /// A stripe is a block device, which [`crate::BlockDevices::Refuse`] does not take.
    #[error("{} is a block device ({found}): all on it would be lost", .path.display())]
    BlockDevice {
        /// The device.
        path: PathBuf,
        /// Its contents or use, in words.
        found: String,
    },
    /// A setting makes no sense.
    #[error("{0}")]
    Config(String),
    /// All frames stayed pinned for so long that waiting cannot help.
    #[error(
        "all {frames} pages of the pool stayed in use for {waited_ms} ms; give more memory or run fewer queries at a time"
    )]
    PoolExhausted {
        /// Frames in the pool.
        frames: usize,
        /// Milliseconds waited.
        waited_ms: u64,
    },
    /// The memory budget is used up.
    #[error("{what} needs {wanted} bytes, {free} of the {total} bytes of memory are free")]
    Memory {
        /// Name of the part that asked.
        what: String,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free.
        free: u64,
        /// The whole budget in bytes.
        total: u64,
    },
    /// Another build is under way in this process.
    #[error("another load into this database is under way")]
    BuildBusy,
    /// The snapshot is older than readers may be, and what it would have to see is no longer kept.
    #[error(
        "the state as of transaction {txn} is no longer kept: the reader took too long; run it again, or raise the age readers may reach"
    )]
    SnapshotTooOld {
        /// Transaction the snapshot read as of.
        txn: u64,
    },
    /// A transaction asked for a tree that does not exist.
    #[error("there is no tree {tree}, or the transaction dropped it")]
    NoTree {
        /// The tree.
        tree: u32,
    },
    /// A tree of a build was never finished.
    #[error("the tree {name:?} was not finished, so the build cannot be committed")]
    Unfinished {
        /// Name of the tree.
        name: String,
    },
    /// The database was opened for reading.
    #[error("{path} is open for reading only: open it for writing to change it")]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// The journal says more than fits into memory, so some of it would have to be written back
    /// first.
    #[error(
        "{path}: recovering the journal in {memory} bytes of memory would have to write: give more memory, or open it for writing"
    )]
    NeedsWriting {
        /// The database.
        path: PathBuf,
        /// Bytes that recovery may take.
        memory: u64,
    },
    /// The function that was told the progress asked to stop.
    #[error("stopped before the end, as asked")]
    Stopped,
    /// An earlier failure makes further writes unsafe. The operation that met this error did
    /// nothing.
    #[error(
        "nothing was changed: writing was given up after an earlier failure ({cause}); mend the cause and open the database again"
    )]
    Poisoned {
        /// The first failure.
        cause: Arc<StoreError>,
    },
    /// A commit was written, and making it durable failed.
    #[error(
        "whether the change was kept is not known: {cause}; nothing is written from now on. When the database is opened again the change is there whole or not at all: look before you repeat it"
    )]
    OutcomeUnknown {
        /// The failure.
        cause: Arc<StoreError>,
    },
}

impl From<ObjectError> for StoreError {
    fn from(cause: ObjectError) -> StoreError {
        StoreError::Object { cause: Arc::new(cause) }
    }
}

/// How a file of an open database lost its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// No file has its name.
    #[error("the file was deleted, or moved out of its folder,")]
    Deleted,
    /// Another file has its name.
    #[error("another file was put in its place")]
    Replaced,
    /// The folder that it was in is gone.
    #[error("its whole folder was deleted, or moved to another file system,")]
    WithFolder,
}

impl StoreError {
    /// Why nothing may be written: after a failure, or because the database was opened so.
    pub(crate) fn poisoned(cause: &Arc<StoreError>) -> StoreError {
        match &**cause {
            StoreError::ReadOnly { path } => StoreError::ReadOnly { path: path.clone() },
            _ => StoreError::Poisoned { cause: cause.clone() },
        }
    }

    /// A closure for `map_err` over a file operation; a full disk becomes [`StoreError::Full`].
    pub(crate) fn file(path: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> StoreError {
        let path = path.to_path_buf();
        move |cause| match cause.kind() {
            std::io::ErrorKind::StorageFull
            | std::io::ErrorKind::QuotaExceeded
            | std::io::ErrorKind::FileTooLarge => StoreError::Full { path },
            _ => StoreError::File { path, what, cause: Arc::new(cause) },
        }
    }

    /// As [`StoreError::file`], for system calls made through rustix.
    pub(crate) fn os(path: &Path, what: &'static str) -> impl FnOnce(rustix::io::Errno) -> StoreError {
        let f = StoreError::file(path, what);
        move |e| f(e.into())
    }

    /// As [`StoreError::file`], for operations of a device.
    pub(crate) fn device(path: &Path, what: &'static str) -> impl FnOnce(IoError) -> StoreError {
        let path = path.to_path_buf();
        move |cause| match cause.errno() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => StoreError::Full { path },
            _ => StoreError::Device { path, what, cause: Arc::new(cause) },
        }
    }

    /// True when the failed operation may succeed a little later, and nothing that was acknowledged
    /// is in doubt: the disk is full, or the system is short of descriptors or memory. Not to be
    /// asked of a failed sync of what was acknowledged.
    pub fn is_passing(&self) -> bool {
        let errno = match self {
            StoreError::Full { .. } | StoreError::Poisoned { .. } | StoreError::OutcomeUnknown { .. } => {
                return true;
            }
            StoreError::Device { cause, .. } => cause.errno(),
            StoreError::File { cause, .. } => cause.raw_os_error(),
            _ => None,
        };
        errno.is_some_and(|e| [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN].contains(&e))
    }

    /// True when the error says that the data on a device is wrong, not that it could not be
    /// fetched.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            StoreError::Damaged { .. }
                | StoreError::Corrupt { .. }
                | StoreError::Truncated { .. }
                | StoreError::JournalDamaged { .. }
        )
    }
}
