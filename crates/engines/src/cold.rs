//! The stored files of a stopped engine made cold: written back, thrown out of the page cache,
//! and the kernel asked what is left of them there.
//!
//! It needs no root, and the caches of other programs stay. The engine's own program stays
//! cached too, and so does what a hypervisor or a drive keeps.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Advice, fadvise};
use serde::Serialize;
use snowmelt_io::cached_pages;

use crate::error::EngineError;

/// Proof that files are cold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ColdFiles {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Pages of them in the page cache before.
    pub cached_before: u64,
    /// And after.
    pub cached_after: u64,
}

/// Makes all files below a folder cold.
///
/// # Errors
/// A file cannot be read or synced, or the kernel cannot tell (cachestat needs Linux 6.5).
pub fn make_cold(folder: &Path) -> Result<ColdFiles, EngineError> {
    let paths = files(folder)?;
    let mut proof = ColdFiles { files: paths.len(), ..ColdFiles::default() };
    for path in &paths {
        let file = File::open(path).map_err(|e| EngineError::file("open", path, e))?;
        let count = || cached_pages(&file).map_err(|e| EngineError::file("ask for cached pages of", path, e));
        proof.bytes += file.metadata().map_or(0, |meta| meta.len());
        proof.cached_before += count()?;
        // Dirty pages stay unless they are written back first.
        file.sync_data().map_err(|e| EngineError::file("sync", path, e))?;
        let mut left = u64::MAX;
        for attempt in 0..6 {
            // Pages on their way between lists are skipped; a moment later they are not.
            std::thread::sleep(Duration::from_millis(20 * u64::from(attempt > 0)));
            fadvise(&file, 0, None, Advice::DontNeed).map_err(|e| EngineError::file("evict", path, e))?;
            left = count()?;
            if left == 0 {
                break;
            }
        }
        proof.cached_after += left;
    }
    Ok(proof)
}

/// Bytes that the files below a folder, or a file, have on their disk.
///
/// # Errors
/// A folder cannot be read.
pub fn bytes_on_disk(folder: &Path) -> Result<u64, EngineError> {
    let blocks = |path: &PathBuf| fs::symlink_metadata(path).map_or(0, |meta| meta.blocks());
    Ok(512 * files(folder)?.iter().map(blocks).sum::<u64>())
}

/// Regular files below a folder, or the file itself.
fn files(folder: &Path) -> Result<Vec<PathBuf>, EngineError> {
    if folder.is_file() {
        return Ok(vec![folder.to_path_buf()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| EngineError::file("read the folder", &folder, e))?;
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_files_become_cold_and_are_counted() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        fs::write(dir.path().join("a"), vec![1; 1 << 20]).unwrap();
        fs::write(dir.path().join("deep/b"), vec![2; 1 << 16]).unwrap();
        assert_eq!(files(dir.path()).unwrap().len(), 2);
        let proof = match make_cold(dir.path()) {
            Ok(proof) => proof,
            Err(error) => return println!("skipped: {error}"),
        };
        assert_eq!((proof.files, proof.bytes, proof.cached_after), (2, (1 << 20) + (1 << 16), 0));
        assert_eq!(proof.cached_before, 256 + 16);
        assert_eq!(bytes_on_disk(dir.path()).unwrap(), proof.bytes);
    }
}
