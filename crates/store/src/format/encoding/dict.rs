//! The page dictionary: values that columns of many blocks share, kept once per page and column.
//!
//! A block then stores small indices into it (predicates in SP, classes and countries in PSOG).
//! The dictionary grows in order of first occurrence while blocks are added, so indices written
//! earlier stay valid; a block that is taken back takes its entries with it.

use crate::format::encoding::byte_width;

/// Most entries of a page dictionary: an index fits a byte.
pub(crate) const DICT_MAX: usize = 255;

/// Slots of the open-addressing table: twice the entries, a power of two.
const SLOTS: usize = 512;

/// A dictionary while its page is being built.
pub(crate) struct PageDict {
    values: Vec<u64>,
    slots: Box<[u8; SLOTS]>, // entry + 1, 0 = empty
    min: u64,
    max: u64,
}

impl PageDict {
    pub(crate) fn new() -> PageDict {
        PageDict { values: Vec::new(), slots: Box::new([0; SLOTS]), min: u64::MAX, max: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.slots.fill(0);
        (self.min, self.max) = (u64::MAX, 0);
    }

    pub(crate) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Bytes of one entry: entries are stored relative to the smallest.
    pub(crate) fn width(&self) -> usize {
        byte_width(self.max.saturating_sub(self.min))
    }

    /// The smallest entry.
    pub(crate) fn base(&self) -> u64 {
        if self.values.is_empty() { 0 } else { self.min }
    }

    /// Index of `value`, entering it; `None` when the dictionary is full.
    #[inline]
    pub(crate) fn index(&mut self, value: u64) -> Option<usize> {
        let mut slot = home(value);
        loop {
            match self.slots[slot] {
                0 => break,
                entry if self.values[entry as usize - 1] == value => return Some(entry as usize - 1),
                _ => slot = (slot + 1) % SLOTS,
            }
        }
        if self.values.len() == DICT_MAX {
            return None;
        }
        debug_assert!(!self.values.contains(&value), "a value has one entry");
        self.values.push(value);
        self.slots[slot] = self.values.len() as u8;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        Some(self.values.len() - 1)
    }

    /// Forgets every entry from `len` on. Undoing insertions in reverse order restores the
    /// probe sequences.
    pub(crate) fn truncate(&mut self, len: usize) {
        if self.values.len() == len {
            return;
        }
        while self.values.len() > len {
            let entry = self.values.len() as u8;
            let value = self.values.pop().expect("longer than len");
            let mut slot = home(value);
            while self.slots[slot] != entry {
                slot = (slot + 1) % SLOTS;
            }
            self.slots[slot] = 0;
        }
        assert_eq!(self.values.len(), len, "entries are only taken back");
        self.min = self.values.iter().copied().min().unwrap_or(u64::MAX);
        self.max = self.values.iter().copied().max().unwrap_or(0);
    }
}

/// First slot of a value: high bits of a multiplicative hash.
#[inline]
fn home(value: u64) -> usize {
    (value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_vector(steps in prop::collection::vec((0u64..400, any::<bool>()), 0..600), cut in 0usize..300) {
            let (mut dict, mut model) = (PageDict::new(), Vec::<u64>::new());
            for (value, truncate) in steps {
                if truncate && value < 4 {
                    dict.truncate(cut.min(model.len()));
                    model.truncate(cut);
                }
                let known = model.iter().position(|&v| v == value);
                let expected = known.or_else(|| (model.len() < DICT_MAX).then(|| { model.push(value); model.len() - 1 }));
                prop_assert_eq!(dict.index(value), expected);
                prop_assert_eq!(dict.values(), &model[..]);
                let (min, max) = (model.iter().min().unwrap(), model.iter().max().unwrap());
                prop_assert_eq!((dict.base(), dict.width()), (*min, byte_width(max - min)));
            }
        }
    }
}
