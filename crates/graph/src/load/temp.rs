//! Temporary files of one load.
//!
//! They live in a folder of their own inside the database directory, so that they lie on the
//! database's device and a killed load leaves nothing anywhere else. The folder is emptied when a
//! load starts and removed when it ends, whichever way it ends, and wherever the database's
//! directory was moved to meanwhile. Files are only appended to and read by position; none of
//! them outlives the process, so nothing is ever synced.
//!
//! Invariant: what is read is what was written, or an error. The checksums stay in memory, with
//! the places.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use snowmelt_store::Folder;
use twox_hash::XxHash3_64;

use crate::input::error::LoadError;

/// Name of the folder inside the database directory.
pub(super) const TEMP_DIR: &str = snowmelt_store::LOAD_DIR;

/// The temporary folder; removed with everything in it when dropped.
#[derive(Debug)]
pub(super) struct TempSpace {
    database: Folder,
    folder: Folder,
    bytes: AtomicU64,
}

impl TempSpace {
    /// Creates the folder inside `database`, after removing what a killed load may have left.
    pub(super) fn create(database: &Path) -> Result<Arc<TempSpace>, LoadError> {
        let failed = |e| LoadError::temp(&database.join(TEMP_DIR), e);
        let database = Folder::open(database).map_err(failed)?;
        database.remove(Path::new(TEMP_DIR)).map_err(failed)?;
        let folder = database.make_folder(Path::new(TEMP_DIR)).map_err(failed)?;
        Ok(Arc::new(TempSpace { database, folder, bytes: AtomicU64::new(0) }))
    }

    /// Bytes written to all files so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Creates an empty file in the folder.
    pub(super) fn file(self: &Arc<Self>, name: &str) -> Result<TempFile, LoadError> {
        let path = self.folder.path().join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = self.folder.open_file(Path::new(name), flags).map_err(|e| LoadError::temp(&path, e))?;
        Ok(TempFile { file, path, len: 0, space: Arc::clone(self) })
    }
}

impl Drop for TempSpace {
    fn drop(&mut self) {
        // A failure here has no remedy: the next load removes the folder again.
        let _ = self.database.remove(Path::new(TEMP_DIR));
    }
}

/// The place of bytes that were appended to a file, and their checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TempPlace {
    at: u64,
    len: usize,
    checksum: u64,
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
    /// Appends `bytes` and returns their place.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<TempPlace, LoadError> {
        let at = self.len;
        self.file.write_all_at(bytes, at).map_err(|e| LoadError::temp(&self.path, e))?;
        self.len += bytes.len() as u64;
        self.space.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(TempPlace { at, len: bytes.len(), checksum: XxHash3_64::oneshot(bytes) })
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
    /// The error for contents other than those written.
    pub(super) fn damaged(&self, why: String) -> LoadError {
        LoadError::temp(&self.path, io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// Replaces `out` by the bytes of a place.
    pub(super) fn read(&self, place: TempPlace, out: &mut Vec<u8>) -> Result<(), LoadError> {
        out.resize(place.len, 0);
        self.file.read_exact_at(out, place.at).map_err(|e| LoadError::temp(&self.path, e))?;
        if XxHash3_64::oneshot(out) != place.checksum {
            return Err(
                self.damaged(format!("the {} bytes at {} are not what was written", place.len, place.at))
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A load whose database was moved does not touch the files of another load at the old path.
    #[test]
    fn goes_where_the_database_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (db, moved) = (dir.path().join("db"), dir.path().join("moved"));
        fs::create_dir(&db).unwrap();
        let first = TempSpace::create(&db).unwrap();
        fs::rename(&db, &moved).unwrap();
        fs::create_dir(&db).unwrap();
        let second = TempSpace::create(&db).unwrap();
        let [one, _two] = [&first, &second].map(|space| space.file("runs").unwrap());
        assert!(moved.join(TEMP_DIR).join("runs").exists());
        drop((first, one));
        assert!(!moved.join(TEMP_DIR).exists() && db.join(TEMP_DIR).join("runs").exists());
        second.file("more").unwrap();
    }

    #[test]
    fn leaves_nothing_behind() {
        let db = tempfile::tempdir().unwrap();
        fs::create_dir(db.path().join(TEMP_DIR)).unwrap();
        fs::write(db.path().join(TEMP_DIR).join("old"), b"left by a killed load").unwrap();
        let space = TempSpace::create(db.path()).unwrap();
        assert!(!db.path().join(TEMP_DIR).join("old").exists());
        let mut file = space.file("runs").unwrap();
        let places = [&b"one"[..], b"two"].map(|bytes| file.append(bytes).unwrap());
        let mut got = Vec::new();
        file.reader().unwrap().read(places[1], &mut got).unwrap();
        assert_eq!(got, b"two");
        drop((file, space));
        assert!(!db.path().join(TEMP_DIR).exists());
    }

    /// A device that gives back other bytes ends the load: they would be quads and terms.
    #[test]
    fn bytes_that_changed_are_an_error() {
        let db = tempfile::tempdir().unwrap();
        let space = TempSpace::create(db.path()).unwrap();
        let mut file = space.file("runs").unwrap();
        let places = [&b"one"[..], b"two"].map(|bytes| file.append(bytes).unwrap());
        file.file.write_all_at(b"x", 4).unwrap();
        let (reader, mut got) = (file.reader().unwrap(), Vec::new());
        reader.read(places[0], &mut got).unwrap();
        let error = reader.read(places[1], &mut got).unwrap_err().to_string();
        assert!(error.contains("the 3 bytes at 3 are not what was written"), "{error}");
    }
}
