//! Hash of a term → its number, in memory.
//!
//! The table does not keep the terms: two terms are taken to be the same when 88 bits of their
//! XXH3-128 agree. For n distinct terms the probability that any two are confused is below n² /
//! 2^89: 10⁻¹² for the 24 million terms of 100 M BSBM triples, 2·10⁻⁹ for a thousand million.
//! (Chance, not malice: XXH3 is not cryptographic, and the author of the input could make two
//! terms collide.)
//!
//! A slot is 16 bytes: 64 bits of hash, then 24 more bits of hash and number + 1 in 40 bits.
//! The table is cut into shards by the top bits of the hash, each an open-addressed array that
//! doubles on its own, so that growing never needs a second copy of the whole.

use crate::input::hash::TermHash;

const SHARD_BITS: u32 = 6;
const SHARDS: usize = 1 << SHARD_BITS;
const VALUE_BITS: u32 = 40;
const FIRST_SLOTS: usize = 64;
/// Largest number the table can hold.
pub(super) const MAX_NUMBER: u64 = (1 << VALUE_BITS) - 2;

/// Term hash → number, bounded in size.
#[derive(Debug)]
pub(super) struct TermTable {
    shards: Vec<Shard>,
    slots: usize,
    max_slots: usize,
    len: u64,
}

#[derive(Debug, Default)]
struct Shard {
    slots: Vec<[u64; 2]>,
    len: usize,
}

impl TermTable {
    /// A table that never takes more than `max_bytes`.
    pub(super) fn new(max_bytes: u64) -> TermTable {
        TermTable {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            slots: 0,
            max_slots: usize::try_from(max_bytes / 16).unwrap_or(usize::MAX),
            len: 0,
        }
    }

    /// Terms in the table.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The number of a term, if the table has it.
    pub(super) fn get(&self, hash: TermHash) -> Option<u64> {
        let shard = &self.shards[shard_of(hash)];
        if shard.slots.is_empty() {
            return None;
        }
        let mask = shard.slots.len() - 1;
        let mut at = hash.high as usize & mask;
        loop {
            let [high, rest] = shard.slots[at];
            if rest == 0 {
                return None;
            }
            if high == hash.high && rest >> VALUE_BITS == u64::from(hash.low) {
                return Some((rest & (u64::MAX >> (64 - VALUE_BITS))) - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether a term of this hash can be added.
    pub(super) fn has_room(&self, hash: TermHash) -> bool {
        let shard = &self.shards[shard_of(hash)];
        !shard.is_full() || self.slots + shard.growth() <= self.max_slots
    }

    /// Adds a term that is not yet in the table; there must be room for it.
    pub(super) fn insert(&mut self, hash: TermHash, number: u64) {
        assert!(number <= MAX_NUMBER, "more terms than 40 bits can count");
        debug_assert_eq!(self.get(hash), None, "a term is added once");
        let shard = &mut self.shards[shard_of(hash)];
        if shard.is_full() {
            self.slots += shard.growth();
            shard.grow();
        }
        shard.put([hash.high, u64::from(hash.low) << VALUE_BITS | (number + 1)]);
        shard.len += 1;
        assert!(shard.len < shard.slots.len(), "a search ends at an empty slot");
        self.len += 1;
    }

    /// Empties the table, keeping its memory.
    pub(super) fn clear(&mut self) {
        for shard in &mut self.shards {
            shard.slots.fill([0; 2]);
            shard.len = 0;
        }
        self.len = 0;
    }

    /// Every entry, unordered, as (hash, number).
    pub(super) fn entries(&self) -> impl Iterator<Item = (TermHash, u64)> + '_ {
        let slots = self.shards.iter().flat_map(|s| s.slots.iter());
        slots.filter(|s| s[1] != 0).map(|&[high, rest]| {
            let low = (rest >> VALUE_BITS) as u32;
            let number = (rest & (u64::MAX >> (64 - VALUE_BITS))) - 1;
            (TermHash { high, low }, number)
        })
    }
}

impl Shard {
    fn is_full(&self) -> bool {
        self.len * 4 >= self.slots.len() * 3
    }

    /// Slots that growing adds.
    fn growth(&self) -> usize {
        self.slots.len().max(FIRST_SLOTS)
    }

    fn grow(&mut self) {
        let slots = self.slots.len() + self.growth();
        assert!(slots.is_power_of_two(), "a hash is cut to a slot by a mask");
        let old = std::mem::replace(&mut self.slots, vec![[0; 2]; slots]);
        for slot in old {
            if slot[1] != 0 {
                self.put(slot);
            }
        }
    }

    fn put(&mut self, slot: [u64; 2]) {
        let mask = self.slots.len() - 1;
        let mut at = slot[0] as usize & mask;
        while self.slots[at][1] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

fn shard_of(hash: TermHash) -> usize {
    (hash.high >> (64 - SHARD_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn hash(n: u64) -> TermHash {
        TermHash::new(u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
    }

    #[test]
    fn like_a_map() {
        let mut table = TermTable::new(1 << 30);
        for n in 0..100_000 {
            assert_eq!(table.get(hash(n)), None);
            table.insert(hash(n), n * 3);
        }
        assert!((0..100_000).all(|n| table.get(hash(n)) == Some(n * 3)));
        let all: HashMap<_, _> = table.entries().map(|(h, n)| ((h.high, h.low), n)).collect();
        assert_eq!(all.len(), 100_000);
        assert_eq!(all[&(hash(7).high, hash(7).low)], 21);
        table.clear();
        assert_eq!((table.len(), table.get(hash(5))), (0, None));
    }

    /// Hashes that share all their first 64 bits are still told apart.
    #[test]
    fn all_bits_count() {
        let mut table = TermTable::new(1 << 20);
        let a = TermHash { high: 9, low: 1 };
        let b = TermHash { high: 9, low: 2 };
        table.insert(a, 0);
        table.insert(b, MAX_NUMBER);
        assert_eq!((table.get(a), table.get(b)), (Some(0), Some(MAX_NUMBER)));
    }

    #[test]
    fn stops_at_its_limit() {
        let mut table = TermTable::new(64 << 10);
        let mut n = 0;
        while table.has_room(hash(n)) {
            table.insert(hash(n), n);
            n += 1;
        }
        assert!(table.slots * 16 <= 64 << 10 && n > 1000, "{n}");
        assert!((0..n).all(|n| table.get(hash(n)) == Some(n)));
        assert_eq!(table.get(hash(n)), None);
    }
}
