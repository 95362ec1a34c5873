//! DISTINCT: rows not seen before, in the order they come.
//!
//! Seen rows are kept column by column with a table of their hashes. Over the memory share the
//! rest of the input goes to temporary files by hash, and each file is made distinct on its own
//! (against what was already given out, which went to the files first).
//!
//! An `optional` DISTINCT only saves later operators work: it gives up when it drops few rows or
//! has little memory.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use snowmelt_graph::TermId;

use super::rows::{Queue, hash_rows, same_row};
use super::spill::{Partitions, Reader};
use super::{Boxed, Operator, Result, Run};
use crate::bounds::Held;
use crate::exec::Batch;

/// An optional distinct judges itself after this many rows.
const TRIAL_ROWS: usize = 4096;

pub(crate) struct Distinct {
    pub input: Boxed,
    pub optional: bool,
    seen: SeenRows,
    held: Held,
    rows_in: usize,
    idle: bool,
    spilled: Option<Partitions>,
    file: Option<Reader>,
    queue: Queue,
}

#[derive(Default)]
struct SeenRows {
    cols: Vec<Vec<TermId>>,
    hashes: Vec<u64>,
    table: HashTable<u32>,
}

impl SeenRows {
    /// Rows of a batch not seen before; they are remembered.
    fn new_rows(&mut self, batch: &Batch) -> Vec<u32> {
        let SeenRows { cols, hashes, table } = self;
        if cols.len() < batch.cols.len() {
            cols.resize(batch.cols.len(), Vec::new());
        }
        assert!(cols.len() == batch.cols.len(), "all batches of an input have the same columns");
        let mine: Vec<&[TermId]> = batch.cols.iter().map(|c| &c[..]).collect();
        let before = hashes.len();
        assert!(u32::try_from(before + batch.rows).is_ok(), "remembered rows have numbers of 32 bits");
        // room for a good part of the batch: growing in steps would move what is there each time
        let room = (batch.rows / 2).saturating_sub(table.capacity() - table.len());
        table.reserve(room, |r| hashes[*r as usize]);
        let mut fresh: Vec<u32> = Vec::new();
        for (row, hash) in hash_rows(&mine, batch.rows).into_iter().enumerate() {
            let known = |r: &u32| match (*r as usize).checked_sub(before) {
                // of this batch: its columns are remembered at the end
                Some(new) => hashes[*r as usize] == hash && same_row(&mine, fresh[new] as usize, &mine, row),
                None => cols.iter().zip(&mine).all(|(a, b)| a[*r as usize] == b[row]),
            };
            let Entry::Vacant(place) = table.entry(hash, known, |r| hashes[*r as usize]) else { continue };
            place.insert(hashes.len() as u32);
            hashes.push(hash);
            fresh.push(row as u32);
        }
        for (to, from) in cols.iter_mut().zip(&mine) {
            to.extend(fresh.iter().map(|row| from[*row as usize]));
        }
        debug_assert!(cols.iter().all(|c| c.len() == hashes.len()), "a hash for each remembered row");
        debug_assert_eq!(table.len(), hashes.len(), "each remembered row is in the table");
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

/// The first row of each distinct combination of some columns.
pub(super) fn first_of_each(rows: Batch, on: &[usize]) -> Batch {
    let keys = Batch { cols: on.iter().map(|c| rows.cols[*c].clone()).collect(), rows: rows.rows };
    let first = SeenRows::default().new_rows(&keys);
    let all: Vec<u16> = (0..rows.cols.len() as u16).collect();
    rows.gather(&all, &first)
}

impl Distinct {
    pub fn new(input: Boxed, optional: bool, held: Held) -> Self {
        Self {
            input,
            optional,
            seen: SeenRows::default(),
            held,
            rows_in: 0,
            idle: false,
            spilled: None,
            file: None,
            queue: Queue::default(),
        }
    }

    fn forget(&mut self) {
        self.seen = SeenRows::default();
        self.held.clear();
    }

    /// Moves the rows in memory, and all that follow, to files. `seen` rows were given out
    /// already.
    fn spill(&mut self, run: &mut Run) -> Result<()> {
        let mut partitions = Partitions::new(run)?;
        assert!(self.spilled.is_none(), "rows are spilled once");
        assert!(!self.idle, "an idle DISTINCT holds no rows to spill");
        let (rows, cols) = (self.seen.rows(), std::mem::take(&mut self.seen.cols));
        let width = cols.len();
        let seen = Batch { cols, rows };
        let all: Vec<usize> = (0..width).collect();
        partitions.add(&with_flag(seen, true), &all)?;
        self.forget();
        while let Some(batch) = self.input.next(run)? {
            run.check()?;
            partitions.add(&with_flag(batch, false), &all)?;
        }
        partitions.finish()?;
        self.spilled = Some(partitions);
        Ok(())
    }

    /// The next batch of the files, each of them distinct in memory.
    fn next_of_files(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            run.check()?;
            let Some(partitions) = &mut self.spilled else { return Ok(None) };
            let Some(file) = &mut self.file else {
                self.file = partitions.next();
                if self.file.is_none() {
                    return Ok(None);
                }
                continue;
            };
            let Some(mut batch) = file.next()? else {
                self.file = None;
                self.forget();
                continue;
            };
            let flags = batch.cols.pop().expect("the flag was added when it was written");
            let fresh = self.seen.new_rows(&batch);
            let bytes = self.seen.bytes();
            if bytes > self.held.bytes() {
                self.held.set(bytes, "distinct")?;
            }
            let rows: Vec<u32> = fresh.into_iter().filter(|r| flags[*r as usize].is_undef()).collect();
            batch.retain(&rows);
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }
}

/// One more column that says whether the rows were given out before. They come first in every
/// file.
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
                return self.next_of_files(run);
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
            if bytes > self.held.bytes() {
                let tight = self.held.is_tight(bytes);
                if self.optional
                    && (tight || (self.rows_in >= TRIAL_ROWS && self.seen.rows() * 10 > self.rows_in * 9))
                {
                    self.idle = true;
                    self.forget();
                } else if tight {
                    self.queue.push(batch, run);
                    self.spill(run)?;
                    continue;
                } else {
                    self.held.set(bytes, "distinct")?;
                }
            }
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.forget();
        self.file = None;
        self.rows_in = 0;
        self.idle = false;
        self.spilled = None;
        self.queue.clear();
    }
}
