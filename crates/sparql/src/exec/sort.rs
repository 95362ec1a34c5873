//! ORDER BY: rows under binary keys whose byte order is SPARQL's order.
//!
//! * With a limit: the best rows so far are kept; when twice as many have gathered, the worse
//!   half goes. From then on a row no better than the worst of them is not taken in, and its text
//!   not copied ([`KeyBound`]).
//! * Without: all rows, sorted at the end; over the memory share sorted runs are put aside and
//!   merged, some at a time, until one merge can give out the rows.
//!
//! A key is made once per row, from terms read once per batch in location order. Equal keys
//! keep the order of arrival.

use std::cmp::Ordering;
use std::sync::Arc;

use snowmelt_graph::{GraphDatabase, TermId};
use snowmelt_query::SpillSpace;

use super::bound::KeyBound;
use super::rows::{Queue, append};
use super::spill::{self, Reader, Writer};
use super::{Boxed, Operator, Result, Run};
use crate::bounds::{Held, Limits, MemoryShare};
use crate::error::QueryError;
use crate::exec::Batch;
use crate::expr::Expr;

/// Runs merged at once.
const FAN_IN: usize = 16;

/// Rows sorted at once: longer lists are merged from such parts, so that the limits are looked
/// at in between.
const SORTED_AT_ONCE: usize = 1 << 16;

/// Bytes that sorting takes beside a row: prefix and number, twice, and the number in order.
const ORDER_BYTES: usize = 36;

pub(super) struct Sort {
    pub input: Boxed,
    pub keys: Vec<(Expr, bool)>,
    pub limit: Option<usize>,
    pub keep: Vec<u16>,
    pub state: SortStage,
}

#[derive(Default)]
pub(super) enum SortStage {
    #[default]
    Begin,
    Memory(Queue),
    Merge(Merge),
}

/// Rows with their keys.
#[derive(Default)]
struct Rows {
    batch: Batch,
    bytes: Vec<u8>,
    /// where each row's key ends in `bytes`
    ends: Vec<usize>,
}

impl Rows {
    fn key(&self, row: u32) -> &[u8] {
        let row = row as usize;
        &self.bytes[if row == 0 { 0 } else { self.ends[row - 1] }..self.ends[row]]
    }

    fn compare(&self, a: &(u64, u32), b: &(u64, u32)) -> Ordering {
        a.0.cmp(&b.0).then_with(|| self.key(a.1).cmp(self.key(b.1))).then(a.1.cmp(&b.1))
    }

    /// Row numbers in order, the first `limit` of them.
    fn order(&self, limit: usize, limits: &Limits) -> Result<Vec<u32>> {
        let prefix = |r: u32| {
            let key = self.key(r);
            let mut first = [0u8; 8];
            let n = key.len().min(8);
            first[..n].copy_from_slice(&key[..n]);
            u64::from_be_bytes(first)
        };
        let mut rows: Vec<(u64, u32)> = (0..self.batch.rows as u32).map(|r| (prefix(r), r)).collect();
        if limit == 0 {
            return Ok(Vec::new());
        }
        if limit < rows.len() && rows.len() <= 4 * SORTED_AT_ONCE {
            rows.select_nth_unstable_by(limit - 1, |a, b| self.compare(a, b));
            rows.truncate(limit);
        }
        for part in rows.chunks_mut(SORTED_AT_ONCE) {
            part.sort_unstable_by(|a, b| self.compare(a, b));
            limits.check()?;
        }
        let mut sorted = SORTED_AT_ONCE;
        while sorted < rows.len() {
            rows = self.merge_pairs(&rows, sorted, limits)?;
            sorted *= 2;
        }
        rows.truncate(limit);
        Ok(rows.into_iter().map(|r| r.1).collect())
    }

    /// Merges neighbouring sorted stretches of `sorted` rows, two and two.
    fn merge_pairs(&self, rows: &[(u64, u32)], sorted: usize, limits: &Limits) -> Result<Vec<(u64, u32)>> {
        assert!(sorted > 0, "stretches have rows");
        let mut out = Vec::with_capacity(rows.len());
        for pair in rows.chunks(2 * sorted) {
            let (mut a, mut b) = pair.split_at(sorted.min(pair.len()));
            while let (Some(x), Some(y)) = (a.first(), b.first()) {
                let from = if self.compare(x, y).is_le() { &mut a } else { &mut b };
                out.push(from[0]);
                *from = &from[1..];
                if out.len() % SORTED_AT_ONCE == 0 {
                    limits.check()?;
                }
            }
            out.extend_from_slice(a);
            out.extend_from_slice(b);
        }
        assert_eq!(out.len(), rows.len(), "a merge loses no row");
        Ok(out)
    }

