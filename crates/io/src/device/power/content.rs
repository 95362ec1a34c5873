//! The content of a file whose power can be cut: as read now, as durable, and the changes between.

use snowmelt_base::random::Random;

/// Smallest part of a write that is all there or not at all.
const SECTOR: usize = 512;

/// A file of a disk.
#[derive(Default, Clone)]
pub(super) struct Content {
    pub(super) now: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// Since the last sync.
    pub(super) changes: Vec<Change>,
    /// Changes made durable so far.
    pub(super) synced: u64,
    pub(super) synced_once: bool,
}

/// A change that is not durable yet.
#[derive(Clone)]
pub(super) enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
}

/// The part of the later changes that a cut keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    All,
    Some,
}

impl Content {
    /// Content of the file after a power cut.
    pub(super) fn lose(&mut self, keep: Keep, random: &mut Random) {
        let mut left = std::mem::take(&mut self.durable);
        let longest = left.len().max(self.now.len());
        let changes = std::mem::take(&mut self.changes);
        self.synced += changes.len() as u64;
        let shrunk = changes.iter().any(|c| matches!(c, Change::Len(len) if (*len as usize) < left.len()));
        let len = match keep {
            Keep::Nothing => left.len(),
            Keep::All => self.now.len(),
            Keep::Some if shrunk => [left.len(), self.now.len()][random.below(2) as usize],
            Keep::Some => left.len() + random.below((longest - left.len() + 1) as u64) as usize,
        };
        left.resize(longest, 0);
        for change in changes {
            let Change::Write(offset, bytes) = change else { continue };
            for (i, sector) in bytes.chunks(SECTOR).enumerate() {
                let at = offset as usize + i * SECTOR;
                let kept = keep == Keep::All || (keep == Keep::Some && random.below(2) == 0);
                if kept && at + sector.len() <= left.len() {
                    left[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        left.truncate(len);
        left.resize(len, 0);
        self.now = left.clone();
        self.durable = left;
        self.synced_once = true;
    }

    /// Changes made so far.
    pub(super) fn changes_made(&self) -> u64 {
        self.synced + self.changes.len() as u64
    }

    /// Makes the first so many changes durable.
    pub(super) fn sync(&mut self, made: u64) {
        let n = made.saturating_sub(self.synced).min(self.changes.len() as u64);
        self.synced += n;
        for change in self.changes.drain(..n as usize) {
            match change {
                Change::Len(len) => self.durable.resize(len as usize, 0),
                Change::Write(offset, bytes) => write(&mut self.durable, offset, &bytes),
            }
        }
        self.synced_once = true;
    }
}

pub(super) fn write(to: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (from, end) = (offset as usize, offset as usize + bytes.len());
    if to.len() < end {
        to.resize(end, 0);
    }
    to[from..end].copy_from_slice(bytes);
}
