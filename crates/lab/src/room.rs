//! Whether a file system has room for bytes that are to be written, asked before time is spent on
//! them. A disk that fills up in the middle of a measurement takes other programs with it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{LabError, size};

/// Bytes that are left to others: a file system without any free block is slow, and other programs
/// fail on it.
pub const RESERVE: u64 = 64 << 20;

/// Unit of `st_blocks`.
const BLOCK: u64 = 512;

/// Smaller blocks are of no use to a page cache.
const LEAST_BLOCK: u64 = 4096;

/// Bytes that are free to this user where `path` is or will be; `None` where the file system does
/// not tell.
///
/// # Errors
/// The file system cannot be asked.
pub fn bytes_free(path: &Path) -> Result<Option<u64>, LabError> {
    let folder = existing(path);
    let stat =
        rustix::fs::statvfs(&folder).map_err(|e| LabError::file("ask for the free room of", &folder, e))?;
    Ok((stat.f_blocks > 0).then_some(stat.f_bavail.saturating_mul(stat.f_frsize)))
}

/// Refuses to write `needed` bytes at `path` where they and [`RESERVE`] are not free. Blocks that a
/// file of that name has already count as free: they are written in place. `instead` says what to
/// do about it.
///
/// # Errors
/// There is no room; the message has both numbers.
pub fn check(path: &Path, needed: u64, instead: &str) -> Result<(), LabError> {
    check_more(path, needed.saturating_sub(bytes_of(path)), instead)
}

/// Refuses to write `missing` bytes at `path` to blocks that it does not have yet, as [`check`]
/// does.
///
/// # Errors
/// There is no room; the message has both numbers.
pub fn check_more(path: &Path, missing: u64, instead: &str) -> Result<(), LabError> {
    match bytes_free(path)? {
        Some(free) if !fits(missing, free) => Err(too_little(path, missing, free, instead)),
        _ => Ok(()),
    }
}

/// Bytes of the blocks that a file has.
pub fn bytes_of(path: &Path) -> u64 {
    fs::metadata(path).ok().filter(|meta| meta.is_file()).map_or(0, |meta| meta.blocks() * BLOCK)
}

/// Bytes that a write of `bytes` into a hole takes at most: a file system gives whole blocks.
pub fn taken(path: &Path, bytes: u64) -> u64 {
    let block = rustix::fs::statvfs(existing(path)).map_or(0, |stat| stat.f_frsize).max(LEAST_BLOCK);
    // One that is no multiple begins within a block and ends within another.
    let more = if bytes.is_multiple_of(block) { 0 } else { block };
    bytes.next_multiple_of(block).saturating_add(more)
}

/// The refusal of `missing` bytes where only `free` are.
pub fn too_little(path: &Path, missing: u64, free: u64, instead: &str) -> LabError {
    let about = |bytes: u64| size::about(bytes as f64);
    LabError::refused(
        path.display(),
        format!(
            "{} are needed and {} free on its file system, of which {} stay free for others",
            about(missing),
            about(free),
            about(RESERVE)
        ),
        instead,
    )
}

/// True where `missing` bytes of `free` leave the reserve; no bytes fit everywhere.
fn fits(missing: u64, free: u64) -> bool {
    missing == 0 || missing.checked_add(RESERVE).is_some_and(|bytes| bytes <= free)
}

/// The path itself, or the nearest folder above it that is there.
fn existing(path: &Path) -> PathBuf {
    let is_there = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
    path.ancestors().find(is_there).unwrap_or(Path::new(".")).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_both_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("not/yet/there");
        let free = bytes_free(&path).unwrap().expect("a file system of temporary files tells");
        check(&path, 0, "").unwrap();
        let error = check(&path, 1 << 49, "name a smaller --size").unwrap_err().to_string();
        let says =
            ["not/yet/there", "512 TiB are needed", "free on its file system", "name a smaller --size"];
        says.iter().for_each(|part| assert!(error.contains(part), "{error} ({free} free)"));
        assert!(bytes_free(Path::new("relative-and-not-there")).unwrap().is_some());
    }

    #[test]
    fn the_reserve_stays_free() {
        assert!(fits(0, 0) && fits(1, RESERVE + 1) && fits(RESERVE, 2 * RESERVE));
        assert!(!fits(1, RESERVE) && !fits(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_small_write_into_a_hole_takes_a_block() {
        let dir = tempfile::tempdir().unwrap();
        let taken = |bytes| taken(dir.path(), bytes);
        let block = taken(1) / 2;
        assert!(block >= LEAST_BLOCK);
        assert_eq!([taken(block), taken(16 * block)], [block, 16 * block]);
        assert_eq!(taken(block + 1), 3 * block);
    }

    #[test]
    fn blocks_that_a_file_has_need_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        check(&path, 1 << 20, "").unwrap();
        let error = check(&path, (1 << 49) + (1 << 20), "").unwrap_err().to_string();
        assert!(error.contains("512 TiB are needed"), "{error}");
    }
}
