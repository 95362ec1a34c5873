//! AnyIndex scan: the rows under constant leading columns, in index order; or piece after piece of
//! a scan that is shared.

use std::collections::VecDeque;
use std::sync::Arc;

use snowmelt_graph::{AnyIndex, Columns, Scan, TermId};

use super::access::{ResolvedVisit, ids, ids_at, ranges};
use super::run::Part;
use super::shared::{SharedNote, SharedScan};
use super::{Operator, Result, Run};
use crate::exec::Batch;
use crate::plan::{Access, Copies};

pub(super) struct IndexScan {
    visit: Option<ResolvedVisit>,
    key: Vec<TermId>,
    /// ranges of the column after the key; what is left of them
    all: Vec<Option<(u64, u64)>>,
    left: VecDeque<Option<(u64, u64)>>,
    current: Option<Scan>,
    /// the source of its pieces, if it is shared
    shared: Option<Arc<SharedScan>>,
    rows: usize,
    /// the row before, where graphs are merged
    last: Option<Vec<u64>>,
    /// the range that is scanned
    range: Option<(u64, u64)>,
    /// the value in the first column of the last row read of it, and how many rows have it
    run: Option<(u64, u64)>,
}

/// A run of equal rows that is worth a leap to its end: about as many are read while the next
/// value is found and the rows before it are counted.
const LEAP_ROWS: u64 = 512;

impl IndexScan {
    pub fn new(access: &Access, run: &mut Run) -> Self {
        assert!(access.key.len() <= access.index.arity(), "a key is no longer than the index's rows");
        let part = run.part.take();
        let visit = ResolvedVisit::resolve(access, run);
        let key = visit.iter().flat_map(|v| &v.key).map(|k| match k {
            super::access::Key::Is(id) => *id,
            super::access::Key::Col(_) => unreachable!("a scan has constant keys"),
        });
        let key: Vec<TermId> = key.collect();
        let range = visit.as_ref().and_then(|v| v.range);
        let is_whole = range.is_none() && access.bounds.is_empty();
        assert!(part.is_none() || is_whole, "only a scan of all rows under its key is done in parts");
        let (part, shared) = match part {
            Some(Part::Range(low, high)) => (Some((low, high)), None),
            Some(Part::Pieces(shared)) => (None, Some(shared)),
            None => (None, None),
        };
        let all = match ranges(&access.bounds, run) {
            Some(list) if range.is_none() => list.into_iter().map(Some).collect(),
            _ => vec![part.or(range)],
        };
        Self {
            visit,
            key,
            left: all.iter().copied().collect(),
            all,
            current: None,
            shared,
            rows: run.query.batch.first,
            last: None,
            range: None,
            run: None,
        }
    }

    /// How it is shared, if it is.
    pub fn shared_note(&self) -> Option<SharedNote> {
        self.shared.as_ref().map(|shared| shared.note)
    }

    /// The key of its rows, where these are few: the rows under two or more columns.
    pub fn constant_key(&self) -> Option<(AnyIndex, Vec<u64>)> {
        let visit = self.visit.as_ref()?;
        (self.key.len() > 1).then(|| (visit.index, self.key.iter().map(|id| id.0).collect()))
    }

