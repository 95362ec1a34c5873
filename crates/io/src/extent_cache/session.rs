//! The index while it is locked: slots are taken, filled and given up.
//!
//! A change is announced (in the list of changes, then in the head) before the record is written: a
//! process killed between has announced too much, never too little.

use std::io;
use std::os::unix::fs::FileExt;

use parking_lot::MutexGuard;

use super::header::IndexHeader;
use super::index::{ExtentIndex, WrittenSlot};
use super::index_file::{
    LIST_AT, LISTED, empty_index, read_header, read_or_zeros, record_at, resize_index, take_index_lock,
};
use super::locks::HeldLock;
use super::preamble::NoPreamble;
use super::record::{HeldObject, READ_MARK_AT, RECORD_BYTES, SlotRecord};
use super::view::{CacheView, FoundSlot};
use crate::notice::notice;

/// Records read at once by the clock's hand, and by a process that has missed too much.
const HAND_RECORDS: u32 = 64;
const LOAD_RECORDS: u32 = 4096;

/// See the head of the file.
pub(super) struct IndexSession<'a> {
    index: &'a ExtentIndex,
    pub header: IndexHeader,
    /// Damage found in this session: records, and the head.
    pub damaged: u64,
    _held: HeldLock<'a>,
    _turn: MutexGuard<'a, ()>,
}

/// A slot taken for an object.
pub(super) struct TakenSlot<'a> {
    pub written: WrittenSlot<'a>,
    pub generation: u64,
    /// It held another object.
    pub evicts: bool,
    /// It was never used, and so has no room on the disk yet.
    pub is_new: bool,
}

impl<'a> IndexSession<'a> {
    /// Begins a session. An index whose head is damaged is emptied.
    ///
    /// # Errors
    /// The lock is not to be had within the patience for it; another cache was made in this file;
    /// those of the system.
    pub fn begin(index: &'a ExtentIndex) -> io::Result<IndexSession<'a>> {
        let turn = index.turn.lock();
        let Some(held) = take_index_lock(&index.file, &index.clock)? else {
            return Err(io::Error::other("another process has it locked, and was stopped perhaps"));
        };
        let (header, damaged) = match read_header(&index.file)? {
            Ok(header) if header.preamble == index.preamble => (header, 0),
            Ok(_) | Err(NoPreamble::Format(_)) => {
                return Err(io::Error::other("another cache was made in its place"));
            }
            Err(NoPreamble::Absent | NoPreamble::Damaged) => {
                notice(&format!("{}: damaged; the extent cache begins anew, empty", index.path.display()));
                (empty_index(&index.file, index.preamble, index.usual_slots, 1)?, 1)
            }
        };
        Ok(IndexSession { index, header, damaged, _held: held, _turn: turn })
    }

    /// Brings the view up to date.
    pub fn refresh(&mut self, view: &mut CacheView) -> io::Result<()> {
        let (seen, now) = (view.times, self.header.times);
        let missed = now.changes.wrapping_sub(seen.changes);
        if seen.epoch != now.epoch || view.slots() != self.header.slots || missed >= LISTED {
            self.load(view)?;
        } else {
            let list = read_or_zeros(&self.index.file, LIST_AT, 4 * LISTED as usize)?;
            for change in seen.changes + 1..=now.changes {
                let entry = list.chunks_exact(4).nth((change % LISTED) as usize);
                let slot = u32::from_le_bytes(entry.expect("the list has it").try_into().expect("4 bytes"));
                if slot < self.header.slots {
                    let record = self.record(slot)?;
                    view.apply(slot, record);
                }
            }
        }
        view.times = self.header.times;
        Ok(())
    }

    fn load(&mut self, view: &mut CacheView) -> io::Result<()> {
        if view.slots() != self.header.slots || view.times.epoch != self.header.times.epoch {
            view.clear(self.header.slots);
        }
        for first in (0..self.header.slots).step_by(LOAD_RECORDS as usize) {
            let bytes = self.records(first, LOAD_RECORDS)?;
            for (slot, bytes) in (first..).zip(bytes.chunks_exact(RECORD_BYTES)) {
                let record = self.sound(slot, bytes)?;
                view.apply(slot, record);
            }
        }
        Ok(())
    }

    /// Takes a slot for new bytes and empties it; `None`: all are being written.
    pub fn take(&mut self) -> io::Result<Option<TakenSlot<'a>>> {
        let Some((written, before)) = self.sweep()? else { return Ok(None) };
        let (evicts, is_new) = (before.holds.is_some(), before == SlotRecord::default());
        self.header.evictions += u64::from(evicts);
        let generation = self.empty(written.slot)?;
        Ok(Some(TakenSlot { written, generation, evicts, is_new }))
    }

