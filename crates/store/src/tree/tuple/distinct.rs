//! Keeps the numbers of distinct prefixes of a tuple tree exact while rows come and go.
//!
//! A row brings a new prefix of m columns when neither of its neighbours has it, and takes one
//! along under the same condition. Neighbours are looked at inside the leaf. Where the leaf ends
//! and no row seen shares the prefix, the answer is *open*. It is given when all changes are made:
//! counting says whether the prefix is there after them, and the rows changed say whether it was
//! there before.
//!
//! An open prefix and one told by its neighbours are never the same: the latter lies inside one
//! leaf with other rows around it.

use std::collections::BTreeSet;

use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::key::Key;
use crate::format::key::MAX_ARITY;
use crate::tree::tuple::TupleTree;
use crate::tree::tuple::changes::{Applied, Changes};

/// See the head of the file.
#[derive(Debug, Default)]
pub(crate) struct PrefixChanges {
    arity: usize,
    /// For m columns, at m − 1.
    told: [i64; MAX_ARITY],
    /// Number of columns, and the prefix.
    open: BTreeSet<(usize, Key)>,
}

impl PrefixChanges {
    pub(crate) fn new(arity: usize) -> PrefixChanges {
        PrefixChanges { arity, ..PrefixChanges::default() }
    }

    /// A row comes or goes; `left` and `right`: columns that it shares with its neighbours in the
    /// leaf.
    pub(crate) fn note(&mut self, row: &Key, insert: bool, left: Option<usize>, right: Option<usize>) {
        let shared = left.unwrap_or(0).max(right.unwrap_or(0));
        for m in shared + 1..self.arity {
            match (left, right) {
                (Some(_), Some(_)) => self.told[m - 1] += if insert { 1 } else { -1 },
                _ => {
                    let mut prefix = Key::default();
                    prefix[..m].copy_from_slice(&row[..m]);
                    self.open.insert((m, prefix));
                }
            }
        }
    }

    /// All rows of a tree that was empty.
    pub(crate) fn note_rows(&mut self, columns: &[Vec<u64>]) {
        let rows = columns[0].len();
        let differs = |i: usize| columns.iter().position(|c| c[i] != c[i - 1]).expect("rows are unique");
        let first = i64::from(rows > 0);
        self.told[..self.arity].iter_mut().for_each(|t| *t += first);
        for i in 1..rows {
            (differs(i)..self.arity).for_each(|c| self.told[c] += 1);
        }
        // Of whole rows the number is known.
        self.told[self.arity - 1] = 0;
    }
}

impl TupleTree {
    /// Brings the numbers of distinct prefixes up to date after `changes` were made.
    pub(crate) fn settle(
        &mut self,
        txn: &Transaction,
        changes: &Changes,
        applied: &Applied,
        prefixes: PrefixChanges,
    ) -> Result<()> {
        let arity = self.shape.arity;
        for (distinct, told) in self.distinct.iter_mut().zip(prefixes.told) {
            *distinct = distinct.wrapping_add_signed(told);
        }
        if !prefixes.open.is_empty() {
            let mut reader = txn.reader();
            for (m, prefix) in prefixes.open {
                let after = self.count(&mut reader, &prefix[..m], &prefix[..m])?;
                let (inserted, deleted) = effects(changes, applied, &prefix[..m]);
                let before = (after + deleted).saturating_sub(inserted);
                let more = i64::from(after > 0) - i64::from(before > 0);
                self.distinct[m - 1] = self.distinct[m - 1].wrapping_add_signed(more);
            }
        }
        self.distinct[arity - 1] = self.rows;
        Ok(())
    }
}

/// How many rows with this prefix came and went.
fn effects(changes: &Changes, applied: &Applied, prefix: &[u64]) -> (u64, u64) {
    let below = |upto: bool| {
        let (mut lo, mut hi) = (0, changes.len());
        while lo < hi {
            let middle = (lo + hi) / 2;
            match changes.row(middle)[..prefix.len()].cmp(prefix) {
                std::cmp::Ordering::Less => lo = middle + 1,
                std::cmp::Ordering::Equal if upto => lo = middle + 1,
                _ => hi = middle,
            }
        }
        lo
    };
    let mut sums = (0, 0);
    for i in (below(false)..below(true)).filter(|&i| applied.effective[i]) {
        match changes.insert[i] {
            true => sums.0 += 1,
            false => sums.1 += 1,
        }
    }
    sums
}
