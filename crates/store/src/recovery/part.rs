//! Records on their way to the shares: unpacked payloads, and parts that wait for their commit.

use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, mpsc};

use super::damaged;
use crate::error::Result;
use crate::journal;
use crate::journal::file::JournalFile;
use crate::journal::record::{self, Head};

/// The unpacked payload of a record. Fresh memory costs as much as unpacking, so its buffer
/// goes back to be used again.
pub(super) struct Payload {
    pub bytes: Vec<u8>,
    pub give_back: mpsc::Sender<Vec<u8>>,
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // Fails when everything has been read: the receiver is gone then.
        let _ = self.give_back.send(std::mem::take(&mut self.bytes));
    }
}

/// A part of a transaction that has not committed: its payload, or where that is.
pub(super) struct Part {
    /// Number of the file.
    pub number: u64,
    pub offset: u64,
    head: Head,
    file: Arc<JournalFile>,
    payload: Option<Arc<Payload>>,
}

impl Part {
    pub fn new(head: &Head, file: &Arc<JournalFile>, offset: u64, payload: Arc<Payload>) -> Part {
        Part { number: head.file, offset, head: *head, file: file.clone(), payload: Some(payload) }
    }

    /// Leaves memory.
    pub fn leave(&mut self) {
        self.payload = None;
    }

    /// The payload, read again if it left memory.
    pub fn payload(&self, dir: &Path) -> Result<Arc<Payload>> {
        if let Some(payload) = &self.payload {
            return Ok(payload.clone());
        }
        let bytes = journal::read_record(&self.file, self.offset)?;
        // Its checksum was right when the journal was followed, and covers the payload.
        let stored = bytes.get(record::HEAD..record::HEAD + self.head.stored as usize);
        let same = record::peek(&bytes) == Some(self.head);
        let unpacked = stored.filter(|_| same).and_then(|stored| record::unpack(&self.head, stored));
        let bytes = unpacked.ok_or_else(|| {
            damaged(dir, self.number, self.offset, "the record was another when it was read before")
        })?;
        Ok(Arc::new(Payload { bytes, give_back: mpsc::channel().0 }))
    }
}
