//! Files to measure on, made by the laboratory itself.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use snowmelt_base::random::fill;

use crate::undo::{Step, Undo};
use crate::{LabError, room};

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
