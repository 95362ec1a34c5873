//! The index: its file, and the locks of this process on it.
//!
//! Read here without a lock: the record of a slot that was read, and the changes that others made.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use parking_lot::Mutex;

use super::header::{ChangeTimes, TIMES_AT, TIMES_BYTES};
use super::index_file::{read_or_zeros, record_at};
use super::locks::{HeldLock, LockPlace};
use super::preamble::Preamble;
use super::record::{READ_MARK_AT, RECORD_BYTES, SlotRecord};
use super::view::FoundSlot;
use crate::time::clock::Clock;

/// See the head of the file.
pub(super) struct ExtentIndex {
    /// The opening that all locks of this process are on.
    pub file: File,
    pub path: PathBuf,
    pub preamble: Preamble,
    /// Slots of an index that has to be made anew.
    pub usual_slots: u32,
    pub clock: Clock,
    /// Held during a session, for threads of this process.
    pub turn: Mutex<()>,
    /// Slots that this process writes into.
    written: Mutex<HashSet<u32>>,
}

impl ExtentIndex {
    pub fn new(file: File, path: PathBuf, preamble: Preamble, slots: u32, clock: Clock) -> ExtentIndex {
        let (turn, written) = (Mutex::default(), Mutex::default());
        ExtentIndex { file, path, preamble, usual_slots: slots, clock, turn, written }
    }

    /// Epoch and changes as they are now, read without the lock: other ones than those in the head
    /// only while they change.
    pub fn times(&self) -> io::Result<ChangeTimes> {
        let mut bytes = [0; TIMES_BYTES];
        self.file.read_exact_at(&mut bytes, TIMES_AT)?;
        Ok(ChangeTimes::decode(&bytes))
    }

    /// Whether the slot still holds the object, read without the lock.
    pub fn still_holds(&self, found: &FoundSlot) -> io::Result<bool> {
        Ok(self.mark_of(found)?.is_some())
    }

    /// As [`ExtentIndex::still_holds`], and the clock's hand will pass by the slot once.
    pub fn still_holds_for_reader(&self, found: &FoundSlot) -> io::Result<bool> {
        let mark = self.mark_of(found)?;
        if mark == Some(0) {
            // A mark is advice. A disk that can only be read still gives its objects.
            let _ = self.file.write_all_at(&[1], record_at(found.slot) + READ_MARK_AT as u64);
        }
        Ok(mark.is_some())
    }

    /// The mark of a read; `None` when the slot no longer holds the object.
    fn mark_of(&self, found: &FoundSlot) -> io::Result<Option<u8>> {
        let bytes = read_or_zeros(&self.file, record_at(found.slot), RECORD_BYTES)?;
        let holds = Some(SlotRecord { holds: Some(found.object), generation: found.generation });
        let same = SlotRecord::decode(&bytes, found.slot) == holds;
        Ok(same.then_some(bytes[READ_MARK_AT]))
    }

    /// Takes the lock of a slot, to write into it; `None`: another thread or process has it.
    pub fn try_write(&self, slot: u32) -> io::Result<Option<WrittenSlot<'_>>> {
        if !self.written.lock().insert(slot) {
            return Ok(None);
        }
        let mut written = WrittenSlot { index: self, slot, held: None };
        written.held = HeldLock::try_take(&self.file, LockPlace::Slot(slot))?;
        Ok(written.held.is_some().then_some(written))
    }
}

/// A slot that this thread may write into.
pub(super) struct WrittenSlot<'a> {
    index: &'a ExtentIndex,
    pub slot: u32,
    held: Option<HeldLock<'a>>,
}

impl Drop for WrittenSlot<'_> {
    fn drop(&mut self) {
        // In this order: a thread that finds the slot free takes a lock that this does not give
        // back.
        self.held = None;
        self.index.written.lock().remove(&self.slot);
    }
}
