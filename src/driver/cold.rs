//! Making a run cold, and showing that it is.
//!
//! The database's files are thrown out of the page cache and the kernel is asked what is left: no page may be. With O_DIRECT
//! they would not be read from there anyway. The cache of a hypervisor or of the device cannot be seen.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use snowmelt_io::page_cache;

/// What was found.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Files looked at.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Pages of them in the page cache, before and after.
    pub cached: Option<(u64, u64)>,
}

impl Proof {
    /// A line that says what was shown.
    pub fn text(&self) -> String {
        let Self { files, bytes, cached } = self;
        let mib = *bytes as f64 / (1 << 20) as f64;
        match cached {
            Some((before, after)) => format!(
                "cold: {files} files, {mib:.1} MiB, {before} pages in the page cache, {after} after eviction (cachestat)"
            ),
            None => format!(
                "cold: {files} files, {mib:.1} MiB evicted from the page cache; this kernel has no cachestat to prove it"
            ),
        }
    }
}

/// Evicts the files of the database in `dir` and its `stripes`, and proves that nothing of them is cached.
pub fn make_cold(dir: &Path, stripes: &[PathBuf]) -> Result<Proof> {
    let mut files = files_in(dir)?;
    files.extend(stripes.iter().filter(|stripe| !files.contains(stripe)).cloned().collect::<Vec<_>>());
    let before = cached(&files)?;
    let mut bytes = 0;
    for file in &files {
        page_cache::evict(file).with_context(|| format!("cannot evict {} from the page cache", file.display()))?;
        bytes += fs::metadata(file)?.len();
    }
    let after = cached(&files)?;
    if after.is_some_and(|pages| pages > 0) {
        bail!("{} pages of {} stay in the page cache: is another process using it?", after.unwrap_or(0), dir.display());
    }
    Ok(Proof { files: files.len(), bytes, cached: before.zip(after) })
}

/// Regular files of a directory.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

/// Pages of `files` in the page cache; `None` where the kernel does not tell.
fn cached(files: &[PathBuf]) -> Result<Option<u64>> {
    let mut pages = 0;
    for file in files {
        match page_cache::cached_pages(file) {
            Ok(found) => pages += found.cached,
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot look at the page cache of {}", file.display())),
        }
    }
    Ok(Some(pages))
}
