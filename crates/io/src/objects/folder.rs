//! A folder of the file system as an object store: the object `a/b` is the file `a/b`.
//!
//! 1. A put writes a file in `.snowmelt/`, gives it a time that no other put of the folder has,
//!    syncs it, and renames it to its key under the folder's lock if the condition holds. The
//!    folders on its way are synced before it is answered.
//! 2. A version is the time, length and inode of the file, so that reading a range reads no more
//!    than that. Times never come again (see `stamp.rs`), and so neither do versions.
//! 3. A get needs no lock: a file is replaced, never changed.
//! 4. Links are no objects, and no way to others.
//!
//! Processes share a folder by an flock on `.snowmelt/lock`. A reader makes nothing in it.

mod get;
mod key;
mod list;
mod put;
mod stamp;
mod threads;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;

use crate::objects::folder::threads::FewThreads;
use crate::objects::reply::Reply;
use crate::objects::{Answer, Ask, Done, ObjectError, ObjectErrorKind, Objects, Ongoing};
use crate::system::folder::Folder;

/// Threads that do the work of one store, at most.
const MOST_THREADS: usize = 8;

/// The objects of a folder.
pub struct FolderObjects {
    store: Arc<StoreFolder>,
    threads: FewThreads,
}

/// The folder itself.
struct StoreFolder {
    name: Arc<str>,
    root: Folder,
    /// Set once leftovers of killed processes were looked for.
    is_swept: AtomicBool,
}

impl FolderObjects {
    /// The objects of a folder that exists.
    ///
    /// # Errors
    /// There is no such folder, or it cannot be read.
    pub fn open(dir: &Path) -> io::Result<FolderObjects> {
        let root = Folder::open(dir)?;
        let name = format!("file://{}", dir.display()).into();
        let store = Arc::new(StoreFolder { name, root, is_swept: AtomicBool::new(false) });
        Ok(FolderObjects { store, threads: FewThreads::new("snowmelt-folder", MOST_THREADS) })
    }

    /// As [`open`](Self::open); a folder that does not exist is made.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn create(dir: &Path) -> io::Result<FolderObjects> {
        std::fs::create_dir_all(dir)?;
        FolderObjects::open(dir)
    }
}

impl StoreFolder {
    fn answer(&self, ask: &Ask) -> Result<Answer, ObjectErrorKind> {
        match ask {
            Ask::Get { key, range } => get::get(&self.root, key, range.as_ref()),
            Ask::Put { key, bytes, only } => {
                put::put(&self.root, &self.is_swept, key, bytes, only).map(Answer::Put)
            }
            Ask::Delete { key } => put::delete(&self.root, key).map(|()| Answer::Deleted),
            Ask::List { prefix, after, most } => {
                list::list(&self.root, prefix, after.as_deref(), *most).map(Answer::Listed)
            }
        }
    }
}

/// The kind of an error of the file system.
fn kind_of(error: io::Error) -> ObjectErrorKind {
    match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => ObjectErrorKind::Refused(error.to_string()),
        Some(Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ) => ObjectErrorKind::Invalid(error.to_string()),
        _ => ObjectErrorKind::Unavailable(error.to_string()),
    }
}

/// True of the error of a name that leads to nothing, or to no file or folder of its own.
fn is_absent(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

impl Objects for FolderObjects {
    fn name(&self) -> &Arc<str> {
        &self.store.name
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        let (reply, ongoing) = Reply::new(done);
        let store = self.store.clone();
        self.threads.run(move || {
            if reply.is_over() {
                return;
            }
            let answer = store.answer(&ask).map_err(|kind| ObjectError::new(&store.name, &ask, kind));
            reply.give(answer);
        });
        ongoing
    }
}
