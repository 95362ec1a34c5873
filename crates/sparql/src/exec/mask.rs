//! Sets of join columns: bit i is the i-th column two sides have in common.
//!
//! A query may have any number of common columns. The first 64 are in one word, which is all
//! that ordinary queries need; only what lies beyond is on the heap.

/// A set of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mask {
    low: u64,
    high: Vec<u64>,
}

impl Mask {
    /// The first `n` columns.
    pub fn all(n: usize) -> Mask {
        (0..n).collect()
    }

    /// True when column `i` is in it.
    pub fn has(&self, i: usize) -> bool {
        let word = if i < 64 { Some(&self.low) } else { self.high.get(i / 64 - 1) };
        word.is_some_and(|w| w >> (i % 64) & 1 == 1)
    }

    /// The columns in both.
    pub fn and(&self, other: &Mask) -> Mask {
        let high = self.high.iter().zip(&other.high).map(|(a, b)| a & b).collect();
        Mask { low: self.low & other.low, high }.trimmed()
    }

    /// True when every column of it is in `other`.
    pub fn is_within(&self, other: &Mask) -> bool {
        let beyond = |(i, w): (usize, &u64)| w & !other.high.get(i).copied().unwrap_or(0) != 0;
        self.low & !other.low == 0 && !self.high.iter().enumerate().any(beyond)
    }

    fn add(&mut self, i: usize) {
        if i < 64 {
            self.low |= 1 << i;
            return;
        }
        if self.high.len() < i / 64 {
            self.high.resize(i / 64, 0);
        }
        self.high[i / 64 - 1] |= 1 << (i % 64);
    }

    /// Drops zero words at the end, so that equal sets are equal values.
    fn trimmed(mut self) -> Mask {
        while self.high.last() == Some(&0) {
            self.high.pop();
        }
        self
    }
}

impl FromIterator<usize> for Mask {
    fn from_iter<T: IntoIterator<Item = usize>>(columns: T) -> Mask {
        let mut mask = Mask::default();
        columns.into_iter().for_each(|i| mask.add(i));
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn masks_are_sets(
            a in prop::collection::btree_set(0usize..300, 0..40),
            b in prop::collection::btree_set(0usize..300, 0..40),
        ) {
            let mask = |set: &BTreeSet<usize>| set.iter().copied().collect::<Mask>();
            let both: BTreeSet<usize> = a.intersection(&b).copied().collect();
            prop_assert_eq!(mask(&a).and(&mask(&b)), mask(&both));
            prop_assert_eq!(mask(&a).is_within(&mask(&b)), a.is_subset(&b));
            prop_assert!((0..400).all(|i| mask(&a).has(i) == a.contains(&i)));
            prop_assert_eq!(Mask::all(a.len()), mask(&(0..a.len()).collect()));
        }
    }
}
