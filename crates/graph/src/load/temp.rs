//! Temporary files of one load.
//!
//! They live in a folder of their own inside the database directory, so that they lie on the
//! database's device and a killed load leaves nothing anywhere else. The folder is emptied when a
//! load starts and removed when it ends, whichever way it ends. Files are only appended to and read
//! by position; nothing in them outlives the process, so nothing is ever synced.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::input::error::LoadError;

/// Name of the folder inside the database directory.
pub(super) const TEMP_DIR: &str = snowmelt_store::LOAD_DIR;

/// The temporary folder; removed with everything in it when dropped.
#[derive(Debug)]
pub(super) struct TempSpace {
    dir: PathBuf,
    bytes: AtomicU64,
}

impl TempSpace {
    /// Creates the folder inside `database`, after removing what a killed load may have left.
    pub(super) fn create(database: &Path) -> Result<Arc<TempSpace>, LoadError> {
        let dir = database.join(TEMP_DIR);
        remove(&dir).map_err(|e| LoadError::temp(&dir, e))?;
        fs::DirBuilder::new().mode(0o700).create(&dir).map_err(|e| LoadError::temp(&dir, e))?;
        Ok(Arc::new(TempSpace { dir, bytes: AtomicU64::new(0) }))
    }

    /// Bytes written to all files so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Creates an empty file in the folder.
    pub(super) fn file(self: &Arc<Self>, name: &str) -> Result<TempFile, LoadError> {
        let path = self.dir.join(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| LoadError::temp(&path, e))?;
        Ok(TempFile { file, path, len: 0, space: Arc::clone(self) })
    }
}

impl Drop for TempSpace {
    fn drop(&mut self) {
        // Nothing useful can be done about a failure here: the next load removes the folder again.
        let _ = remove(&self.dir);
    }
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// One append-only temporary file.
#[derive(Debug)]
pub(super) struct TempFile {
    file: File,
    path: PathBuf,
    len: u64,
    space: Arc<TempSpace>,
}

impl TempFile {
    /// Appends `bytes` and returns where they begin.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64, LoadError> {
        let at = self.len;
        self.file.write_all_at(bytes, at).map_err(|e| LoadError::temp(&self.path, e))?;
        self.len += bytes.len() as u64;
        self.space.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(at)
    }

    /// A second handle for reading what has been appended.
    pub(super) fn reader(&self) -> Result<TempReader, LoadError> {
        let file = self.file.try_clone().map_err(|e| LoadError::temp(&self.path, e))?;
        Ok(TempReader { file, path: self.path.clone() })
    }
}

/// Reads a temporary file by position.
#[derive(Debug)]
pub(super) struct TempReader {
    file: File,
    path: PathBuf,
}

impl TempReader {
    /// The error for contents that are not what was written.
    pub(super) fn damaged(&self, why: String) -> LoadError {
        LoadError::temp(&self.path, io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// Fills `out` from `offset`.
    pub(super) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), LoadError> {
        self.file.read_exact_at(out, offset).map_err(|e| LoadError::temp(&self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_nothing_behind() {
        let db = tempfile::tempdir().unwrap();
        fs::create_dir(db.path().join(TEMP_DIR)).unwrap();
        fs::write(db.path().join(TEMP_DIR).join("old"), b"left by a killed load").unwrap();
        let space = TempSpace::create(db.path()).unwrap();
        assert!(!db.path().join(TEMP_DIR).join("old").exists());
        let mut file = space.file("runs").unwrap();
        assert_eq!(file.append(b"one").unwrap(), 0);
        assert_eq!(file.append(b"two").unwrap(), 3);
        let mut got = [0; 3];
        file.reader().unwrap().read_at(3, &mut got).unwrap();
        assert_eq!(&got, b"two");
        drop((file, space));
        assert!(!db.path().join(TEMP_DIR).exists());
    }
}
