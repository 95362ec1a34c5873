//! Opening the files and directories of a database: real ones, or what the configuration puts
//! in their place.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{Access, Device, FileDevice, IoError, IoErrorKind, MemoryDevice, Operation};

use crate::error::{Result, StoreError};

type OpenFn = dyn Fn(&Path, Access) -> std::result::Result<Arc<dyn Device>, IoError> + Send + Sync;

/// Opens every file of a database (super-block, stripes, journal) in place of the file system:
/// for simulated power cuts.
#[derive(Clone)]
pub struct FileOpener {
    open: Arc<OpenFn>,
    keeps_in_memory: bool,
}

impl FileOpener {
    /// Opens with `f`, which gets path and access. A file that is not there must be reported as
    /// ENOENT.
    pub fn new(
        f: impl Fn(&Path, Access) -> std::result::Result<Arc<dyn Device>, IoError> + Send + Sync + 'static,
    ) -> Self {
        FileOpener { open: Arc::new(f), keeps_in_memory: false }
    }

    /// Keeps every file in memory for as long as the opener or a device of it lives.
    pub fn in_memory() -> Self {
        let files: Mutex<HashMap<PathBuf, Arc<MemoryDevice>>> = Mutex::default();
        let opener = FileOpener::new(move |path, access| {
            let mut files = files.lock();
            let name = path.to_string_lossy();
            let errno = match (files.get(path), access) {
                (Some(_), Access::CreateNew) => libc::EEXIST,
                (Some(file), _) => return Ok(file.clone() as Arc<dyn Device>),
                (None, Access::Read | Access::ReadWrite) => libc::ENOENT,
                (None, Access::Create | Access::CreateNew) => {
                    let file = Arc::new(MemoryDevice::new(&name));
                    files.insert(path.to_path_buf(), file.clone());
                    return Ok(file as Arc<dyn Device>);
                }
            };
            let (device, kind) = (name.into(), IoErrorKind::Os { errno });
            Err(IoError { device, operation: Operation::Open, offset: 0, len: 0, kind })
        });
        FileOpener { keeps_in_memory: true, ..opener }
    }

    /// True when what is written takes memory of the process.
    pub(crate) fn keeps_in_memory(&self) -> bool {
        self.keeps_in_memory
    }
}

impl fmt::Debug for FileOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileOpener")
    }
}

/// A directory, kept open so that making its entries durable needs no new descriptor.
pub(crate) struct Directory {
    path: PathBuf,
    /// `None` where the configuration puts something in the place of files: that has no
    /// directories.
    file: Option<File>,
}

impl Directory {
    /// Opens the directory at `path`.
    pub fn open(path: &Path, files: Option<&FileOpener>) -> Result<Directory> {
        let file = match files {
            None => Some(File::open(path).map_err(StoreError::file(path, "open the directory"))?),
            Some(_) => None,
        };
        Ok(Directory { path: path.to_path_buf(), file })
    }

    /// The directory that the file at `path` lies in.
    pub fn of(path: &Path, files: Option<&FileOpener>) -> Result<Directory> {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Directory::open(parent, files)
    }

    /// Makes the names in it durable.
    pub fn sync(&self) -> Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_all);
        synced.map_err(StoreError::file(&self.path, "sync the directory"))
    }
}

/// How files are opened past the page cache or through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caching {
    Direct,
    Buffered,
}

/// Opens a file.
pub(crate) fn open(
    opener: Option<&FileOpener>,
    path: &Path,
    access: Access,
    caching: Caching,
) -> std::result::Result<Arc<dyn Device>, IoError> {
    match opener {
        Some(opener) => (opener.open)(path, access),
        None => Ok(Arc::new(FileDevice::open(path, access, caching == Caching::Direct)?)),
    }
}

/// Opens a file that many threads read: with so many descriptors.
pub(crate) fn open_shared(
    opener: Option<&FileOpener>,
    path: &Path,
    access: Access,
    caching: Caching,
    descriptors: u32,
) -> std::result::Result<Arc<dyn Device>, IoError> {
    match opener {
        Some(opener) => (opener.open)(path, access),
        None => {
            let file = FileDevice::open(path, access, caching == Caching::Direct)?;
            Ok(Arc::new(file.with_descriptors(path, access, descriptors)?))
        }
    }
}

/// True when opening failed because there is no such file.
pub(crate) fn is_missing(e: &IoError) -> bool {
    e.errno() == Some(libc::ENOENT)
}
