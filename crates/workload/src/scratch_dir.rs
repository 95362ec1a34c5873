//! Temporary directories of this process, removed when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

/// A directory that is removed with everything in it when this is dropped.
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
}

impl ScratchDir {
    /// Makes a new one in the system's temporary directory (`TMPDIR`).
    pub fn new(name: &str) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("{name}-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                // Left by a process of the same number that was killed: not ours to remove.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot make {}", path.display())),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            snowmelt_base::tell!("snowmelt: {} could not be removed: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_everything_in_it() {
        let dir = ScratchDir::new("snowmelt-test").unwrap();
        let path = dir.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        assert_ne!(ScratchDir::new("snowmelt-test").unwrap().path(), path);
        drop(dir);
        assert!(!path.exists());
    }
}
