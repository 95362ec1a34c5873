//! The index as this process last saw it: which slot holds a key, and which pieces of its object
//! this process has verified.
//!
//! Invariant: it is advice. A hit counts only after the record of the slot was read again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use super::header::ChangeTimes;
use super::key::KeyHash;
use super::record::{HeldObject, SlotRecord};

/// See the head of the file.
#[derive(Default)]
pub(super) struct CacheView {
    /// Of the last change in it.
    pub times: ChangeTimes,
    entries: Vec<ViewEntry>,
    by_key: HashMap<KeyHash, u32>,
}

#[derive(Default)]
struct ViewEntry {
    record: SlotRecord,
    /// A bit for each piece whose checksum was right.
    verified: AtomicU32,
}

/// A slot that held an object when the view saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundSlot {
    pub slot: u32,
    pub generation: u64,
    pub object: HeldObject,
    /// A bit for each piece that was verified.
    pub verified: u32,
}

impl CacheView {
    pub fn slots(&self) -> u32 {
        self.entries.len() as u32
    }

    pub fn objects(&self) -> u64 {
        self.by_key.len() as u64
    }

    pub fn find(&self, key: KeyHash) -> Option<FoundSlot> {
        let slot = *self.by_key.get(&key)?;
        let ViewEntry { record, verified } = &self.entries[slot as usize];
        let object = record.holds.expect("the map leads to slots that hold an object");
        let verified = verified.load(Ordering::Relaxed);
        Some(FoundSlot { slot, generation: record.generation, object, verified })
    }

    /// Forgets all; there are `slots` empty ones.
    pub fn clear(&mut self, slots: u32) {
        self.by_key.clear();
        self.entries.clear();
        self.entries.resize_with(slots as usize, ViewEntry::default);
    }

    /// Takes over the record of a slot.
    pub fn apply(&mut self, slot: u32, record: SlotRecord) {
        let entry = &mut self.entries[slot as usize];
        if entry.record == record {
            return;
        }
        if let Some(before) = entry.record.holds
            && self.by_key.get(&before.key) == Some(&slot)
        {
            self.by_key.remove(&before.key);
        }
        *entry = ViewEntry { record, verified: AtomicU32::new(0) };
        if let Some(object) = record.holds {
            self.by_key.insert(object.key, slot);
        }
    }

    /// Forgets a slot that no longer holds the object.
    pub fn forget(&mut self, found: &FoundSlot) {
        let same = |entry: &ViewEntry| entry.record.generation == found.generation;
        if self.entries.get(found.slot as usize).is_some_and(same) {
            self.apply(found.slot, SlotRecord { holds: None, generation: found.generation });
        }
    }

    /// Remembers pieces whose checksums were right while the slot held the object.
    pub fn verify(&self, found: &FoundSlot, pieces: u32) {
        if let Some(entry) = self.entries.get(found.slot as usize)
            && entry.record.generation == found.generation
        {
            entry.verified.fetch_or(pieces, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_where_it_was_last_seen() {
        let mut view = CacheView::default();
        let key = KeyHash::of("a");
        let held = |generation| SlotRecord { holds: Some(HeldObject { key, len: 8 }), generation };
        view.clear(2);
        view.apply(0, held(1));
        view.apply(1, held(2)); // twice: once more than needed, but it happens
        let found = view.find(key).unwrap();
        assert_eq!((found.slot, found.verified, view.objects()), (1, 0, 1));
        view.verify(&found, 5);
        view.apply(0, SlotRecord { holds: None, generation: 3 });
        let found = view.find(key).expect("the other slot is still there");
        assert_eq!((found.slot, found.verified), (1, 5));
        view.forget(&FoundSlot { generation: 1, ..found });
        assert!(view.find(key).is_some(), "an older generation says nothing of this one");
        view.apply(1, held(4));
        assert_eq!(view.find(key).unwrap().verified, 0, "other bytes are to be verified again");
        view.verify(&found, 1);
        assert_eq!(view.find(key).unwrap().verified, 0, "those were the bytes of before");
        view.forget(&view.find(key).unwrap());
        assert!(view.find(key).is_none() && view.objects() == 0);
    }
}