    /// Only these rows, in this order.
    fn pick(&mut self, rows: &[u32]) {
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(rows.len());
        for r in rows {
            bytes.extend_from_slice(self.key(*r));
            ends.push(bytes.len());
        }
        let all: Vec<u16> = (0..self.batch.cols.len() as u16).collect();
        assert_eq!(ends.len(), rows.len(), "a key for each row");
        *self = Rows { batch: self.batch.gather(&all, rows), bytes, ends };
    }

    fn held(&self) -> usize {
        self.batch.bytes() + self.bytes.capacity() + self.ends.capacity() * 8 + self.batch.rows * ORDER_BYTES
    }
}

/// The rows gathered: some in memory, and runs in temporary space.
struct Gather<'a> {
    rows: Rows,
    held: Held,
    runs: Vec<Writer>,
    space: Option<SpillSpace>,
    limit: Option<usize>,
    /// once as many rows as wanted have been seen
    bound: Option<KeyBound>,
    /// of the keys: how many parts they have, and whether the first is turned round
    shape: (usize, bool),
    limits: &'a Limits,
    memory: MemoryShare,
    database: Arc<GraphDatabase>,
}

impl Gather<'_> {
    /// After rows were added: the worst go, or all are put aside, if they are too many.
    fn settle(&mut self) -> Result<()> {
        if let Some(limit) = self.limit
            && self.rows.batch.rows > limit.saturating_mul(2).saturating_add(1024)
        {
            let mut best = self.rows.order(limit, self.limits)?;
            let worst = best.last().map(|row| self.rows.key(*row));
            self.bound = worst.map(|key| KeyBound::new(key, self.shape.0, self.shape.1));
            // arrival decides ties, so the kept rows stay in it
            best.sort_unstable();
            self.rows.pick(&best);
        }
        let bytes = self.rows.held() + self.bound.as_ref().map_or(0, KeyBound::bytes);
        if self.held.is_tight(bytes) && self.rows.batch.rows > 0 {
            return self.spill();
        }
        if bytes > self.held.bytes() { Ok(self.held.set(bytes, "sort")?) } else { Ok(()) }
    }

    /// Sorts what is held and writes it.
    fn spill(&mut self) -> Result<()> {
        let order = self.rows.order(self.limit.unwrap_or(usize::MAX), self.limits)?;
        let space = match &self.space {
            Some(space) => space,
            None => self.space.insert(spill::space(&self.database, &self.memory)?),
        };
        let mut writer = Writer::new(space);
        let mut rest = &order[..];
        while !rest.is_empty() {
            self.limits.check()?;
            let part = part_of(&self.rows, rest, block_bytes(&self.memory));
            write(&mut writer, &self.rows, &rest[..part])?;
            rest = &rest[part..];
        }
        self.runs.push(writer);
        self.rows = Rows::default();
        self.held.clear();
        Ok(())
    }
}

/// Bytes of a block of a run: those of all runs that are merged at once fit into what an operator
/// has at least.
fn block_bytes(memory: &MemoryShare) -> usize {
    (memory.worker_bytes() / 4 / FAN_IN).clamp(4 << 10, 256 << 10)
}

/// How many of these rows make a block.
fn part_of(rows: &Rows, order: &[u32], block_bytes: usize) -> usize {
    let width = rows.batch.cols.len() * 8 + 8;
    let mut bytes = 0;
    let fits = |row: &&u32| {
        bytes += rows.key(**row).len() + width;
        bytes <= block_bytes
    };
    order.iter().take_while(fits).count().max(1)
}

/// Writes rows as one block of a run: the columns, then lengths and bytes of the keys.
fn write(writer: &mut Writer, rows: &Rows, part: &[u32]) -> Result<()> {
    let all: Vec<u16> = (0..rows.batch.cols.len() as u16).collect();
    writer.write(&rows.batch.gather(&all, part))?;
    let (lengths, words) = pack(rows, part);
    writer.write(&Batch { rows: lengths.len(), cols: vec![lengths] })?;
    writer.write(&Batch { rows: words.len(), cols: vec![words] })
}