    fn fill(&mut self, run: &mut Run, columns: &mut Columns) -> Result<bool> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        loop {
            if self.current.is_none()
                && let Some(shared) = &self.shared
            {
                let Some(piece) = shared.next(&mut run.source)? else { return Ok(false) };
                self.current = Some(piece);
            }
            if self.current.is_none() {
                let Some(range) = self.left.pop_front() else { return Ok(false) };
                self.current = Some(run.source.scan(visit.index, &self.key, range));
                (self.range, self.run) = (range, None);
            }
            let scan = self.current.as_mut().expect("just set");
            if run.source.scan_next(scan, columns, self.rows)? {
                return Ok(true);
            }
            self.current = None;
        }
    }

    fn finish(&mut self, columns: Columns) -> Option<Batch> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        let rows = columns.rows;
        let mut cols = columns.cols.into_iter().skip(self.key.len()).collect::<Vec<_>>();
        let mut selected = visit.select(&cols, rows);
        if visit.merge_graphs {
            selected = visit.merge(&cols, selected, rows, |_, _| true);
            let list = selected.as_mut().expect("merging selects");
            let tuple = |r: u32| cols[..visit.width - 1].iter().map(|c| c[r as usize]).collect::<Vec<u64>>();
            if let (Some(first), Some(last)) = (list.first(), &self.last)
                && tuple(*first) == *last
            {
                list.remove(0);
            }
            if let Some(r) = list.last() {
                self.last = Some(tuple(*r));
            }
        }
        let mut lengths = None;
        if visit.copies != Copies::Count {
            let runs = visit.fold(&cols, selected, rows, |_, _| true);
            (selected, lengths) = (Some(runs.firsts), Some(runs.lengths));
        }
        let mut batch = match selected {
            None => {
                let taken = visit.new.iter().map(|c| ids(std::mem::take(&mut cols[*c]))).collect();
                Batch { cols: taken, rows }
            }
            Some(list) => {
                Batch { cols: visit.new.iter().map(|c| ids_at(&cols[*c], &list)).collect(), rows: list.len() }
            }
        };
        if let (Copies::Weigh, Some(lengths)) = (visit.copies, lengths) {
            batch.cols.push(ids(lengths));
        }
        batch.check();
        (batch.rows > 0).then_some(batch)
    }

    /// Whether rows are only counted: nothing is put out of them and nothing asked.
    fn only_counts(visit: &ResolvedVisit) -> bool {
        visit.copies != Copies::Count && visit.new.is_empty() && visit.checks.is_empty()
    }

    /// The rows of the next ranges as one row, by the counts of the index's inner nodes.
    fn count(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        while let Some(range) = self.left.pop_front() {
            run.check()?;
            let rows = run.source.count(visit.index, &self.key, range)?;
            if rows > 0 {
                let weight = (visit.copies == Copies::Weigh).then(|| vec![TermId(rows)]);
                return Ok(Some(Batch { cols: weight.into_iter().collect(), rows: 1 }));
            }
        }
        Ok(None)
    }

    /// After rows of one value in the first column: if there have been many, the scan goes on
    /// behind the last of them. The value, and the number of rows that it passes over.
    fn leap(&mut self, columns: &Columns, run: &mut Run) -> Result<Option<(u64, u64)>> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        if self.shared.is_some() || visit.new != [0] || !visit.checks_first_column() {
            return Ok(None);
        }
        let first = &columns.cols[self.key.len()];
        let Some(value) = first.last() else { return Ok(None) };
        let begin = first.partition_point(|v| v < value);
        let before = self.run.filter(|(of, _)| begin == 0 && of == value).map_or(0, |(_, rows)| rows);
        let read = before + (first.len() - begin) as u64;
        self.run = Some((*value, read));
        if read < LEAP_ROWS {
            return Ok(None);
        }
        let mut key = self.key.clone();
        key.push(TermId(*value));
        let all = run.source.count(visit.index, &key, None)?;
        let end = self.range.map_or(u64::MAX, |(_, end)| end);
        let next = value.checked_add(1).filter(|next| *next <= end);
        self.current = None;
        if let Some(next) = next {
            self.left.push_front(Some((next, end)));
        }
        self.rows = run.query.batch.first.max(LEAP_ROWS as usize);
        Ok(Some((*value, all.saturating_sub(read))))
    }
}

/// Adds rows to the last run of a batch that has weights, if it is of that value.
fn lengthen(batch: &mut Batch, value: u64, rows: u64) {
    if let [values, weights] = &mut batch.cols[..]
        && values.last() == Some(&TermId(value))
        && let Some(weight) = weights.last_mut()
    {
        weight.0 += rows;
    }
}

impl Operator for IndexScan {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let Some(visit) = &self.visit else { return Ok(None) };
        if Self::only_counts(visit) {
            return self.count(run);
        }
        let (arity, skip, wanted) = (visit.index.arity(), self.key.len(), visit.wanted);
        let folds = visit.copies;
        loop {
            run.check()?;
            let mut columns = Columns::with_wanted(arity, wanted << skip);
            if !self.fill(run, &mut columns)? {
                return Ok(None);
            }
            self.rows = (self.rows * 4).min(run.query.batch.most);
            let passed = if folds == Copies::Count { None } else { self.leap(&columns, run)? };
            if let Some(mut batch) = self.finish(columns) {
                if let (Some((value, rows)), Copies::Weigh) = (passed, folds) {
                    lengthen(&mut batch, value, rows);
                }
                return Ok(Some(batch));
            }
        }
    }

    fn reset(&mut self, _: &Batch) {
        assert!(self.shared.is_none(), "a shared scan is read once");
        self.left = self.all.iter().copied().collect();
        self.current = None;
        self.last = None;
    }
}
