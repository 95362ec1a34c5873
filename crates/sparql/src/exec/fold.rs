//! Rows of a batch that are equal, weights aside, become one: its weight is the sum of theirs.
//!
//! Only batch by batch, so that nothing is held, and only while that drops rows.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use snowmelt_graph::TermId;

use super::group::products;
use super::rows::{columns, hash_row};
use super::{Boxed, Operator, Result, Run};
use crate::exec::Batch;

/// Rows after which it judges itself.
const TRIAL_ROWS: usize = 4096;

pub(super) struct Fold {
    pub input: Boxed,
    /// the columns that tell rows apart, which come out, and those that are multiplied
    pub keys: Vec<usize>,
    pub weights: Vec<usize>,
    pub rows_in: usize,
    pub rows_out: usize,
}

impl Fold {
    fn folded(&mut self, batch: Batch) -> Result<Batch> {
        let weights = products(&batch, &self.weights)?;
        self.rows_in += batch.rows;
        if self.rows_in > TRIAL_ROWS && self.rows_out * 10 > self.rows_in * 9 {
            self.rows_out += batch.rows;
            let rows = batch.rows;
            let mut cols: Vec<Vec<TermId>> = self.keys.iter().map(|c| batch.cols[*c].clone()).collect();
            cols.push(weights.into_iter().map(TermId).collect());
            return Ok(Batch { cols, rows });
        }
        let (first, sums) = sums(&batch, &self.keys, &weights)?;
        self.rows_out += first.len();
        let keys: Vec<u16> = self.keys.iter().map(|c| *c as u16).collect();
        let mut folded = batch.gather(&keys, &first);
        folded.cols.push(sums.into_iter().map(TermId).collect());
        Ok(folded)
    }
}

/// The first row of each combination of some columns, and the sum of their weights.
fn sums(batch: &Batch, keys: &[usize], weights: &[u64]) -> Result<(Vec<u32>, Vec<u64>)> {
    let mine = columns(batch, keys);
    let (mut first, mut hashes, mut sums) = (Vec::new(), Vec::new(), Vec::<u64>::new());
    let mut table: HashTable<u32> = HashTable::new();
    for row in 0..batch.rows {
        let hash = hash_row(&mine, row);
        let is_same = |n: &u32| mine.iter().all(|c| c[first[*n as usize] as usize] == c[row]);
        match table.entry(hash, is_same, |n| hashes[*n as usize]) {
            Entry::Occupied(known) => {
                let sum = &mut sums[*known.get() as usize];
                *sum = sum.checked_add(weights[row]).ok_or(crate::QueryError::Count)?;
            }
            Entry::Vacant(place) => {
                place.insert(first.len() as u32);
                first.push(row as u32);
                hashes.push(hash);
                sums.push(weights[row]);
            }
        }
    }
    Ok((first, sums))
}

impl Operator for Fold {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(run)? else { return Ok(None) };
        run.check()?;
        Ok(Some(self.folded(batch)?))
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
    }
}
