//! Rows by content: hashing and comparing them across columns, and cutting batches to size.

use super::Run;
use crate::batch::Batch;
use snowmelt_graph::TermId;
use std::collections::VecDeque;

/// A hash of a row's ids in some columns. Multiplicative, upper bits mixed down.
#[inline]
pub(super) fn hash_row(cols: &[&[TermId]], row: usize) -> u64 {
    let mut h = 0x9E37_79B9_7F4A_7C15u64;
    for col in cols {
        h = (h ^ col[row].0).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        h ^= h >> 32;
    }
    h
}

#[inline]
pub(super) fn same_row(a: &[&[TermId]], i: usize, b: &[&[TermId]], j: usize) -> bool {
    a.iter().zip(b).all(|(x, y)| x[i] == y[j])
}

/// Slices of some columns of a batch.
pub(super) fn columns<'a>(batch: &'a Batch, cols: &[usize]) -> Vec<&'a [TermId]> {
    cols.iter().map(|c| &batch.cols[*c][..]).collect()
}

/// Batches waiting to be pulled.
#[derive(Default)]
pub(super) struct Queue {
    batches: VecDeque<Batch>,
}

impl Queue {
    /// Adds a batch, cut to the size in force.
    pub fn push(&mut self, batch: Batch, run: &Run) {
        let most = run.batch.most;
        if batch.rows == 0 {
            return;
        }
        if batch.rows <= most + most / 2 {
            self.batches.push_back(batch);
            return;
        }
        let mut from = 0;
        while from < batch.rows {
            let to = (from + most).min(batch.rows);
            let cols = batch.cols.iter().map(|c| c[from..to].to_vec()).collect();
            self.batches.push_back(Batch { cols, rows: to - from });
            from = to;
        }
    }

    pub fn pop(&mut self) -> Option<Batch> {
        self.batches.pop_front()
    }

    pub fn clear(&mut self) {
        self.batches.clear();
    }
}

/// Appends a batch's rows to columns that grow.
pub(super) fn append(to: &mut Batch, from: Batch) {
    if to.rows == 0 {
        *to = from;
        return;
    }
    for (a, b) in to.cols.iter_mut().zip(from.cols) {
        a.extend(b);
    }
    to.rows += from.rows;
}
