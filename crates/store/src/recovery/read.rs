//! From the journal's records to the shares that take them in.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::ScopedJoinHandle;

use super::damaged;
use super::replay::Replay;
use crate::config::StoreConfig;
use crate::error::Result;
use crate::journal;
use crate::journal::file::JournalFile;
use crate::journal::record::{self, Head};
use crate::journal::scan::{self, Found, Needed};

/// The unpacked payload of a record. Fresh memory costs as much as unpacking, so its buffer goes back to be used again.
pub(super) struct Payload {
    bytes: Vec<u8>,
    give_back: mpsc::Sender<Vec<u8>>,
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // Nobody wants it when everything has been read.
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

/// Reads and unpacks the records and has each share take in what they say: in a thread of its own when there are several.
pub(super) fn read_journal(
    dir: &Path,
    config: &StoreConfig,
    needed: Needed,
    shares: &mut [&mut Replay],
) -> Result<Found> {
    /// Records on their way to a share.
    const MOST: u64 = 32;
    let most = (config.recovery_bytes() / 64 / config.journal.part_bytes as u64).clamp(1, MOST) as usize;
    let (give_back, spare) = mpsc::channel();
    let unpack = |head: &Head, offset: u64, stored: &[u8]| {
        let mut bytes = spare.try_recv().unwrap_or_default();
        record::unpack_into(head, stored, &mut bytes)
            .ok_or_else(|| damaged(dir, head.file, offset, "the record cannot be unpacked"))?;
        Ok(Arc::new(Payload { bytes, give_back: give_back.clone() }))
    };
    if let [replay] = shares {
        return scan::scan(dir, config, needed, &mut |head, file, offset, stored| {
            replay.record(head, file, offset, unpack(head, offset, stored)?)
        });
    }
    std::thread::scope(|scope| {
        let (mut send, mut takers) = (Vec::new(), Vec::new());
        for replay in shares {
            let (to_share, taken) = mpsc::sync_channel::<(Head, Arc<JournalFile>, u64, Arc<Payload>)>(most);
            send.push(to_share);
            takers.push(scope.spawn(move || {
                taken.into_iter().try_for_each(|(head, file, offset, payload)| {
                    replay.record(&head, &file, offset, payload)
                })
            }));
        }
        let found = scan::scan(dir, config, needed, &mut |head, file, offset, stored| {
            let payload = unpack(head, offset, stored)?;
            // The error of the share that ended says more.
            let ended = |_| damaged(dir, head.file, offset, "the record could not be replayed");
            send.iter()
                .try_for_each(|s| s.send((*head, file.clone(), offset, payload.clone())).map_err(ended))
        });
        drop(send);
        let join = |t: ScopedJoinHandle<'_, _>| t.join().unwrap_or_else(|e| resume_unwind(e));
        takers.into_iter().map(join).fold(Ok(()), Result::and)?;
        found
    })
}
