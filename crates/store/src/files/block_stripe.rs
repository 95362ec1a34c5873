//! A stripe that is a block device: taken for the database alone, and only if it may be.
//!
//! A new database takes one only when told so, since all that is on it is lost, and never one
//! that is in use. While the database is open for writing the device cannot be mounted. Its size
//! bounds the extents: an extent that has no room on it is [`StoreError::Full`].

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use snowmelt_io::{block_claim, block_contents, block_mounted_on};

use crate::error::{Result, StoreError};
use crate::settings::config::BlockDevices;

/// Bytes at the begin of a device that are made zero, so that no tool takes its old contents
/// for the present ones.
const HEAD_BYTES: usize = 1 << 20;

/// The claim on a device; let go when dropped.
pub(crate) struct Claim {
    _file: File,
}

impl Claim {
    /// Claims the device of a database that is opened for writing.
    pub fn take(path: &Path) -> Result<Claim> {
        match block_claim(path) {
            Ok(file) => Ok(Claim { _file: file }),
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy => Err(StoreError::Config(format!(
                "{} is in use ({}): it cannot be a stripe of a database",
                path.display(),
                match block_mounted_on(path) {
                    Some(place) => format!("mounted on {place}"),
                    None => "mounted, swap, or held by another device or database".into(),
                }
            ))),
            Err(e) => Err(StoreError::file(path, "claim the block device")(e)),
        }
    }

    /// Claims the device of a database that is made, and clears its begin.
    pub fn take_new(path: &Path, devices: BlockDevices) -> Result<Claim> {
        if devices == BlockDevices::Refuse {
            let found = block_contents(path).map_err(StoreError::file(path, "look at the block device"))?;
            let found = match (block_mounted_on(path), found) {
                (Some(place), _) => format!("it is mounted on {place}"),
                (None, Some(what)) => format!("there is {what} on it"),
                (None, None) => "nothing is at its begin".into(),
            };
            return Err(StoreError::BlockDevice { path: path.to_path_buf(), found });
        }
        let claim = Claim::take(path)?;
        let clear = || {
            let file = OpenOptions::new().write(true).open(path)?;
            file.write_all_at(&vec![0; HEAD_BYTES], 0)?;
            file.sync_all()
        };
        clear().map_err(StoreError::file(path, "clear the begin of the block device"))?;
        Ok(claim)
    }
}
