//! ORDER BY: rows under binary keys whose byte order is SPARQL's order.
//!
//! * With a limit: the best rows so far are kept; when twice as many have gathered, the worse half goes.
//! * Without: all rows, sorted at the end; over the memory share sorted runs go to temporary files and are merged.
//!
//! A key is made once per row, from terms read once per batch in location order. Equal keys keep the order of arrival.

use super::rows::{Queue, append};
use super::spill::{Reader, Writer};
use super::{Boxed, Operator, Result, Run};
use crate::batch::Batch;
use crate::expr::Expr;
use crate::value::push_order_key;
use snowmelt_graph::TermId;
use std::cmp::Ordering;

pub(super) struct Sort {
    pub input: Boxed,
    pub keys: Vec<(Expr, bool)>,
    pub limit: Option<usize>,
    pub keep: Vec<u16>,
    pub state: State,
}

#[derive(Default)]
pub(super) enum State {
    #[default]
    Begin,
    Memory(Queue),
    Merge(Vec<Run_>),
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

    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.key(a).cmp(self.key(b)).then(a.cmp(&b))
    }

    /// Row numbers in order, the first `limit` of them.
    fn order(&self, limit: usize) -> Vec<u32> {
        let prefix = |r: u32| {
            let key = self.key(r);
            let mut first = [0u8; 8];
            let n = key.len().min(8);
            first[..n].copy_from_slice(&key[..n]);
            u64::from_be_bytes(first)
        };
        let mut rows: Vec<(u64, u32)> = (0..self.batch.rows as u32).map(|r| (prefix(r), r)).collect();
        let compare = |a: &(u64, u32), b: &(u64, u32)| a.0.cmp(&b.0).then_with(|| self.compare(a.1, b.1));
        if limit == 0 {
            return Vec::new();
        }
        if limit < rows.len() {
            rows.select_nth_unstable_by(limit - 1, compare);
            rows.truncate(limit);
        }
        rows.sort_unstable_by(compare);
        rows.into_iter().map(|r| r.1).collect()
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
        *self = Rows { batch: self.batch.gather(&all, rows), bytes, ends };
    }

    fn held(&self) -> usize {
        self.batch.bytes() + self.bytes.capacity() + self.ends.capacity() * 8
    }
}

/// A sorted run in a file, at its next batch.
pub(super) struct Run_ {
    file: Reader,
    rows: Rows,
    at: u32,
}

impl Sort {
    /// Adds a batch with its keys.
    fn add(&self, rows: &mut Rows, batch: Batch, run: &mut Run) -> Result<()> {
        let mut cols = Vec::with_capacity(self.keys.len());
        for (expr, _) in &self.keys {
            cols.push(expr.eval_column(&mut run.terms, &mut run.source.session, &batch.cols, batch.rows)?);
        }
        let batch = batch.project(&self.keep);
        make_keys(rows, &cols, batch.rows, &self.keys, run)?;
        append(&mut rows.batch, batch);
        Ok(())
    }

    fn sort_all(&mut self, run: &mut Run) -> Result<State> {
        let mut rows = Rows::default();
        let mut runs: Vec<Writer> = Vec::new();
        let mut taken = 0;
        while let Some(batch) = self.input.next(run)? {
            run.check()?;
            self.add(&mut rows, batch, run)?;
            if let Some(limit) = self.limit
                && rows.batch.rows > 2 * limit + 1024
            {
                let best = rows.order(limit);
                // arrival decides ties, so the kept rows stay in it
                let mut best = best;
                best.sort_unstable();
                rows.pick(&best);
            }
            let held = rows.held();
            if held > taken {
                if run.memory.is_tight(held) && rows.batch.rows > 0 {
                    runs.push(spill(&mut rows, self.limit, run)?);
                    run.memory.give_back(std::mem::take(&mut taken));
                    continue;
                }
                run.memory.take(held - taken, "sort")?;
                taken = held;
            }
        }
        if runs.is_empty() {
            let order = rows.order(self.limit.unwrap_or(usize::MAX));
            let all: Vec<u16> = (0..rows.batch.cols.len() as u16).collect();
            let mut queue = Queue::default();
            queue.push(rows.batch.gather(&all, &order), run);
            run.memory.give_back(taken);
            return Ok(State::Memory(queue));
        }
        runs.push(spill(&mut rows, self.limit, run)?);
        run.memory.give_back(taken);
        let mut open = Vec::with_capacity(runs.len());
        for writer in runs {
            let mut r = Run_ { file: writer.read()?, rows: Rows::default(), at: 0 };
            if r.load(&self.keys, run)? {
                open.push(r);
            }
        }
        Ok(State::Merge(open))
    }
}

