//! GROUP BY: groups in a hash table, numbered as they come; aggregates per group number.
//!
//! Over the memory share, the rows that begin a new group from then on go to temporary files by
//! the hash of their key, and each file is grouped on its own afterwards: groups already in
//! memory go on taking their rows.

use hashbrown::HashTable;
use snowmelt_graph::TermId;

use super::rows::{Queue, columns, hash_row};
use super::spill::Partitions;
use super::{Boxed, Operator, Result, Run};
use crate::aggregate::{Aggregate, AggregateRows};
use crate::algebra::GroupFunction;
use crate::bounds::Held;
use crate::exec::Batch;
use crate::expr::Expr;
use crate::value::TermError;

pub(super) struct Group {
    pub input: Boxed,
    pub keys: Vec<usize>,
    /// of COUNT(DISTINCT *)
    pub visible: Vec<usize>,
    /// a row stands for as many as their product
    pub weights: Vec<usize>,
    pub aggregates: Vec<GroupColumn>,
    /// results may be compared with stored terms
    pub stored: bool,
    /// of a part of the input: without rows there is no group
    pub is_partial: bool,
    /// the rows of a group follow each other
    pub is_in_order: bool,
    pub state: GroupStage,
    pub queue: Queue,
}

/// An aggregate with its argument.
pub(super) struct GroupColumn {
    pub function: GroupFunction,
    pub is_distinct: bool,
    pub argument: Option<Expr>,
}

#[derive(Default)]
pub(super) enum GroupStage {
    #[default]
    Begin,
    /// of rows in order: the group that the next row may belong to
    Open(Groups),
    Files(Partitions),
    Done,
}

/// Groups in memory.
pub(super) struct Groups {
    keys: Vec<Vec<TermId>>,
    count: usize,
    /// of groups whose rows come in any order
    hashes: Vec<u64>,
    table: HashTable<u32>,
    is_in_order: bool,
    pub aggregates: Vec<Aggregate>,
}

/// The number of rows whose group is not there, and is not to be made.
pub(super) const HOMELESS: u32 = u32::MAX;

/// Groups of rows in order, and bytes of them, that are given out together.
const GIVEN: (usize, usize) = (4096, 256 << 10);

impl Group {
    /// A group of rows that each stand for themselves.
    pub fn new(input: Boxed, keys: Vec<usize>, aggregates: Vec<GroupColumn>, stored: bool) -> Self {
        Self {
            input,
            keys,
            visible: Vec::new(),
            weights: Vec::new(),
            aggregates,
            stored,
            is_partial: false,
            is_in_order: false,
            state: GroupStage::Begin,
            queue: Queue::default(),
        }
    }

    pub fn groups(&self, run: &Run) -> Groups {
        Groups { is_in_order: self.is_in_order, ..Groups::new(self.keys.len(), self.states(run)) }
    }

    /// Its aggregates, without a group.
    pub fn states(&self, run: &Run) -> Vec<Aggregate> {
        let of = |column: &GroupColumn| {
            Aggregate::new(&column.function, column.is_distinct).held_by(run.memory.held())
        };
        self.aggregates.iter().map(of).collect()
    }

    /// Takes in a batch; what found no group goes to the files.
    pub fn take(
        &self,
        groups: &mut Groups,
        batch: Batch,
        files: Option<&mut Partitions>,
        run: &mut Run,
    ) -> Result<()> {
        let numbers = groups.number(&batch, &self.keys, files.is_none());
        let (batch, numbers) = match files {
            None => (batch, numbers),
            Some(files) => {
                let (mut home, mut away) = (Vec::new(), Vec::new());
                for (r, n) in numbers.iter().enumerate() {
                    if *n == HOMELESS { &mut away } else { &mut home }.push(r as u32);
                }
                let all: Vec<u16> = (0..batch.cols.len() as u16).collect();
                files.add(&batch.gather(&all, &away), &self.keys)?;
                let numbers = home.iter().map(|r| numbers[*r as usize]).collect();
                (batch.gather(&all, &home), numbers)
            }
        };
        assert_eq!(numbers.len(), batch.rows, "a group for each row");
        let weights = if self.weights.is_empty() { None } else { Some(products(&batch, &self.weights)?) };
        let weights = weights.as_deref();
        for (aggregate, column) in groups.aggregates.iter_mut().zip(&self.aggregates) {
            aggregate.resize(groups.count);
            if aggregate.counts_distinct_rows() {
                let visible: Vec<Vec<TermId>> = self.visible.iter().map(|c| batch.cols[*c].clone()).collect();
                aggregate.update_rows(&mut run.terms, &mut run.source.session, &numbers, visible)?;
                continue;
            }
            if let Some(argument) = &column.argument {
                let (terms, session) = (&mut run.terms, &mut run.source.session);
                if aggregate.update_texts(terms, session, &numbers, argument, &batch.cols)? {
                    continue;
                }
            }
            let args = match &column.argument {
                Some(argument) => {
                    argument.eval_column(&mut run.terms, &mut run.source.session, &batch.cols, batch.rows)?
                }
                None => Vec::new(),
            };
            let rows = AggregateRows { groups: &numbers, args: &args, weights };
            aggregate.update(&mut run.terms, &mut run.source.session, rows)?;
        }
        Ok(())
    }

