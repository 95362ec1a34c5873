//! Control files, read and written with a deadline.
//!
//! Reading and writing settings of a block device wait for others who set them, and those for
//! its requests.

use std::io;
use std::path::Path;
use std::time::Duration;

use snowmelt_io::{ApartCall, apart};

/// For calls that wait for a device: one that answers within the bounds of models is done long
/// before.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn read_setting(path: &Path) -> io::Result<String> {
    let bytes = apart(ApartCall::Read(path), PATIENCE)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    apart(ApartCall::Write(path, value), PATIENCE).map(drop)
}