/// Sorts what is held and writes it; the keys of expressions go with it as columns.
fn spill(rows: &mut Rows, limit: Option<usize>, run: &Run) -> Result<Writer> {
    let order = rows.order(limit.unwrap_or(usize::MAX));
    let mut writer = Writer::new(&run.temp_dir)?;
    let all: Vec<u16> = (0..rows.batch.cols.len() as u16).collect();
    for part in order.chunks(4096) {
        let mut batch = rows.batch.gather(&all, part);
        // keys as columns of ids: lengths first, then bytes in eights
        let (lengths, words) = pack(rows, part);
        let width = batch.cols.len();
        writer.write(&batch)?;
        batch.cols.truncate(0);
        debug_assert!(width == all.len());
        writer.write(&Batch { rows: lengths.len(), cols: vec![lengths] })?;
        writer.write(&Batch { rows: words.len(), cols: vec![words] })?;
    }
    *rows = Rows::default();
    Ok(writer)
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

/// Appends the keys of a batch.
fn make_keys(
    rows: &mut Rows,
    cols: &[Vec<TermId>],
    count: usize,
    keys: &[(Expr, bool)],
    run: &mut Run,
) -> Result<()> {
    for col in cols {
        run.terms.prefetch(&mut run.source.session, col.iter().copied())?;
    }
    for row in 0..count {
        for (col, (_, descending)) in cols.iter().zip(keys) {
            push_order_key(run.terms.value(col[row]).as_ref(), *descending, &mut rows.bytes);
        }
        rows.ends.push(rows.bytes.len());
    }
    Ok(())
}

impl Run_ {
    /// The next batch of the run; false at its end.
    fn load(&mut self, _keys: &[(Expr, bool)], _run: &mut Run) -> Result<bool> {
        let Some(batch) = self.file.next()? else { return Ok(false) };
        let missing = || crate::QueryError::Write(std::io::Error::other("a sorted run ends in the middle"));
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
        self.rows = rows;
        self.at = 0;
        Ok(true)
    }
}

impl Sort {
    /// The next rows of all runs together.
    fn merge(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let State::Merge(runs) = &mut self.state else { return Ok(None) };
        let mut out = Batch::empty(self.keep.len());
        while out.rows < run.batch.most && !runs.is_empty() {
            // earlier runs hold earlier rows: they win ties
            let mut best = 0;
            for i in 1..runs.len() {
                if runs[i].rows.key(runs[i].at) < runs[best].rows.key(runs[best].at) {
                    best = i;
                }
            }
            let r = &mut runs[best];
            for (to, from) in out.cols.iter_mut().zip(&r.rows.batch.cols) {
                to.push(from[r.at as usize]);
            }
            out.rows += 1;
            r.at += 1;
            if r.at as usize == r.rows.batch.rows && !r.load(&self.keys, run)? {
                runs.remove(best);
            }
        }
        Ok((out.rows > 0).then_some(out))
    }
}

impl Operator for Sort {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        run.check()?;
        if matches!(self.state, State::Begin) {
            self.state = self.sort_all(run)?;
        }
        match &mut self.state {
            State::Memory(queue) => Ok(queue.pop()),
            _ => self.merge(run),
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.state = State::Begin;
    }
}