    /// The clock: the hand passes by slots that were read since it last came, and those being
    /// written.
    fn sweep(&mut self) -> io::Result<Option<(WrittenSlot<'a>, SlotRecord)>> {
        let slots = self.header.slots;
        let mut left = 2 * u64::from(slots);
        while left > 0 {
            let first = self.header.hand % slots;
            let block = self.records(first, HAND_RECORDS)?;
            for (slot, bytes) in (first..).zip(block.chunks_exact(RECORD_BYTES)) {
                left = left.saturating_sub(1);
                self.header.hand = (slot + 1) % slots;
                let record = self.sound(slot, bytes)?;
                if record.holds.is_some() && bytes[READ_MARK_AT] != 0 {
                    self.index.file.write_all_at(&[0], record_at(slot) + READ_MARK_AT as u64)?;
                } else if let Some(written) = self.index.try_write(slot)? {
                    return Ok(Some((written, record)));
                }
            }
        }
        Ok(None)
    }

    /// Cuts the cache, for all processes, to the slots before one for which the disk has no room.
    /// False when that would leave none.
    pub fn cut(&mut self, slot: u32) -> io::Result<bool> {
        if (1..self.header.slots).contains(&slot) {
            resize_index(&self.index.file, &mut self.header, slot)?;
        }
        Ok(slot > 0)
    }

    /// Says that a slot holds the object that was written into it. False when the slot is no longer
    /// the writer's, because the cache was cut or emptied meanwhile.
    pub fn fill(&mut self, taken: &TakenSlot<'_>, object: HeldObject) -> io::Result<bool> {
        let (slot, generation) = (taken.written.slot, taken.generation);
        let is_ours =
            slot < self.header.slots && self.record(slot)? == SlotRecord { holds: None, generation };
        if is_ours {
            self.header.fetched += 1;
            self.header.fetched_bytes += u64::from(object.len);
            self.announce(slot)?;
            self.write_record(slot, SlotRecord { holds: Some(object), generation })?;
        }
        Ok(is_ours)
    }

    /// Gives up a slot whose bytes are not those of its object. False when it holds something else
    /// by now.
    pub fn give_up(&mut self, found: &FoundSlot) -> io::Result<bool> {
        let record = SlotRecord { holds: Some(found.object), generation: found.generation };
        let is_it = found.slot < self.header.slots && self.record(found.slot)? == record;
        if is_it {
            self.count_damage(1);
            self.empty(found.slot)?;
        }
        Ok(is_it)
    }

    fn count_damage(&mut self, more: u64) {
        self.header.damaged += more;
        self.damaged += more;
    }

    /// Empties a slot; returns its new generation.
    fn empty(&mut self, slot: u32) -> io::Result<u64> {
        let generation = self.announce(slot)?;
        self.write_record(slot, SlotRecord { holds: None, generation })?;
        Ok(generation)
    }

    fn announce(&mut self, slot: u32) -> io::Result<u64> {
        self.header.times.changes += 1;
        let change = self.header.times.changes;
        self.index.file.write_all_at(&slot.to_le_bytes(), LIST_AT + 4 * (change % LISTED))?;
        self.index.file.write_all_at(&self.header.encode(), 0)?;
        Ok(change)
    }

    fn write_record(&self, slot: u32, record: SlotRecord) -> io::Result<()> {
        self.index.file.write_all_at(&record.encode(slot), record_at(slot))
    }

    fn record(&mut self, slot: u32) -> io::Result<SlotRecord> {
        let bytes = read_or_zeros(&self.index.file, record_at(slot), RECORD_BYTES)?;
        self.sound(slot, &bytes)
    }

    /// The record in these bytes; one that is damaged is emptied.
    fn sound(&mut self, slot: u32, bytes: &[u8]) -> io::Result<SlotRecord> {
        if let Some(record) = SlotRecord::decode(bytes, slot) {
            return Ok(record);
        }
        self.count_damage(1);
        let generation = self.empty(slot)?;
        Ok(SlotRecord { holds: None, generation })
    }

    /// The bytes of so many records, or of those up to the last slot.
    fn records(&self, first: u32, most: u32) -> io::Result<Vec<u8>> {
        let count = most.min(self.header.slots - first) as usize;
        read_or_zeros(&self.index.file, record_at(first), count * RECORD_BYTES)
    }
}
