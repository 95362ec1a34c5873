//! The state of a disk whose power can be cut: its files, the steps so far, and the faults to come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_base::random::Random;

use crate::device::power::content::Content;
use crate::error::{IoError, IoErrorKind, Operation};

#[derive(Default)]
pub(super) struct PowerState {
    pub(super) files: BTreeMap<PathBuf, Content>,
    pub(super) random: Random,
    /// Decides how long requests take.
    pub(super) delays: Random,
    pub(super) steps: u64,
    /// Over everything asked so far.
    pub(super) digest: u64,
    /// The step at which the power goes.
    pub(super) cut_at: Option<u64>,
    pub(super) off: bool,
    /// Times the power came back. A file opened before that belongs to a process that is no more.
    pub(super) epoch: u64,
    /// Steps from which on writes fail, with which error.
    pub(super) failing: Option<(u64, i32)>,
    /// The file whose steps fail: how its path ends, how many are left before that, and the
    /// error.
    pub(super) failing_file: Option<(String, u64, i32)>,
    /// Bytes of all files together that there is room for.
    pub(super) capacity: Option<u64>,
    /// Reads done so far, and the one that fails.
    pub(super) reads: u64,
    pub(super) failing_read: Option<u64>,
    /// The file one of whose writes gets lost, and how many go well before it.
    pub(super) losing: Option<(PathBuf, u64)>,
}

impl PowerState {
    pub(super) fn begin_epoch(&mut self) {
        (self.off, self.cut_at) = (false, None);
        self.epoch += 1;
    }

    /// Counts a step, or fails.
    pub(super) fn step(
        &mut self,
        name: &Arc<str>,
        operation: Operation,
        offset: u64,
        len: u64,
    ) -> Result<(), IoError> {
        let fail =
            |errno| IoError { device: name.clone(), operation, offset, len, kind: IoErrorKind::Os { errno } };
        let file = name.rsplit('/').next().expect("a split has a first part");
        let mut hash = digest(self.digest, file.as_bytes());
        for part in [operation as u64, offset, len] {
            hash = digest(hash, &part.to_le_bytes());
        }
        self.digest = hash;
        if self.cut_at.is_some_and(|at| self.steps >= at) {
            self.off = true;
        }
        if self.off {
            return Err(fail(libc::EIO));
        }
        self.steps += 1;
        if let Some((of, left, errno)) = &mut self.failing_file
            && of == file
        {
            if *left == 0 {
                return Err(fail(*errno));
            }
            *left -= 1;
        }
        match self.failing {
            Some((_, libc::ENOSPC)) if operation == Operation::Sync => Ok(()),
            Some((from, errno)) if self.steps > from => Err(fail(errno)),
            _ => Ok(()),
        }
    }

    /// True of the write that is to be lost.
    pub(super) fn loses(&mut self, path: &Path) -> bool {
        match &mut self.losing {
            Some((file, 0)) if file == path => self.losing.take().is_some(),
            Some((file, left)) if file == path => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.files.values().map(|f| f.now.len() as u64).sum()
    }

    /// True when there is no room for a file to be `len` bytes long.
    pub(super) fn is_full(&self, path: &Path, len: u64) -> bool {
        let now = self.files.get(path).map_or(0, |f| f.now.len() as u64);
        self.capacity.is_some_and(|most| len > now && self.used() + len - now > most)
    }
}

/// Continues an FNV-1a hash.
fn digest(so_far: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(so_far ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}