    fn finish(&mut self, groups: Groups, held: Held, run: &mut Run) -> Result<()> {
        let batch = groups.into_batch(self.stored, run)?;
        self.queue.push_held(batch, held, run);
        Ok(())
    }

    fn run_input(&mut self, run: &mut Run) -> Result<()> {
        let mut groups = self.groups(run);
        if self.keys.is_empty() && !self.is_partial {
            groups.one();
        }
        let mut files: Option<Partitions> = None;
        let mut held = run.memory.held();
        while let Some(batch) = self.input.next(run)? {
            run.check()?;
            self.take(&mut groups, batch, files.as_mut(), run)?;
            let bytes = groups.bytes();
            if bytes > held.bytes() {
                if files.is_none() && !self.keys.is_empty() && held.is_tight(bytes) {
                    files = Some(Partitions::new(run)?);
                }
                held.set(bytes, "group")?;
            }
        }
        self.finish(groups, held, run)?;
        self.state = match files {
            Some(mut files) => {
                files.finish()?;
                GroupStage::Files(files)
            }
            None => GroupStage::Done,
        };
        Ok(())
    }

    /// Groups of rows in order: those that are complete are given out before more rows are read.
    fn run_in_order(&mut self, run: &mut Run) -> Result<()> {
        let mut groups = match std::mem::take(&mut self.state) {
            GroupStage::Open(groups) => groups,
            _ => self.groups(run),
        };
        let mut held = run.memory.held();
        while let Some(batch) = self.input.next(run)? {
            run.check()?;
            let last = self.last_group(&batch);
            let is_full = groups.len() + last >= GIVEN.0 || groups.bytes() >= GIVEN.1;
            if last == 0 || !is_full {
                self.take(&mut groups, batch, None, run)?;
                held.set(groups.bytes(), "group")?;
                continue;
            }
            self.take(&mut groups, batch.slice(0..last), None, run)?;
            held.set(groups.bytes(), "group")?;
            self.finish(groups, held, run)?;
            let mut open = self.groups(run);
            self.take(&mut open, batch.slice(last..batch.rows), None, run)?;
            self.state = GroupStage::Open(open);
            return Ok(());
        }
        self.finish(groups, held, run)?;
        self.state = GroupStage::Done;
        Ok(())
    }

    /// The row of a batch in order that its last group begins with.
    fn last_group(&self, batch: &Batch) -> usize {
        let columns = columns(batch, &self.keys);
        let is_first = |row: &usize| columns.iter().any(|column| column[*row] != column[*row - 1]);
        (1..batch.rows).rev().find(is_first).unwrap_or(0)
    }

    fn run_file(&mut self, run: &mut Run) -> Result<()> {
        let GroupStage::Files(files) = &mut self.state else { return Ok(()) };
        let Some(mut file) = files.next() else {
            self.state = GroupStage::Done;
            return Ok(());
        };
        let mut groups = self.groups(run);
        let mut held = run.memory.held();
        while let Some(batch) = file.next()? {
            run.check()?;
            self.take(&mut groups, batch, None, run)?;
            let bytes = groups.bytes();
            if bytes > held.bytes() {
                held.set(bytes, "group")?;
            }
        }
        self.finish(groups, held, run)
    }
}

