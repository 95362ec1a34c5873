//! An entry of a dictionary: 1 to 15 bytes, in a slot of 16 that compares as the bytes do.

/// Most bytes of an entry.
pub(crate) const LONGEST: usize = 15;

/// Bytes of an entry, 0 behind them; the last byte is their number. Slots compare as entries do.
pub(crate) type EntrySlot = [u8; 16];

/// The slot of an entry.
#[inline]
pub(crate) fn slot(entry: &[u8]) -> EntrySlot {
    let mut slot = [0; 16];
    slot[..entry.len()].copy_from_slice(entry);
    slot[LONGEST] = entry.len() as u8;
    slot
}

/// The slot as a number that orders as entries do.
#[inline]
pub(crate) fn key(slot: &EntrySlot) -> u128 {
    u128::from_be_bytes(*slot)
}

/// Bytes of the entry with this key.
#[inline]
pub(crate) fn key_len(key: u128) -> usize {
    (key as usize) & LONGEST
}
