//! Makes a run cold, and proves it.
//!
//! The database's files are thrown out of the page cache and the kernel is asked what is left:
//! no page may be. With O_DIRECT they would not be read from there anyway. The cache of a
//! hypervisor or of the device cannot be seen.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;
use snowmelt_store::cold;

/// Proof that the files are cold.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Proof {
    /// Files of the database.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Pages of them in the page cache before.
    pub cached_before: u64,
    /// And after eviction: 0.
    pub cached_after: u64,
}

impl Proof {
    /// A line that says what was shown.
    pub fn text(&self) -> String {
        format!(
            "cold: {} files, {:.1} MiB; {} of their pages in the page cache before eviction, {} after it (cachestat)",
            self.files,
            self.bytes as f64 / (1 << 20) as f64,
            self.cached_before,
            self.cached_after
        )
    }
}

/// Evicts the files of the database in `dir`, and proves that nothing of them is cached.
pub fn make_cold(dir: &Path) -> Result<Proof> {
    let before = cold::cached(dir)?;
    let after = cold::evict(dir)?;
    let pages = |files: &[cold::Cached]| files.iter().map(|file| file.pages).sum();
    let proof = Proof {
        files: after.len(),
        bytes: after.iter().map(|file| file.bytes).sum(),
        cached_before: pages(&before),
        cached_after: pages(&after),
    };
    if proof.cached_after > 0 {
        bail!(
            "{} pages of {} stay in the page cache: is another process using it?",
            proof.cached_after,
            dir.display()
        );
    }
    Ok(proof)
}
