//! Opening the files of a database: real ones, or what the configuration puts in their place.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use snowmelt_io::{Access, Device, FileDevice, IoError};

type OpenFn = dyn Fn(&Path, Access) -> Result<Arc<dyn Device>, IoError> + Send + Sync;

/// Opens every file of a database (super-block, stripes, journal) in place of the file system: for simulated power cuts.
#[derive(Clone)]
pub struct FileOpener(Arc<OpenFn>);

impl FileOpener {
    /// Opens with `f`, which gets path and access. A file that is not there must be reported as ENOENT.
    pub fn new(
        f: impl Fn(&Path, Access) -> Result<Arc<dyn Device>, IoError> + Send + Sync + 'static,
    ) -> Self {
        FileOpener(Arc::new(f))
    }
}

impl fmt::Debug for FileOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileOpener")
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
) -> Result<Arc<dyn Device>, IoError> {
    match opener {
        Some(opener) => (opener.0)(path, access),
        None => Ok(Arc::new(FileDevice::open(path, access, caching == Caching::Direct)?)),
    }
}

/// True when opening failed because there is no such file.
pub(crate) fn is_missing(e: &IoError) -> bool {
    e.errno() == Some(libc::ENOENT)
}