/// How many rows each row of a batch stands for.
pub(super) fn products(batch: &Batch, weights: &[usize]) -> Result<Vec<u64>> {
    let mut all = vec![1u64; batch.rows];
    for c in weights {
        for (product, weight) in all.iter_mut().zip(&batch.cols[*c]) {
            // where a branch or a right side has no weight, a row is itself
            *product = product.checked_mul(weight.0.max(1)).ok_or(TermError::Count)?;
        }
    }
    Ok(all)
}

impl Groups {
    /// Without a group.
    pub fn new(keys: usize, aggregates: Vec<Aggregate>) -> Self {
        Self {
            keys: vec![Vec::new(); keys],
            count: 0,
            hashes: Vec::new(),
            table: HashTable::new(),
            is_in_order: false,
            aggregates,
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// The keys, then the results of the aggregates.
    pub fn into_batch(self, stored: bool, run: &mut Run) -> Result<Batch> {
        let rows = self.count;
        let mut cols = self.keys;
        for aggregate in self.aggregates {
            run.check()?;
            let mut col = aggregate.finish(&mut run.terms);
            run.terms.fault()?;
            if stored {
                run.terms.to_stored(&mut run.source.session, &mut col)?;
            }
            cols.push(col);
        }
        assert!(cols.iter().all(|col| col.len() == rows), "an aggregate has a value for each group");
        Ok(Batch { cols, rows })
    }

    /// The one group of an aggregation without keys, there even without rows.
    pub fn one(&mut self) {
        assert!(self.count == 0, "without keys there is one group");
        self.count = 1;
        self.hashes.push(hash_row(&[], 0));
        self.table.insert_unique(self.hashes[0], 0, |_| 0);
        self.aggregates.iter_mut().for_each(|a| a.resize(1));
    }

    /// The group of each row; new groups are made only where `open`.
    pub fn number(&mut self, batch: &Batch, by: &[usize], open: bool) -> Vec<u32> {
        let Groups { keys, count, hashes, table, .. } = self;
        let mine = columns(batch, by);
        if self.is_in_order {
            return in_order(keys, count, &mine);
        }
        let mut numbers = Vec::with_capacity(batch.rows);
        let mut last = HOMELESS;
        for row in 0..batch.rows {
            // sorted input comes in runs
            if last != HOMELESS && row > 0 && mine.iter().all(|c| c[row] == c[row - 1]) {
                numbers.push(last);
                continue;
            }
            let hash = hash_row(&mine, row);
            let known = |g: &u32| keys.iter().zip(&mine).all(|(a, b)| a[*g as usize] == b[row]);
            last = match table.find(hash, known) {
                Some(g) => *g,
                None if open => {
                    let g = *count as u32;
                    *count += 1;
                    keys.iter_mut().zip(&mine).for_each(|(to, from)| to.push(from[row]));
                    hashes.push(hash);
                    table.insert_unique(hash, g, |g| hashes[*g as usize]);
                    g
                }
                None => HOMELESS,
            };
            numbers.push(last);
        }
        numbers
    }

    pub fn bytes(&self) -> usize {
        self.keys.iter().map(|c| c.capacity() * 8).sum::<usize>()
            + self.hashes.capacity() * 8
            + self.table.capacity() * 5
            + self.aggregates.iter().map(Aggregate::bytes).sum::<usize>()
    }
}

/// The group of each row where the rows of a group follow each other, maybe over several batches.
fn in_order(keys: &mut [Vec<TermId>], count: &mut usize, mine: &[&[TermId]]) -> Vec<u32> {
    let rows = mine.first().map_or(0, |column| column.len());
    let mut numbers = Vec::with_capacity(rows);
    for row in 0..rows {
        let is_known = match row {
            0 => *count > 0 && keys.iter().zip(mine).all(|(known, new)| known[*count - 1] == new[0]),
            _ => mine.iter().all(|column| column[row] == column[row - 1]),
        };
        if !is_known {
            *count += 1;
            keys.iter_mut().zip(mine).for_each(|(to, from)| to.push(from[row]));
        }
        numbers.push(*count as u32 - 1);
    }
    numbers
}

impl Operator for Group {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            match self.state {
                GroupStage::Begin | GroupStage::Open(_) => match self.is_in_order {
                    true => self.run_in_order(run)?,
                    false => self.run_input(run)?,
                },
                GroupStage::Files(_) => self.run_file(run)?,
                GroupStage::Done => return Ok(None),
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.state = GroupStage::Begin;
        self.queue.clear();
    }
}
