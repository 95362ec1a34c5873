//! The dictionary of a string tree: up to 2^17 *entries* of 1 to 15 bytes, each with a code of
//! 12 to 17 bits.
//!
//! A string is a stream of codes, low bits first, padded to whole bytes; what it stands for are
//! their entries, one behind the other. So a string is decoded alone, by one look into a table
//! and one copy of 16 bytes a code. All 256 single bytes are entries, so that every string has
//! codes. The entries are chosen from a sample ([`train`](super::train)); the format is the same
//! whatever they are: pieces of text as in OnPair (Gargiulo, Venturini, arXiv 2508.02280), or
//! whole words.
//!
//! Entries ascend, and an entry's code is its place among them. Their bytes in a file, each entry
//! relative to the one before:
//!
//! ```text
//! u8    low 4 bits: bytes it adds (1 to 15); high 4 bits: bytes it shares with the one before
//! …     the bytes it adds
//! ```
//!
//! Invariant: a dictionary that was read has ascending entries and every single byte, so that a
//! [`Matcher`] finds a match everywhere, whatever was in the file.

use std::sync::OnceLock;

use crate::format::encoding::{Bad, Decode};
use crate::format::string::entry::{EntrySlot, LONGEST, key, key_len, slot};
use crate::format::string::matcher::Matcher;

/// Bits of a code, least and most.
pub(crate) const WIDTHS: std::ops::RangeInclusive<u32> = 12..=17;

/// Codes taken from a word of 64 bits at once: of which at most 7 bits are used up before.
const AT_ONCE: usize = 3;

/// The entries by code.
pub(crate) struct Dictionary {
    width: u32,
    slots: Vec<EntrySlot>,
    matcher: OnceLock<Matcher>,
}

/// The bytes from `from` on, which are one to seven, lowest first: there are fewer than three codes
/// left, or fewer than eight bytes.
#[inline]
fn last_bytes(codes: &[u8], from: usize) -> u64 {
    let rest = codes.len() - from;
    debug_assert!((1..8).contains(&rest), "{rest} bytes are left");
    if let Some(word) = codes.last_chunk::<8>() {
        return u64::from_le_bytes(*word) >> (64 - 8 * rest);
    }
    if let (Some(low), Some(high)) = (codes.first_chunk::<4>(), codes.last_chunk::<4>()) {
        let [low, high] = [low, high].map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        return low | high << (8 * (rest - 4));
    }
    codes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

impl Dictionary {
    /// A dictionary of entries given in any order; every single byte is added to them.
    pub(crate) fn new(width: u32, mut slots: Vec<EntrySlot>) -> Dictionary {
        slots.extend((0..=255).map(|byte| slot(&[byte])));
        slots.sort_unstable();
        slots.dedup();
        assert!(WIDTHS.contains(&width) && slots.len() <= 1 << width, "each entry has a code");
        Dictionary { width, slots, matcher: OnceLock::new() }
    }

    /// Bits of a code.
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// Entries by code.
    #[inline]
    pub(crate) fn slots(&self) -> &[EntrySlot] {
        &self.slots
    }

    /// Finds codes for strings; made when first needed.
    pub(crate) fn matcher(&self) -> &Matcher {
        self.matcher.get_or_init(|| Matcher::new(&self.slots))
    }

    /// Bytes in memory, those for encoding included once they were needed.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.slots[..]) + self.matcher.get().map_or(0, Matcher::memory_bytes)
    }

    /// The entries as they are kept in a file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 * self.slots.len());
        let mut before: &[u8] = &[];
        for slot in &self.slots {
            let entry = &slot[..key_len(key(slot))];
            let most = entry.len() - 1;
            let shared = before.iter().zip(&entry[..most]).take_while(|(a, b)| a == b).count();
            out.push((shared << 4 | (entry.len() - shared)) as u8);
            out.extend_from_slice(&entry[shared..]);
            before = entry;
        }
        out
    }

    /// Reads `entries` entries.
    pub(crate) fn parse(width: u32, entries: usize, mut bytes: &[u8]) -> Decode<Dictionary> {
        if !WIDTHS.contains(&width) || !(256..=1 << width).contains(&entries) {
            return Err(Bad("a dictionary of an unknown width or number of entries"));
        }
        // An entry takes two bytes, so a wrong number cannot ask for more memory than was read.
        if entries > bytes.len() / 2 {
            return Err(Bad("a dictionary with fewer entries than it says"));
        }
        let mut slots = Vec::with_capacity(entries);
        let (mut before, mut single) = ([0; 16], 0);
        for _ in 0..entries {
            let (head, rest) = bytes.split_first().ok_or(Bad("a dictionary that ends too early"))?;
            let (shared, added) = (usize::from(head >> 4), usize::from(head & 15));
            let len = shared + added;
            if added == 0 || len > LONGEST || shared > key_len(key(&before)) {
                return Err(Bad("an entry of a dictionary of no length that it can have"));
            }
            let (new, rest) = rest.split_at_checked(added).ok_or(Bad("a dictionary that ends too early"))?;
            let mut next = [0; 16];
            next[..shared].copy_from_slice(&before[..shared]);
            next[shared..len].copy_from_slice(new);
            next[LONGEST] = len as u8;
            if next <= before {
                return Err(Bad("entries of a dictionary that do not ascend"));
            }
            single += usize::from(len == 1);
            slots.push(next);
            (before, bytes) = (next, rest);
        }
        match (single, bytes.is_empty()) {
            (256, true) => Ok(Dictionary { width, slots, matcher: OnceLock::new() }),
            (256, false) => Err(Bad("a dictionary with more bytes than entries")),
            _ => Err(Bad("a dictionary without each single byte")),
        }
    }

    /// Decodes `codes` into `buffer`, which grows as needed and is never shrunk; returns the
    /// string.
    pub(crate) fn decode<'b>(&self, codes: &[u8], buffer: &'b mut Vec<u8>) -> Decode<&'b [u8]> {
        let width = self.width as usize;
        let count = codes.len() * 8 / width;
        let most = 16 * count + 16;
        if buffer.len() < most {
            buffer.resize(most.next_power_of_two(), 0);
        }
        let (out, mask) = (&mut buffer[..most], (1u64 << width) - 1);
        let (mut at, mut bit, mut left) = (0, 0, count);
        while left >= AT_ONCE {
            let Some(word) = codes.get(bit / 8..).and_then(|rest| rest.first_chunk::<8>()) else { break };
            let mut word = u64::from_le_bytes(*word) >> (bit % 8);
            for _ in 0..AT_ONCE {
                at = self.copy((word & mask) as usize, out, at)?;
                word >>= width;
            }
            bit += AT_ONCE * width;
            left -= AT_ONCE;
        }
        if left > 0 {
            let mut word = last_bytes(codes, bit / 8) >> (bit % 8);
            for _ in 0..left {
                at = self.copy((word & mask) as usize, out, at)?;
                word >>= width;
            }
        }
        Ok(&buffer[..at])
    }

    /// Copies the entry to `at`; returns where the next one comes.
    #[inline(always)]
    fn copy(&self, code: usize, out: &mut [u8], at: usize) -> Decode<usize> {
        let slot = self.slots.get(code).ok_or(Bad("a code without an entry"))?;
        out[at..at + 16].copy_from_slice(slot);
        Ok(at + (usize::from(slot[LONGEST]) & LONGEST))
    }
}
