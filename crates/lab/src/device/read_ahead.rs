//! The read-ahead of a device while it is measured: the kernel changes it unasked.
//!
//! Whenever another limit of a device changes (a scheduler, a size, a discard of mkfs that is
//! refused), the kernel computes the read-ahead anew: a disk set to 128 KiB then has 2048. So
//! the right value is remembered: for an emulated device the one it was made with, for others
//! the one at the beginning of the run. It is checked before every cell and set again where it
//! differs.

use std::path::PathBuf;

use crate::LabError;
use crate::device::Behind;
use crate::machine::BlockDevice;
use crate::undo::Undo;

/// The read-ahead of one device, kept.
pub(crate) struct ReadAhead {
    path: PathBuf,
    kb: String,
    /// The device's own server sets it back in the end.
    emulated: bool,
}

impl ReadAhead {
    /// Of `device`; none where the kernel shows none.
    pub fn read(device: &BlockDevice) -> Option<ReadAhead> {
        let path = device.sys().join("queue/read_ahead_kb");
        let now = std::fs::read_to_string(&path).ok()?;
        let made_with = Behind::find(&device.name).map(|behind| behind.read_ahead_kb().to_string());
        let emulated = made_with.is_some();
        Some(ReadAhead { path, kb: made_with.unwrap_or_else(|| now.trim().to_string()), emulated })
    }

    /// Sees that the device has it, and sets it where it has not.
    pub fn hold(&self, undo: &Undo) -> Result<(), LabError> {
        let read = || std::fs::read_to_string(&self.path).map_err(|e| LabError::file("read", &self.path, e));
        let found = read()?;
        if found.trim() == self.kb {
            return Ok(());
        }
        crate::tell!("{}: was {}, is set to {} again", self.path.display(), found.trim(), self.kb);
        let set = match self.emulated {
            true => std::fs::write(&self.path, &self.kb).map_err(|e| LabError::file("write", &self.path, e)),
            false => undo.set(&self.path, &self.kb).map_err(LabError::from),
        };
        let why = match (set, read()?) {
            (Ok(()), now) if now.trim() == self.kb => return Ok(()),
            (Ok(()), now) => format!("it reads {} after it was set", now.trim()),
            (Err(e), _) => e.to_string(),
        };
        Err(LabError::refused(
            format!("measure with a read-ahead of {} KiB", self.kb),
            format!("{} changed to {} meanwhile; {why}", self.path.display(), found.trim()),
            "set it by hand, as root, and see what changes it",
        ))
    }
}
