//! Rows by content: hashing and comparing them across columns, and cutting batches to size.

use std::collections::VecDeque;

use snowmelt_graph::TermId;

use super::Run;
use crate::bounds::Held;
use crate::exec::Batch;

/// The hash of a row without columns.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Multiplicative, upper bits mixed down.
#[inline]
fn mixed(h: u64, id: TermId) -> u64 {
    let h = (h ^ id.0).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    h ^ h >> 32
}

/// A hash of a row's ids in some columns.
#[inline]
pub(super) fn hash_row(cols: &[&[TermId]], row: usize) -> u64 {
    cols.iter().fold(SEED, |h, col| mixed(h, col[row]))
}

/// Hashes of all rows' ids in some columns: column by column, so that no row waits for the one
/// before it.
pub(super) fn hash_rows(cols: &[&[TermId]], rows: usize) -> Vec<u64> {
    let mut hashes = vec![SEED; rows];
    for col in cols {
        for (h, id) in hashes.iter_mut().zip(&col[..rows]) {
            *h = mixed(*h, *id);
        }
    }
    hashes
}

#[inline]
pub(super) fn same_row(a: &[&[TermId]], i: usize, b: &[&[TermId]], j: usize) -> bool {
    debug_assert_eq!(a.len(), b.len(), "rows are compared in equally many columns");
    a.iter().zip(b).all(|(x, y)| x[i] == y[j])
}

/// Slices of some columns of a batch.
pub(super) fn columns<'a>(batch: &'a Batch, cols: &[usize]) -> Vec<&'a [TermId]> {
    cols.iter().map(|c| &batch.cols[*c][..]).collect()
}

/// Batches waiting to be pulled, with the memory they hold; long ones are given out in parts.
#[derive(Default)]
pub(super) struct Queue {
    batches: VecDeque<(Batch, Held)>,
    /// rows of the first one that were given out
    given: usize,
    /// most rows given out at once
    most: usize,
}

impl Queue {
    /// Adds a batch that is about as large as its operator's input.
    pub fn push(&mut self, batch: Batch, run: &Run) {
        self.push_held(batch, Held::default(), run);
    }

    /// Adds a batch of any size, whose memory is held.
    pub fn push_held(&mut self, batch: Batch, held: Held, run: &Run) {
        batch.check();
        if let Some((first, _)) = self.batches.front() {
            assert_eq!(first.cols.len(), batch.cols.len(), "an operator's batches have the same columns");
        }
        self.most = run.query.batch.most.max(1);
        if batch.rows > 0 {
            self.batches.push_back((batch, held));
        }
    }

    pub fn pop(&mut self) -> Option<Batch> {
        let (first, _) = self.batches.front()?;
        assert!(self.given < first.rows, "a batch that was given out whole is gone");
        let left = first.rows - self.given;
        if left <= self.most + self.most / 2 {
            let from = std::mem::take(&mut self.given);
            let (first, _) = self.batches.pop_front()?;
            return Some(if from == 0 { first } else { first.slice(from..first.rows) });
        }
        let part = first.slice(self.given..self.given + self.most);
        self.given += self.most;
        Some(part)
    }

    pub fn clear(&mut self) {
        self.batches.clear();
        self.given = 0;
    }
}

/// Appends a batch's rows to columns that grow.
pub(super) fn append(to: &mut Batch, from: Batch) {
    if to.rows == 0 {
        *to = from;
        return;
    }
    assert_eq!(to.cols.len(), from.cols.len(), "batches of one input have equally many columns");
    for (a, b) in to.cols.iter_mut().zip(from.cols) {
        a.extend(b);
    }
    to.rows += from.rows;
    to.check();
}
