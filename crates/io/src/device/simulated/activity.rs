//! Counts of the requests that arrived at a simulated device.

use serde::{Deserialize, Serialize};

use crate::device::timed::{Transfer, TransferKind};

/// Requests to a simulated device since it was made, or since the counts were reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Reads that arrived.
    pub reads: u64,
    /// Writes that arrived.
    pub writes: u64,
    /// Flushes that arrived.
    pub flushes: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub written_bytes: u64,
    /// Reads of the drives below: more than `reads` where an array cuts them at its chunks.
    #[serde(default)]
    pub member_reads: u64,
    /// Requests at the device now.
    pub outstanding: u64,
    /// The most there were at once.
    pub most_outstanding: u64,
    /// Splits: pieces beyond the first that an array made of its reads and writes.
    #[serde(default)]
    pub splits: u64,
}

impl Activity {
    /// A request of so many parts, one for each drive that has some of it.
    pub(crate) fn arrived(&mut self, transfer: &Transfer, parts: u64) {
        match transfer.kind {
            TransferKind::Read => {
                (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + transfer.len);
                self.member_reads += parts;
            }
            TransferKind::Write => {
                (self.writes, self.written_bytes) = (self.writes + 1, self.written_bytes + transfer.len)
            }
            TransferKind::Flush => self.flushes += 1,
        }
        if transfer.kind != TransferKind::Flush {
            self.splits += parts - 1;
        }
        self.outstanding += 1;
        self.most_outstanding = self.most_outstanding.max(self.outstanding);
    }
}
