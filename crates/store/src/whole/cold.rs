//! Proving that a start is cold: throw a database's files out of the page cache and count what
//! is left with cachestat(2).
//!
//! With O_DIRECT and an empty pool nothing of ours reads through the page cache, but a file
//! that was loaded or copied before may lie in it, and buffered engines would profit. What a
//! hypervisor or a disk keeps cannot be seen from here.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use snowmelt_io::cached_pages;

use crate::error::{Result, StoreError};
use crate::files::resolve;
use crate::superblock::{self, SuperBlockFile};

/// Pages of a file in the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Pages of the kernel's size (4096 bytes) in the page cache.
    pub pages: u64,
}

/// Writes back and throws out all files of the database in `dir`, and returns what the page
/// cache still holds of each: all zero when nothing else uses them. The database may be open.
pub fn evict(dir: &Path) -> Result<Vec<Cached>> {
    files(dir)?.iter().map(|f| evict_file(f)).collect()
}

/// Pages in the page cache of each file of the database in `dir`.
pub fn cached(dir: &Path) -> Result<Vec<Cached>> {
    files(dir)?.iter().map(|path| count(path, &open(path)?)).collect()
}

/// The stripes, the super-block, the journal and the warm list.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let block = SuperBlockFile::peek(dir)?;
    let stripes = block.stripes.iter().map(|p| resolve(dir, p));
    let own = [dir.join(superblock::FILE_NAME), dir.join(crate::read::warm::FILE_NAME)];
    let journal = (0..block.slots).map(|slot| dir.join(format!("journal-{slot}")));
    let own = own.into_iter().chain(journal);
    Ok(stripes.chain(own.filter(|p| p.exists())).collect())
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(StoreError::file(path, "open the file"))
}

fn evict_file(path: &Path) -> Result<Cached> {
    let file = open(path)?;
    file.sync_data().map_err(StoreError::file(path, "sync the file"))?;
    fadvise(&file, 0, None, Advice::DontNeed).map_err(StoreError::os(path, "evict from the page cache"))?;
    count(path, &file)
}

fn count(path: &Path, file: &File) -> Result<Cached> {
    let bytes = file.metadata().map_err(StoreError::file(path, "look at the file"))?.len();
    let pages = cached_pages(file)
        .map_err(StoreError::file(path, "ask what is in the page cache (cachestat needs Linux 6.5)"))?;
    Ok(Cached { path: path.to_path_buf(), bytes, pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_files_are_cached_until_evicted() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        match count(&path, &open(&path).unwrap()) {
            Ok(before) => assert_eq!((before.pages, before.bytes), (256, 1 << 20)),
            Err(e) => return eprintln!("skipped: {e}"),
        }
        assert_eq!(evict_file(&path).unwrap().pages, 0);
    }
}
