//! Files to measure on, made by the laboratory itself.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use snowmelt_base::random::fill;

use crate::machine::BlockDevice;
use crate::undo::{Step, Undo};
use crate::{LabError, room};

/// Refuses what is there already, unless its content may be lost.
///
/// # Errors
/// It is there, and `destroy` is false.
pub fn may_be_written(path: &Path, destroy: bool) -> Result<(), LabError> {
    if destroy || !path.exists() {
        return Ok(());
    }
    Err(LabError::refused(
        path.display(),
        "is there already and would be overwritten",
        "name a file that is not there yet, or allow it with --destroy",
    ))
}

/// The disk below a file that may have to be made first.
///
/// # Errors
/// Neither it nor its folder can be looked at.
pub fn disk_below(path: &Path) -> Result<Option<BlockDevice>, LabError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    BlockDevice::find(if path.exists() { path } else { folder.unwrap_or(Path::new(".")) })
}

/// Makes a file of `len` bytes that do not compress, journalled (it is removed in the end) and
/// synced. All of it is written: holes and unwritten extents cost other times than data that is
/// there.
///
/// # Errors
/// The file is there already, there is no room for it, or it cannot be written.
pub fn make(path: &Path, len: u64, seed: u64, undo: &Undo) -> Result<(), LabError> {
    room::check(path, len, "name a smaller --size, or a file on another disk")?;
    let step = Step::RemoveFile { path: path.to_path_buf() };
    let (_, mut file) = undo.make(step, || File::create_new(path))?;
    let failed = |e: std::io::Error| LabError::file("write", path, e);
    let mut block = vec![0u8; 1 << 20];
    let mut state = seed | 1;
    let mut left = len;
    while left > 0 {
        fill(&mut block, &mut state);
        let n = left.min(block.len() as u64);
        file.write_all(&block[..n as usize]).map_err(failed)?;
        left -= n;
    }
    file.sync_all().map_err(failed)
}

/// Makes a file of `len` bytes of which none is written yet, journalled. It may be longer than the
/// disk has room: only what is written takes some.
///
/// # Errors
/// The file is there already, or the file system has no files so long.
pub fn make_sparse(path: &Path, len: u64, undo: &Undo) -> Result<(), LabError> {
    let step = Step::RemoveFile { path: path.to_path_buf() };
    let (_, file) = undo.make(step, || File::create_new(path))?;
    make_holes(&file, path, len)
}

/// Takes all that is written out of a sparse file: what is written anew must find room again.
///
/// # Errors
/// The file system refuses.
pub fn make_holes(file: &File, path: &Path, len: u64) -> Result<(), LabError> {
    let emptied = file.set_len(0).and_then(|()| file.set_len(len)).and_then(|()| file.sync_all());
    emptied.map_err(|e| LabError::file("give a length to", path, e))
}
