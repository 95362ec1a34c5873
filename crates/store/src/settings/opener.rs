//! Opening the files and directories of a database: real ones, or what the configuration puts
//! in their place.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{
    Access, Device, FileDevice, FileId, Folder, IoError, IoErrorKind, MemoryDevice, Operation,
};

use crate::error::{Lost, Result, StoreError};

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

/// A directory, kept open: files are found from its descriptor, so that they stay the same ones
/// wherever it is moved and whatever is put at its old path.
pub(crate) struct Directory {
    path: PathBuf,
    /// `None` where there is none, since the configuration puts something in the place of files.
    folder: Option<Folder>,
    files: Option<FileOpener>,
}

/// A file that is open, and the name it must keep.
#[derive(Clone)]
pub(crate) struct Placed {
    dir: Arc<Directory>,
    name: PathBuf,
    id: FileId,
}

/// How files are opened past the page cache or through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caching {
    Direct,
    Buffered,
}

impl Directory {
    /// Opens the directory at `path`.
    pub fn open(path: &Path, files: Option<&FileOpener>) -> Result<Arc<Directory>> {
        let folder = match (Folder::open(path), files) {
            (Ok(folder), _) => Some(folder),
            (Err(_), Some(_)) => None,
            (Err(e), None) => return Err(StoreError::file(path, "open the directory")(e)),
        };
        Ok(Arc::new(Directory { path: path.to_path_buf(), folder, files: files.cloned() }))
    }

    /// The directory that the file at `path` lies in, and the file's name there.
    pub fn open_parent(path: &Path, files: Option<&FileOpener>) -> Result<(Arc<Directory>, PathBuf)> {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().map_or_else(|| path.to_path_buf(), PathBuf::from);
        Ok((Directory::open(parent, files)?, name))
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it, for messages.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// True of a directory of the file system.
    pub fn is_real(&self) -> bool {
        self.files.is_none()
    }

    /// True while its path still leads to it.
    pub fn is_at_its_path(&self) -> bool {
        !self.is_real() || self.folder.as_ref().is_some_and(Folder::is_at_its_path)
    }

    /// A path that leads to it now: where it was opened, or by way of the descriptor when it was
    /// moved since.
    pub fn reachable(&self) -> PathBuf {
        match &self.folder {
            Some(folder) if !folder.is_at_its_path() => {
                PathBuf::from(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()))
            }
            _ => self.path.clone(),
        }
    }

    /// The open directory, also where its files are put somewhere else: of the lock and of advice.
    pub fn folder(&self) -> std::io::Result<&Folder> {
        self.folder.as_ref().ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Opens a file in it.
    pub fn device(
        &self,
        name: &Path,
        access: Access,
        caching: Caching,
    ) -> std::result::Result<Arc<dyn Device>, IoError> {
        self.shared_device(name, access, caching, 1)
    }

    /// Opens a file that many threads read: with so many descriptors.
    pub fn shared_device(
        &self,
        name: &Path,
        access: Access,
        caching: Caching,
        descriptors: u32,
    ) -> std::result::Result<Arc<dyn Device>, IoError> {
        match (&self.files, &self.folder) {
            (Some(opener), _) => (opener.open)(&self.join(name), access),
            (None, Some(folder)) => {
                let file = FileDevice::open_in(folder, name, access, caching == Caching::Direct)?;
                Ok(Arc::new(file.with_descriptors_in(folder, name, access, descriptors)?))
            }
            (None, None) => unreachable!("a directory of the file system is open"),
        }
    }

    /// Makes the names in it durable.
    pub fn sync(&self) -> Result<()> {
        let synced = self.folder.as_ref().filter(|_| self.is_real()).map_or(Ok(()), Folder::sync);
        synced.map_err(StoreError::file(&self.path, "sync the directory"))
    }
}

impl Placed {
    /// A file as it was opened, if it is one that can be deleted or replaced.
    pub fn from_device(dir: &Arc<Directory>, name: &Path, device: &dyn Device) -> Option<Placed> {
        let id = device.file_id().filter(|_| dir.is_real())?;
        Some(Placed { dir: dir.clone(), name: name.to_path_buf(), id })
    }

    /// The name it must keep.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// This file under its new name.
    pub fn renamed(self, name: &Path) -> Placed {
        Placed { name: name.to_path_buf(), ..self }
    }

    /// Which file it is.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Its path, for messages.
    pub fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// An error when another file, or none, has its name by now.
    pub fn look(&self) -> Result<()> {
        let found = self.dir.folder().and_then(|folder| folder.id_of(&self.name));
        let how =
            match found.map_err(|e| StoreError::file(&self.path(), "look whether it is still there")(e))? {
                Some(id) if id == self.id => return Ok(()),
                Some(_) => Lost::Replaced,
                None if self.dir.folder().is_ok_and(|f| f.is_deleted().unwrap_or(false)) => Lost::WithFolder,
                None => Lost::Deleted,
            };
        Err(StoreError::Lost { path: self.path(), how })
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Directory({})", self.path.display())
    }
}

/// True when opening failed because there is no such file.
pub(crate) fn is_missing(e: &IoError) -> bool {
    e.errno() == Some(libc::ENOENT)
}
