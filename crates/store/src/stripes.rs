//! The stripes: one file per device, each with its own queue.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};
use crate::space::{Geometry, Place};

/// The open stripes of a store.
#[derive(Debug)]
pub(crate) struct Stripes {
    list: Vec<Stripe>,
}

#[derive(Debug)]
struct Stripe {
    path: PathBuf,
    file: File,
}

/// Where the stripe named `path` in the super-block is.
pub(crate) fn resolve(dir: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_path_buf() } else { dir.join(path) }
}

impl Stripes {
    /// Makes the files; they must not exist.
    pub fn create(paths: &[PathBuf]) -> Result<()> {
        for path in paths {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)
                .map_err(StoreError::file(path, "create the stripe"))?;
        }
        Ok(())
    }

    /// Opens the files and checks their lengths against the extent map. What is beyond was written by a build that never committed
    /// and is cut off.
    pub fn open(paths: &[PathBuf], geometry: Geometry, extents: u64) -> Result<Stripes> {
        let mut list = Vec::new();
        for (i, path) in paths.iter().enumerate() {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .map_err(StoreError::file(path, "open the stripe"))?;
            let found = file.metadata().map_err(StoreError::file(path, "look at the stripe"))?.len();
            let expected = geometry.stripe_bytes(i, extents);
            if found < expected {
                return Err(StoreError::Truncated { path: path.clone(), found, expected });
            }
            if found > expected {
                file.set_len(expected).map_err(StoreError::file(path, "shorten the stripe"))?;
            }
            list.push(Stripe { path: path.clone(), file });
        }
        Ok(Stripes { list })
    }

    /// Fills `buf` from a place.
    pub fn read(&self, place: Place, buf: &mut [u8]) -> std::io::Result<()> {
        self.list[place.stripe].file.read_exact_at(buf, place.offset)
    }

    /// Writes `bytes` to a place.
    pub fn write(&self, place: Place, bytes: &[u8]) -> Result<()> {
        let s = &self.list[place.stripe];
        s.file.write_all_at(bytes, place.offset).map_err(StoreError::file(&s.path, "write to the stripe"))
    }

    /// Makes everything written durable, the directory entries too.
    pub fn sync(&self) -> Result<()> {
        for s in &self.list {
            s.file.sync_data().map_err(StoreError::file(&s.path, "sync the stripe"))?;
            sync_parent(&s.path)?;
        }
        Ok(())
    }

    /// Makes the files as long as `extents` extents need.
    pub fn set_extents(&self, geometry: Geometry, extents: u64) -> Result<()> {
        for (i, s) in self.list.iter().enumerate() {
            s.file
                .set_len(geometry.stripe_bytes(i, extents))
                .map_err(StoreError::file(&s.path, "set the length of the stripe"))?;
        }
        Ok(())
    }
}

/// Makes the directory entry of `path` durable.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|d| d.sync_all()).map_err(StoreError::file(parent, "sync the directory"))
}
