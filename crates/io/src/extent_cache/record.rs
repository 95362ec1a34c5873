//! The record of a slot in the index: 64 bytes.
//!
//! | byte | bytes | holds                                                               |
//! |------|-------|---------------------------------------------------------------------|
//! | 0    | 16    | XXH3-128 of the object's key; 0 when the slot is empty              |
//! | 16   | 8     | generation: raised before the slot's bytes change                   |
//! | 24   | 4     | bytes of the object                                                 |
//! | 28   | 4     | 1: the slot holds the object; 0: it is empty, or being written      |
//! | 32   | 8     | XXH3-64 of bytes 0 to 31, with the slot's number as seed            |
//! | 40   | 1     | 1: read since the clock's hand came by; set without a lock          |
//! | 41   | 23    | zero                                                                |
//!
//! A record of zeros is that of a slot never used.

use twox_hash::XxHash3_64;

use super::key::KeyHash;
use super::preamble::number;

/// Length in bytes.
pub(super) const RECORD_BYTES: usize = 64;
/// Where the mark of a read is.
pub(super) const READ_MARK_AT: usize = 40;

/// See the head of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SlotRecord {
    /// The object in the slot; `None`: it has none.
    pub holds: Option<HeldObject>,
    pub generation: u64,
}

/// An object in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldObject {
    pub key: KeyHash,
    pub len: u32,
}

impl SlotRecord {
    /// The bytes, without the mark.
    pub fn encode(&self, slot: u32) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        if let Some(object) = self.holds {
            bytes[..16].copy_from_slice(&object.key.0.to_le_bytes());
            bytes[24..28].copy_from_slice(&object.len.to_le_bytes());
            bytes[28] = 1;
        }
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        let sum = XxHash3_64::oneshot_with_seed(u64::from(slot), &bytes[..32]);
        bytes[32..40].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a record of [`RECORD_BYTES`]; `None`: it is damaged, or was read while it changed.
    pub fn decode(bytes: &[u8], slot: u32) -> Option<SlotRecord> {
        if bytes[..READ_MARK_AT].iter().all(|byte| *byte == 0) {
            return Some(SlotRecord::default());
        }
        let sum = XxHash3_64::oneshot_with_seed(u64::from(slot), &bytes[..32]);
        if number(bytes, 32) != sum.to_le_bytes() {
            return None;
        }
        let object = HeldObject {
            key: KeyHash(u128::from_le_bytes(number(bytes, 0))),
            len: u32::from_le_bytes(number(bytes, 24)),
        };
        let generation = u64::from_le_bytes(number(bytes, 16));
        Some(SlotRecord { holds: (bytes[28] == 1).then_some(object), generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_to_its_slot_and_no_bent_byte_does() {
        let full =
            SlotRecord { holds: Some(HeldObject { key: KeyHash::of("a"), len: 9 }), generation: 1 << 60 };
        for record in [full, SlotRecord { holds: None, ..full }] {
            let good = record.encode(3);
            assert_eq!(SlotRecord::decode(&good, 3), Some(record));
            assert_eq!(SlotRecord::decode(&good, 4), None, "it is of another slot");
            for at in 0..READ_MARK_AT {
                let mut bad = good;
                bad[at] ^= 1;
                assert_eq!(SlotRecord::decode(&bad, 3), None, "byte {at}");
            }
        }
        let unused = SlotRecord::decode(&[0; RECORD_BYTES], 7);
        assert_eq!(unused, Some(SlotRecord { holds: None, generation: 0 }));
    }
}
