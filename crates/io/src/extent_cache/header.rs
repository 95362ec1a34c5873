//! The head of the index: 128 bytes, written whole under the lock of the index.
//!
//! | byte | bytes | holds                                                            |
//! |------|-------|------------------------------------------------------------------|
//! | 0    | 64    | preamble                                                         |
//! | 64   | 8     | epoch: random, new when the index was emptied or cut             |
//! | 72   | 8     | changes made to records: begins at a random number               |
//! | 80   | 4     | slots                                                            |
//! | 84   | 4     | hand of the clock: the slot it looks at next                     |
//! | 88   | 8     | objects fetched and kept, by all processes                       |
//! | 96   | 8     | bytes of those                                                   |
//! | 104  | 8     | objects that went for others                                     |
//! | 112  | 8     | slots and records found damaged                                  |
//! | 120  | 8     | XXH3-64 of bytes 0 to 119                                        |
//!
//! A process that sees the epoch and changes it saw last has missed nothing.

use std::hash::{BuildHasher, RandomState};

use twox_hash::XxHash3_64;

use super::preamble::{NoPreamble, OF_INDEX, PREAMBLE_BYTES, Preamble, number};

/// Length in bytes.
pub(super) const HEADER_BYTES: usize = 128;
/// Where epoch and changes are.
pub(super) const TIMES_AT: u64 = 64;
/// Their length.
pub(super) const TIMES_BYTES: usize = 16;

/// See the head of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexHeader {
    pub preamble: Preamble,
    pub times: ChangeTimes,
    pub slots: u32,
    pub hand: u32,
    pub fetched: u64,
    pub fetched_bytes: u64,
    pub evictions: u64,
    pub damaged: u64,
}

/// Epoch and changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ChangeTimes {
    pub epoch: u64,
    pub changes: u64,
}

impl ChangeTimes {
    /// Of an index that is emptied. Generations of slots are numbers of changes, and no reader that
    /// still thinks of an old one may see it again: so they go on from a random place.
    pub fn anew() -> ChangeTimes {
        ChangeTimes { epoch: random_word(), changes: random_word() >> 2 }
    }

    pub fn decode(bytes: &[u8; TIMES_BYTES]) -> ChangeTimes {
        ChangeTimes {
            epoch: u64::from_le_bytes(number(bytes, 0)),
            changes: u64::from_le_bytes(number(bytes, 8)),
        }
    }
}

/// A number of the system's random source.
pub(super) fn random_word() -> u64 {
    // Each state has keys of its own, of which the first ones of a thread are the system's.
    RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()))
}

impl IndexHeader {
    /// Of an empty index.
    pub fn empty(preamble: Preamble, slots: u32) -> IndexHeader {
        let times = ChangeTimes::anew();
        IndexHeader {
            preamble,
            times,
            slots,
            hand: 0,
            fetched: 0,
            fetched_bytes: 0,
            evictions: 0,
            damaged: 0,
        }
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..PREAMBLE_BYTES].copy_from_slice(&self.preamble.encode(OF_INDEX));
        bytes[64..72].copy_from_slice(&self.times.epoch.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.times.changes.to_le_bytes());
        bytes[80..84].copy_from_slice(&self.slots.to_le_bytes());
        bytes[84..88].copy_from_slice(&self.hand.to_le_bytes());
        let totals = [self.fetched, self.fetched_bytes, self.evictions, self.damaged];
        for (place, total) in bytes[88..120].chunks_mut(8).zip(totals) {
            place.copy_from_slice(&total.to_le_bytes());
        }
        let sum = XxHash3_64::oneshot(&bytes[..120]);
        bytes[120..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the beginning of a file, which may be cut.
    pub fn decode(bytes: &[u8]) -> Result<IndexHeader, NoPreamble> {
        let preamble = Preamble::decode(OF_INDEX, bytes)?;
        let whole = bytes.len() >= HEADER_BYTES;
        if !whole || number(bytes, 120) != XxHash3_64::oneshot(&bytes[..120]).to_le_bytes() {
            return Err(NoPreamble::Damaged);
        }
        let total = |at| u64::from_le_bytes(number(bytes, at));
        let header = IndexHeader {
            preamble,
            times: ChangeTimes::decode(&number(bytes, 64)),
            slots: u32::from_le_bytes(number(bytes, 80)),
            hand: u32::from_le_bytes(number(bytes, 84)),
            fetched: total(88),
            fetched_bytes: total(96),
            evictions: total(104),
            damaged: total(112),
        };
        if header.slots == 0 { Err(NoPreamble::Damaged) } else { Ok(header) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_no_bent_byte_does() {
        let mut header = IndexHeader::empty(Preamble { cache: 5, slot_bytes: 4096 }, 9);
        (header.hand, header.fetched, header.fetched_bytes) = (3, 4, 5);
        (header.evictions, header.damaged) = (6, 7);
        let good = header.encode();
        assert_eq!(IndexHeader::decode(&good), Ok(header.clone()));
        let times = &good[TIMES_AT as usize..][..TIMES_BYTES];
        assert_eq!(ChangeTimes::decode(times.try_into().unwrap()), header.times);
        for at in 0..good.len() {
            let mut bad = good;
            bad[at] ^= 1;
            assert_eq!(IndexHeader::decode(&bad), Err(NoPreamble::Damaged), "byte {at}");
        }
        assert_ne!(ChangeTimes::anew(), ChangeTimes::anew());
    }
}
