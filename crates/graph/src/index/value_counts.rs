//! Number of distinct second columns under each first column of an index: for PSOG the subjects of
//! a predicate, for POSG its objects. These are the optimiser's statistics. They are exact, and
//! counted when the index is built.
//!
//! The catalog record is pairs of u64, little-endian: predicate, distinct values; ascending.
//! Predicates beyond the first [`MOST`] are left out (data with that many predicates has few
//! rows under each).

use crate::error::{GraphError, Result};

/// Predicates kept: 1 MiB of catalog.
const MOST: usize = 1 << 16;

/// Name of the record in errors.
const RECORD: &str = "values";

/// Distinct second columns by first column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    /// first column and distinct values under it, ascending
    counts: Vec<(u64, u64)>,
    last: Option<(u64, u64)>,
}

impl ValueCounts {
    /// The catalog record of an index.
    pub fn record_name(index: &str) -> String {
        format!("{index}-values")
    }

    /// Counts sorted rows, given as their first two columns; rows continue those of the last call.
    pub fn add(&mut self, first: &[u64], second: &[u64]) {
        assert_eq!(first.len(), second.len(), "rows have two columns");
        for row in first.iter().copied().zip(second.iter().copied()) {
            if self.last == Some(row) {
                continue;
            }
            match self.counts.last_mut() {
                Some((key, count)) if *key == row.0 => *count += 1,
                _ => self.counts.push((row.0, 1)),
            }
            self.last = Some(row);
        }
    }

    /// Distinct values under a first column; `None` if the column was left out.
    pub fn get(&self, first: u64) -> Option<u64> {
        let at = self.counts.binary_search_by_key(&first, |c| c.0).ok()?;
        Some(self.counts[at].1)
    }

    /// A value under a first column was added (`true`) or removed.
    pub fn change(&mut self, first: u64, came: bool) {
        match (self.counts.binary_search_by_key(&first, |c| c.0), came) {
            (Ok(at), true) => self.counts[at].1 += 1,
            (Ok(at), false) => {
                self.counts[at].1 = self.counts[at].1.saturating_sub(1);
                if self.counts[at].1 == 0 {
                    self.counts.remove(at);
                }
            }
            // A predicate that was left out stays out: its count would be wrong.
            (Err(at), true) if self.counts.len() < MOST => self.counts.insert(at, (first, 1)),
            (Err(_), _) => {}
        }
    }

    /// The record.
    pub fn to_bytes(&self) -> Vec<u8> {
        debug_assert!(self.counts.is_sorted_by(|a, b| a.0 < b.0), "predicates ascend");
        let numbers = self.counts.iter().take(MOST).flat_map(|(key, count)| [key, count]);
        numbers.flat_map(|n| n.to_le_bytes()).collect()
    }

    /// Reads the record.
    ///
    /// # Errors
    /// Fails if the record is not whole.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if !bytes.len().is_multiple_of(16) {
            return Err(GraphError::record(RECORD, "it is not pairs of numbers"));
        }
        let number = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
        let counts = bytes.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..]))).collect();
        Ok(ValueCounts { counts, last: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_distinct_values_across_calls() {
        let mut counts = ValueCounts::default();
        counts.add(&[1, 1, 1, 2], &[5, 5, 6, 6]);
        counts.add(&[2, 2, 7], &[6, 8, 1]);
        let read = ValueCounts::from_bytes(&counts.to_bytes()).unwrap();
        assert_eq!([1, 2, 7, 3].map(|k| read.get(k)), [Some(2), Some(2), Some(1), None]);
        assert!(ValueCounts::from_bytes(&[0; 15]).is_err());
    }
}
