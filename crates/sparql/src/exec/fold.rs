//! Rows that are equal, weights aside, become one: its weight is the sum of theirs.
//!
//! As many rows as fit are held; when there are more, they are given out, and others follow. So
//! equal rows may be left, as few as memory allows; and where hardly any are equal, rows pass as
//! they come.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use snowmelt_graph::TermId;

use super::group::products;
use super::rows::{Queue, columns, hash_row};
use super::{Boxed, Operator, Result, Run};
use crate::bounds::Held;
use crate::exec::Batch;

/// Rows after which it judges itself.
const TRIAL_ROWS: usize = 4096;

/// Most different rows that are held.
const MOST_ROWS: usize = 1 << 16;

pub(super) struct Fold {
    pub input: Boxed,
    /// the columns that tell rows apart, which come out, and those that are multiplied
    pub keys: Vec<usize>,
    pub weights: Vec<usize>,
    pub sums: Sums,
    pub queue: Queue,
    pub is_over: bool,
}

/// Different rows with the sums of their weights.
#[derive(Default)]
pub(super) struct Sums {
    rows: Batch,
    hashes: Vec<u64>,
    sums: Vec<TermId>,
    table: HashTable<u32>,
    held: Held,
    /// rows that were put in, and rows that came out, of which those of before are the last
    rows_in: usize,
    rows_out: usize,
}

impl Sums {
    pub fn new(held: Held) -> Self {
        Self { held, ..Self::default() }
    }

    /// Whether hardly any rows were equal so far.
    fn is_idle(&self) -> bool {
        let out = self.rows_out + self.hashes.len();
        self.rows_in > TRIAL_ROWS && out * 10 > self.rows_in * 9
    }

    fn add(&mut self, batch: &Batch, keys: &[usize], weights: &[u64]) -> Result<()> {
        self.rows_in += batch.rows;
        self.rows.cols.resize(keys.len(), Vec::new());
        let mine = columns(batch, keys);
        for (row, weight) in weights.iter().enumerate() {
            let hash = hash_row(&mine, row);
            let known = &self.rows.cols;
            let is_same = |n: &u32| mine.iter().zip(known).all(|(c, k)| k[*n as usize] == c[row]);
            match self.table.entry(hash, is_same, |n| self.hashes[*n as usize]) {
                Entry::Occupied(place) => {
                    let sum = &mut self.sums[*place.get() as usize];
                    sum.0 = sum.0.checked_add(*weight).ok_or(crate::QueryError::Count)?;
                }
                Entry::Vacant(place) => {
                    place.insert(self.hashes.len() as u32);
                    self.hashes.push(hash);
                    self.sums.push(TermId(*weight));
                    self.rows.cols.iter_mut().zip(&mine).for_each(|(to, from)| to.push(from[row]));
                    self.rows.rows += 1;
                }
            }
        }
        Ok(())
    }

    /// Whether no more rows can be held.
    fn is_full(&mut self) -> bool {
        // a row in each column, its hash, its sum, and its place in a table half full
        let each = 8 * (self.rows.cols.len() + 2) + 10;
        let bytes = self.rows.rows * each;
        self.rows.rows >= MOST_ROWS || self.held.is_tight(bytes) || self.held.set(bytes, "sums").is_err()
    }

    fn take(&mut self) -> Batch {
        self.rows_out += self.rows.rows;
        let mut batch = std::mem::take(&mut self.rows);
        batch.cols.push(std::mem::take(&mut self.sums));
        self.hashes.clear();
        self.table.clear();
        self.held.set(0, "sums").expect("memory is given back");
        batch
    }
}

impl Operator for Fold {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            if self.is_over {
                return Ok(None);
            }
            run.check()?;
            let batch = self.input.next(run)?;
            self.is_over = batch.is_none();
            let Some(batch) = batch else {
                self.queue.push(self.sums.take(), run);
                continue;
            };
            let weights = products(&batch, &self.weights)?;
            if self.sums.is_idle() {
                self.sums.rows_in += batch.rows;
                self.sums.rows_out += batch.rows;
                let keys: Vec<u16> = self.keys.iter().map(|c| *c as u16).collect();
                let rows = batch.rows;
                let mut cols = batch.project(&keys).cols;
                cols.push(weights.into_iter().map(TermId).collect());
                return Ok(Some(Batch { cols, rows }));
            }
            self.sums.add(&batch, &self.keys, &weights)?;
            if self.sums.is_full() {
                self.queue.push(self.sums.take(), run);
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.sums.take();
        self.queue.clear();
        self.is_over = false;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Rows are taken out once each, with the sum of all that was put in of them.
    #[test]
    fn sums_are_those_of_all_batches() {
        let mut sums = Sums::default();
        let mut model: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for number in 0..50u64 {
            let rows: Vec<(u64, u64, u64)> =
                (0..200).map(|r| (r * 7 % 13, (r + number) % 5, 1 + r * number % 3)).collect();
            let col = |of: fn(&(u64, u64, u64)) -> u64| rows.iter().map(|row| TermId(of(row))).collect();
            let batch = Batch::from_cols(vec![col(|row| row.0), col(|_| 9), col(|row| row.1)]);
            let weights: Vec<u64> = rows.iter().map(|row| row.2).collect();
            sums.add(&batch, &[2, 0], &weights).unwrap();
            rows.iter().for_each(|(a, b, weight)| *model.entry((*b, *a)).or_default() += weight);
            if number == 30 {
                assert!(!sums.is_idle() && !sums.is_full());
            }
        }
        let taken = sums.take();
        taken.check();
        let found: BTreeMap<(u64, u64), u64> =
            (0..taken.rows).map(|r| ((taken.cols[0][r].0, taken.cols[1][r].0), taken.cols[2][r].0)).collect();
        assert_eq!((taken.rows, found), (model.len(), model));
        assert_eq!(sums.take().rows, 0);
    }
}
