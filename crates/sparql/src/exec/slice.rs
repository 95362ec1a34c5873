//! OFFSET and LIMIT for each combination of some columns: those of a sub-select that is
//! evaluated for many contexts at a time.

use hashbrown::HashTable;
use snowmelt_graph::TermId;

use super::rows::{columns, hash_row, same_row};
use super::{Boxed, Operator, Result, Run};
use crate::bounds::Held;
use crate::exec::Batch;

pub(super) struct SliceBy {
    input: Boxed,
    offset: u64,
    limit: u64,
    per: Vec<usize>,
    /// the combinations so far, and how many rows each had
    seen: Batch,
    counts: Vec<u64>,
    table: HashTable<u32>,
    /// memory of them
    held: Held,
}

impl SliceBy {
    pub fn new(input: Boxed, offset: u64, limit: Option<u64>, per: &[u16], held: Held) -> Self {
        let per: Vec<usize> = per.iter().map(|c| *c as usize).collect();
        Self {
            input,
            offset,
            limit: limit.unwrap_or(u64::MAX),
            seen: Batch::empty(per.len()),
            per,
            counts: Vec::new(),
            table: HashTable::new(),
            held,
        }
    }

    /// How many rows of this row's combination came before it.
    fn before(&mut self, batch: &Batch, row: usize) -> u64 {
        let of = columns(batch, &self.per);
        let hash = hash_row(&of, row);
        let seen: Vec<&[TermId]> = self.seen.cols.iter().map(|c| &c[..]).collect();
        let number = match self.table.find(hash, |n| same_row(&seen, *n as usize, &of, row)) {
            Some(n) => *n as usize,
            None => {
                let n = self.counts.len();
                self.table.insert_unique(hash, n as u32, |n| hash_row(&seen, *n as usize));
                self.seen.cols.iter_mut().zip(&of).for_each(|(to, from)| to.push(from[row]));
                self.seen.rows += 1;
                self.counts.push(0);
                n
            }
        };
        assert_eq!(self.counts.len(), self.seen.rows, "a count for each combination");
        self.counts[number] += 1;
        self.counts[number] - 1
    }

    /// Accounts for the memory of the combinations, of which there are as many as contexts.
    fn account(&mut self) -> Result<()> {
        let bytes = self.counts.capacity() * (8 + 8 + 8 * self.per.len());
        if bytes > self.held.bytes() { Ok(self.held.set(bytes, "LIMIT in EXISTS")?) } else { Ok(()) }
    }
}

impl Operator for SliceBy {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        while let Some(mut batch) = self.input.next(run)? {
            run.check()?;
            let mut rows = Vec::new();
            for row in 0..batch.rows {
                let before = self.before(&batch, row);
                if before >= self.offset && before - self.offset < self.limit {
                    rows.push(row as u32);
                }
            }
            self.account()?;
            if !rows.is_empty() {
                batch.retain(&rows);
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.seen = Batch::empty(self.per.len());
        self.counts.clear();
        self.table.clear();
    }
}
