//! DISTINCT: rows not seen before, in the order they come.
//!
//! Seen rows are kept column by column with a table of their hashes. Over the memory share the rest of the input goes to
//! temporary files by hash, and each file is made distinct on its own (against what was already given out, which went to the
//! files first).
//!
//! Where the plan only wants less work later (`optional`), it stops looking when little is dropped or much is held.

use super::rows::{Queue, hash_row};
use super::spill::Partitions;
use super::{Boxed, Operator, Result, Run};
use crate::batch::Batch;
use hashbrown::HashTable;
use snowmelt_graph::TermId;

/// An optional distinct judges itself after this many rows.
const TRIAL_ROWS: usize = 4096;

pub(crate) struct Distinct {
    pub input: Boxed,
    pub optional: bool,
    seen: Seen,
    /// memory taken from the share
    taken: usize,
    rows_in: usize,
    idle: bool,
    spilled: Option<Partitions>,
    queue: Queue,
}

#[derive(Default)]
struct Seen {
    cols: Vec<Vec<TermId>>,
    hashes: Vec<u64>,
    table: HashTable<u32>,
}

impl Seen {
    /// Rows of a batch not seen before; they are remembered.
    fn new_rows(&mut self, batch: &Batch) -> Vec<u32> {
        let Seen { cols, hashes, table } = self;
        if cols.len() < batch.cols.len() {
            cols.resize(batch.cols.len(), Vec::new());
        }
        let mine: Vec<&[TermId]> = batch.cols.iter().map(|c| &c[..]).collect();
        let mut fresh = Vec::new();
        for row in 0..batch.rows {
            let hash = hash_row(&mine, row);
            let known = |r: &u32| cols.iter().zip(&mine).all(|(a, b)| a[*r as usize] == b[row]);
            if table.find(hash, known).is_some() {
                continue;
            }
            let number = hashes.len() as u32;
            cols.iter_mut().zip(&mine).for_each(|(to, from)| to.push(from[row]));
            hashes.push(hash);
            table.insert_unique(hash, number, |r| hashes[*r as usize]);
            fresh.push(row as u32);
        }
        fresh
    }

    fn rows(&self) -> usize {
        self.hashes.len()
    }

    fn bytes(&self) -> usize {
        self.cols.iter().map(|c| c.capacity() * 8).sum::<usize>()
            + self.hashes.capacity() * 8
            + self.table.capacity() * 5
    }
}

impl Distinct {
    /// One that is handed its batches: see [`Distinct::fresh`].
    pub fn without_input() -> Self {
        Self::new(Box::new(super::leaf::Given::seed()), false)
    }

    /// The rows of a batch that were in none before.
    pub fn fresh(&mut self, mut batch: Batch) -> Batch {
        let rows = self.seen.new_rows(&batch);
        batch.retain(&rows);
        batch
    }

    pub fn new(input: Boxed, optional: bool) -> Self {
        Self {
            input,
            optional,
            seen: Seen::default(),
            taken: 0,
            rows_in: 0,
            idle: false,
            spilled: None,
            queue: Queue::default(),
        }
    }

    fn forget(&mut self, run: &mut Run) {
        self.seen = Seen::default();
        run.memory.give_back(std::mem::take(&mut self.taken));
    }

    /// What is in memory, and all that follows, to files. `seen` rows were given out already.
    fn spill(&mut self, run: &mut Run) -> Result<()> {
        let mut partitions = Partitions::new(run)?;
        let (rows, cols) = (self.seen.rows(), std::mem::take(&mut self.seen.cols));
        let width = cols.len();
        let seen = Batch { cols, rows };
        let all: Vec<usize> = (0..width).collect();
        partitions.add(with_flag(seen, true), &all)?;
        self.forget(run);
        while let Some(batch) = self.input.next(run)? {
            run.check()?;
            partitions.add(with_flag(batch, false), &all)?;
        }
        partitions.finish()?;
        self.spilled = Some(partitions);
        Ok(())
    }

    /// The next file, distinct in memory.
    fn next_partition(&mut self, run: &mut Run) -> Result<bool> {
        let Some(partitions) = &mut self.spilled else { return Ok(false) };
        let Some(mut file) = partitions.next()? else { return Ok(false) };
        let mut seen = Seen::default();
        while let Some(mut batch) = file.next()? {
            run.check()?;
            let flags = batch.cols.pop().expect("the flag was added when it was written");
            let fresh = seen.new_rows(&batch);
            let bytes = seen.bytes();
            if bytes > self.taken {
                run.memory.take(bytes - self.taken, "distinct")?;
                self.taken = bytes;
            }
            let rows: Vec<u32> = fresh.into_iter().filter(|r| flags[*r as usize].is_undef()).collect();
            batch.retain(&rows);
            self.queue.push(batch, run);
        }
        run.memory.give_back(std::mem::take(&mut self.taken));
        Ok(true)
    }
}

/// One more column that says whether the rows were given out before. They come first in every file.
fn with_flag(mut batch: Batch, given: bool) -> Batch {
    let flag = if given { TermId(1) } else { TermId::UNDEF };
    batch.cols.push(vec![flag; batch.rows]);
    batch
}

impl Operator for Distinct {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            if self.spilled.is_some() {
                if self.next_partition(run)? {
                    continue;
                }
                return Ok(None);
            }
            let Some(mut batch) = self.input.next(run)? else { return Ok(None) };
            run.check()?;
            if self.idle {
                return Ok(Some(batch));
            }
            self.rows_in += batch.rows;
            let fresh = self.seen.new_rows(&batch);
            batch.retain(&fresh);
            let bytes = self.seen.bytes();
            if bytes > self.taken {
                let tight = run.memory.is_tight(bytes);
                if self.optional
                    && (tight || (self.rows_in >= TRIAL_ROWS && self.seen.rows() * 10 > self.rows_in * 9))
                {
                    self.idle = true;
                    self.forget(run);
                } else if tight {
                    self.queue.push(batch, run);
                    self.spill(run)?;
                    continue;
                } else {
                    run.memory.take(bytes - self.taken, "distinct")?;
                    self.taken = bytes;
                }
            }
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.seen = Seen::default();
        self.rows_in = 0;
        self.idle = false;
        self.spilled = None;
        self.queue.clear();
    }
}