fn pack(rows: &Rows, part: &[u32]) -> (Vec<TermId>, Vec<TermId>) {
    let mut bytes = Vec::new();
    let mut lengths = Vec::with_capacity(part.len());
    for r in part {
        bytes.extend_from_slice(rows.key(*r));
        lengths.push(TermId(rows.key(*r).len() as u64));
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let words = bytes.chunks_exact(8).map(|b| TermId(u64::from_le_bytes(b.try_into().expect("eight bytes"))));
    (lengths, words.collect())
}

/// A sorted run in temporary space, at its next row.
struct SortedRun {
    file: Reader,
    rows: Rows,
    at: u32,
}

impl SortedRun {
    /// The next block of the run; false at its end.
    fn load(&mut self) -> Result<bool> {
        let Some(batch) = self.file.next()? else { return Ok(false) };
        let missing = || QueryError::Write(std::io::Error::other("a sorted run ends in the middle"));
        let lengths = self.file.next()?.ok_or_else(missing)?;
        let words = self.file.next()?.ok_or_else(missing)?;
        let mut rows = Rows { batch, ..Rows::default() };
        if let Some(col) = words.cols.first() {
            col.iter().for_each(|w| rows.bytes.extend(w.0.to_le_bytes()));
        }
        let mut end = 0;
        for l in lengths.cols.first().map_or(&[][..], |c| c) {
            end += l.0 as usize;
            rows.ends.push(end);
        }
        if rows.ends.len() != rows.batch.rows || end > rows.bytes.len() {
            return Err(missing());
        }
        self.rows = rows;
        self.at = 0;
        Ok(true)
    }
}

/// Sorted runs being merged.
pub(super) struct Merge {
    runs: Vec<SortedRun>,
    held: Held,
}

impl Merge {
    fn new(writers: Vec<Writer>, held: Held) -> Result<Self> {
        let mut runs = Vec::with_capacity(writers.len());
        for writer in writers {
            let mut run = SortedRun { file: writer.read(), rows: Rows::default(), at: 0 };
            if run.load()? {
                runs.push(run);
            }
        }
        let mut merge = Self { runs, held };
        merge.account()?;
        Ok(merge)
    }

    fn account(&mut self) -> Result<()> {
        Ok(self.held.set(self.runs.iter().map(|run| run.rows.held()).sum(), "sort")?)
    }

    /// Appends the next row to `out`, and its key to `keys`; false when there is none.
    fn next(&mut self, out: &mut Batch, keys: Option<&mut Rows>) -> Result<bool> {
        if self.runs.is_empty() {
            return Ok(false);
        }
        // earlier runs hold earlier rows: they win ties
        let mut best = 0;
        for i in 1..self.runs.len() {
            if self.runs[i].rows.key(self.runs[i].at) < self.runs[best].rows.key(self.runs[best].at) {
                best = i;
            }
        }
        debug_assert!(
            self.runs.iter().all(|run| (run.at as usize) < run.rows.batch.rows),
            "a run that ended is gone"
        );
        let r = &mut self.runs[best];
        for (to, from) in out.cols.iter_mut().zip(&r.rows.batch.cols) {
            to.push(from[r.at as usize]);
        }
        out.rows += 1;
        if let Some(keys) = keys {
            keys.bytes.extend_from_slice(r.rows.key(r.at));
            keys.ends.push(keys.bytes.len());
        }
        r.at += 1;
        if r.at as usize == r.rows.batch.rows {
            if !r.load()? {
                self.runs.remove(best);
            }
            self.account()?;
        }
        Ok(true)
    }

    /// All rows as one run.
    fn write(
        mut self,
        mut writer: Writer,
        width: usize,
        block_bytes: usize,
        limits: &Limits,
    ) -> Result<Writer> {
        loop {
            limits.check()?;
            let mut rows = Rows { batch: Batch::empty(width), ..Rows::default() };
            let mut batch = std::mem::take(&mut rows.batch);
            while rows.bytes.len() + batch.rows * (width * 8 + 8) < block_bytes
                && self.next(&mut batch, Some(&mut rows))?
            {}
            rows.batch = batch;
            if rows.batch.rows == 0 {
                return Ok(writer);
            }
            let all: Vec<u32> = (0..rows.batch.rows as u32).collect();
            write(&mut writer, &rows, &all)?;
        }
    }
}

impl Sort {
    /// Adds a batch with its keys: in parts, where the texts are long.
    fn add(&self, gather: &mut Gather<'_>, batch: Batch, run: &mut Run) -> Result<()> {
        let mut batch = batch;
        if let (Some(limit), Some((first, descending))) = (gather.limit, self.keys.first())
            && let Some(texts) = first.as_texts()
        {
            let (terms, store) = (&mut run.terms, &mut run.source.session);
            if let Some(rows) = texts.may_be_first(terms, store, &batch.cols, limit, *descending)? {
                batch.retain(&rows);
            }
        }
        let batch = match (&gather.bound, self.keys.first()) {
            (Some(bound), Some((first, _))) => bound.without_worse(batch, first, run)?,
            _ => batch,
        };
        let mut cols = Vec::with_capacity(self.keys.len());
        for (expr, _) in &self.keys {
            cols.push(expr.eval_column(&mut run.terms, &mut run.source.session, &batch.cols, batch.rows)?);
        }
        let batch = batch.project(&self.keep);
        let Run { terms, source, .. } = run;
        terms.in_parts(0..batch.rows, &mut |terms, part| {
            for col in &cols {
                terms.prefetch(&mut source.session, col[part.clone()].iter().copied())?;
            }
            let rows = &mut gather.rows;
            let mut taken = Vec::with_capacity(part.len());
            for row in part.clone() {
                let start = rows.bytes.len();
                for (col, (_, descending)) in cols.iter().zip(&self.keys) {
                    terms.push_order_key(col[row], *descending, &mut rows.bytes);
                }
                if gather.bound.as_ref().is_some_and(|bound| bound.excludes(&rows.bytes[start..])) {
                    rows.bytes.truncate(start);
                    continue;
                }
                rows.ends.push(rows.bytes.len());
                taken.push(row as u32);
            }
            terms.fault()?;
            let all: Vec<u16> = (0..batch.cols.len() as u16).collect();
            append(&mut rows.batch, batch.gather(&all, &taken));
            gather.settle()
        })
    }

    fn sort_all(&mut self, run: &mut Run) -> Result<SortStage> {
        let limits = run.limits.clone();
        let mut gather = Gather {
            rows: Rows::default(),
            held: run.memory.held(),
            runs: Vec::new(),
            space: None,
            limit: self.limit,
            bound: None,
            shape: (self.keys.len(), self.keys.first().is_some_and(|(_, descending)| *descending)),
            limits: &limits,
            memory: run.memory.clone(),
            database: run.source.session.graph().clone(),
        };
        while let Some(batch) = self.input.next(run)? {
            run.check()?;
            self.add(&mut gather, batch, run)?;
        }
        if gather.runs.is_empty() {
            let Gather { rows, held, .. } = gather;
            let order = rows.order(self.limit.unwrap_or(usize::MAX), &limits)?;
            let Rows { mut batch, .. } = rows;
            // column by column, so that only one is there twice
            batch.cols.iter_mut().for_each(|col| *col = crate::exec::batch::gather(col, &order));
            batch.rows = order.len();
            let mut queue = Queue::default();
            queue.push_held(batch, held, run);
            return Ok(SortStage::Memory(queue));
        }
        if gather.rows.batch.rows > 0 {
            gather.spill()?;
        }
        let Gather { mut runs, space, .. } = gather;
        let space = space.expect("runs are in temporary space");
        while runs.len() > FAN_IN {
            let mut longer = Vec::new();
            while !runs.is_empty() {
                let some = runs.drain(..runs.len().min(FAN_IN)).collect();
                let merge = Merge::new(some, run.memory.held())?;
                longer.push(merge.write(
                    Writer::new(&space),
                    self.keep.len(),
                    block_bytes(&run.memory),
                    &limits,
                )?);
            }
            runs = longer;
        }
        Ok(SortStage::Merge(Merge::new(runs, run.memory.held())?))
    }
}

impl Operator for Sort {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        run.check()?;
        if matches!(self.state, SortStage::Begin) {
            self.state = self.sort_all(run)?;
        }
        match &mut self.state {
            SortStage::Memory(queue) => Ok(queue.pop()),
            SortStage::Merge(merge) => {
                let mut out = Batch::empty(self.keep.len());
                while out.rows < run.query.batch.most && merge.next(&mut out, None)? {}
                out.check();
                assert!(
                    !merge.runs.is_empty() || merge.held.bytes() == 0,
                    "runs that have ended hold no memory"
                );
                Ok((out.rows > 0).then_some(out))
            }
            SortStage::Begin => unreachable!("sorted above"),
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.state = SortStage::Begin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_sorted_as_short_ones() {
        let count = SORTED_AT_ONCE as u32 * 5 + 77;
        let mut rows = Rows::default();
        let mut state = 1u32;
        for _ in 0..count {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            rows.bytes.extend_from_slice(format!("a common head {}", state >> 20).as_bytes());
            rows.ends.push(rows.bytes.len());
        }
        rows.batch = Batch { cols: Vec::new(), rows: count as usize };
        let mut expected: Vec<u32> = (0..count).collect();
        expected.sort_by_key(|r| rows.key(*r));
        for limit in [usize::MAX, count as usize / 2, 3] {
            let order = rows.order(limit, &Limits::default()).unwrap();
            assert!(order == expected[..limit.min(expected.len())]);
        }
    }
}
