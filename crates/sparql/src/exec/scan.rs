//! AnyIndex scan: the rows under constant leading columns, in index order; or piece after piece of
//! a scan that is shared.

use std::collections::VecDeque;
use std::sync::Arc;

use snowmelt_graph::{AnyIndex, Columns, Scan, TermId};

use super::access::{KeyedTriple, ResolvedVisit, ids, ids_at};
use super::id_ranges::{IdRange, id_ranges, within};
use super::run::Part;
use super::shared::{SharedNote, SharedScan};
use super::{Operator, Result, Run};
use crate::exec::Batch;
use crate::expr::Expr;
use crate::plan::{Access, Copies};

pub(super) struct IndexScan {
    visit: Option<ResolvedVisit>,
    key: Vec<TermId>,
    /// its parts; those that are left
    all: Vec<Span>,
    left: VecDeque<Span>,
    steps: Option<Steps>,
    /// conditions on a column, of rows in spans that are not sure
    conditions: Option<(usize, Vec<Expr>)>,
    /// the one that is scanned
    span: Span,
    current: Option<Scan>,
    /// the source of its pieces, if it is shared
    shared: Option<Arc<SharedScan>>,
    rows: usize,
    /// the row before, where graphs are merged
    last: Option<KeyedTriple>,
    /// the value in the first column of the last row read of it, and how many rows have it
    run: Option<(u64, u64)>,
    /// whether the one row that says that there are rows was given out
    is_over: bool,
}

/// A part of a scan: a range of the column after a key.
#[derive(Clone)]
struct Span {
    key: Vec<TermId>,
    range: Option<(u64, u64)>,
    /// all its rows satisfy the conditions
    is_sure: bool,
}

/// Visits to each value of the column after the key, and of its rows to those in ranges of the next
/// column.
struct Steps {
    ranges: Vec<IdRange>,
    /// the values
    within: (u64, u64),
    /// where the next one is sought; `None`: behind the last
    next: Option<u64>,
}

/// The next part of a scan.
enum Next {
    Scanned,
    /// of rows that are only counted: as one row
    Counted(Batch),
    Empty,
    End,
}

/// A run of equal rows that is worth a leap to its end: about as many are read while the next
/// value is found and the rows before it are counted.
const LEAP_ROWS: u64 = 512;

impl IndexScan {
    pub fn new(access: &Access, run: &mut Run) -> Result<Self> {
        assert!(access.key.len() <= access.index.arity(), "a key is no longer than the index's rows");
        let part = run.part.take();
        let mut visit = ResolvedVisit::resolve(access, run);
        let key = visit.iter().flat_map(|v| &v.key).map(|k| match k {
            super::access::Key::Is(id) => *id,
            super::access::Key::Col(_) => unreachable!("a scan has constant keys"),
        });
        let key: Vec<TermId> = key.collect();
        let graph = visit.as_ref().and_then(|v| v.range);
        let (part, shared) = match part {
            Some(Part::Range(low, high)) => (Some((low, high)), None),
            Some(Part::Pieces(shared)) => (None, Some(shared)),
            None => (None, None),
        };
        assert!(graph.is_none() || part.is_none(), "a scan of one graph is not done in parts");
        assert!(access.bounds.is_none() || (graph.is_none() && shared.is_none()), "bounds are a scan's own");
        let (mut all, mut steps, mut conditions) = (Vec::new(), None, None);
        match (&access.bounds, &mut visit) {
            (Some(bounds), Some(visit)) => {
                let ranges = id_ranges(&bounds.conditions, bounds.var, run)?;
                if ranges.iter().any(|range| !range.is_sure) {
                    let compile = |condition| run.compile(condition, &[bounds.var]);
                    let compiled: Result<_> = bounds.conditions.iter().map(compile).collect();
                    conditions = Some((usize::from(bounds.column), compiled?));
                    visit.wanted |= 1 << bounds.column;
                }
                let within_part = part.unwrap_or((0, u64::MAX));
                if bounds.column == 0 {
                    all =
                        within(&ranges, within_part).into_iter().map(|range| Span::of(&key, range)).collect();
                } else {
                    steps = Some(Steps { ranges, within: within_part, next: Some(within_part.0) });
                }
            }
            _ => all.push(Span { key: key.clone(), range: part.or(graph), is_sure: true }),
        }
        Ok(Self {
            visit,
            span: Span { key: key.clone(), range: None, is_sure: true },
            key,
            left: all.iter().cloned().collect(),
            all,
            steps,
            conditions,
            current: None,
            shared,
            rows: run.query.batch.first,
            last: None,
            run: None,
            is_over: false,
        })
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

    /// The next part, which is not scanned yet.
    fn next_span(&mut self, run: &mut Run) -> Result<Option<Span>> {
        loop {
            if let Some(span) = self.left.pop_front() {
                return Ok(Some(span));
            }
            let Some(steps) = &mut self.steps else { return Ok(None) };
            let Some(next) = steps.next else { return Ok(None) };
            run.check()?;
            let index = self.visit.as_ref().expect("asked for with a visit").index;
            let mut scan = run.source.scan(index, &self.key, Some((next, steps.within.1)));
            let mut row = Columns::with_wanted(index.arity(), 1 << self.key.len());
            let is_found = run.source.scan_next(&mut scan, &mut row, 1)?;
            let Some(value) = row.cols[self.key.len()].first().copied().filter(|_| is_found) else {
                steps.next = None;
                return Ok(None);
            };
            steps.next = value.checked_add(1).filter(|next| *next <= steps.within.1);
            let mut key = self.key.clone();
            key.push(TermId(value));
            self.left.extend(steps.ranges.iter().map(|range| Span::of(&key, *range)));
        }
    }

    /// Goes on to the next part: it is scanned, or, where its rows are only counted, one row.
    fn advance(&mut self, run: &mut Run) -> Result<Next> {
        if let Some(shared) = &self.shared {
            self.current = shared.next(&mut run.source)?;
            return Ok(if self.current.is_some() { Next::Scanned } else { Next::End });
        }
        let Some(span) = self.next_span(run)? else { return Ok(Next::End) };
        let visit = self.visit.as_ref().expect("asked for with a visit");
        if self.only_counts(visit) && span.is_sure {
            return Ok(self.count(&span, run)?.map_or(Next::Empty, Next::Counted));
        }
        self.current = Some(run.source.scan(visit.index, &span.key, span.range));
        (self.span, self.run) = (span, None);
        Ok(Next::Scanned)
    }

    /// The rows of a selection that satisfy the conditions on a column.
    fn asked(&self, cols: &[Vec<u64>], rows: usize, run: &mut Run) -> Result<Option<Vec<u32>>> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        let selected = visit.select(cols, rows);
        let (false, Some((column, conditions))) = (self.span.is_sure, &self.conditions) else {
            return Ok(selected);
        };
        let mut selected = selected.unwrap_or_else(|| (0..rows as u32).collect());
        for condition in conditions {
            let of = [ids_at(&cols[*column], &selected)];
            let pass = condition.filter(&mut run.terms, &mut run.source.session, &of, selected.len())?;
            selected = pass.into_iter().map(|row| selected[row as usize]).collect();
        }
        Ok(Some(selected))
    }

    fn finish(&mut self, columns: Columns, run: &mut Run) -> Result<Option<Batch>> {
        let rows = columns.rows;
        let mut cols = columns.cols.into_iter().skip(self.key.len()).collect::<Vec<_>>();
        let mut selected = self.asked(&cols, rows, run)?;
        let visit = self.visit.as_ref().expect("asked for with a visit");
        selected = visit.merge(&cols, selected, rows, |_| 0, &mut self.last);
        let mut lengths = None;
        if visit.copies != Copies::Count {
            let runs = visit.fold(&cols, selected, rows, None);
            (selected, lengths) = (runs.firsts, Some(runs.lengths));
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
        Ok((batch.rows > 0).then_some(batch))
    }

    /// Whether rows of a part are only counted: nothing is put out of them but the value that the
    /// part is of, and nothing asked.
    fn only_counts(&self, visit: &ResolvedVisit) -> bool {
        let is_known = visit.new.is_empty() || (self.steps.is_some() && visit.new == [0]);
        visit.copies != Copies::Count && is_known && visit.checks.is_empty()
    }

    /// A part as one row, by the counts of the index's inner nodes; `None`: it is empty.
    fn count(&self, span: &Span, run: &mut Run) -> Result<Option<Batch>> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        run.check()?;
        let rows = run.source.count(visit.index, &span.key, span.range)?;
        if rows == 0 {
            return Ok(None);
        }
        let value = visit.new.first().map(|_| *span.key.last().expect("a value was visited"));
        let weight = (visit.copies == Copies::Weigh).then_some(TermId(rows));
        Ok(Some(Batch { cols: value.into_iter().chain(weight).map(|id| vec![id]).collect(), rows: 1 }))
    }

    /// All rows as one, where nothing is put out of them: of batches of such rows, each would
    /// meet all rows that are joined.
    fn total(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let mut total: u64 = 0;
        while let Some(batch) = self.next_batch(run)? {
            for weight in batch.cols.iter().flatten() {
                total = total.saturating_add(weight.0);
            }
        }
        Ok((total > 0).then(|| Batch::from_cols(vec![vec![TermId(total)]])))
    }

    /// One row, if there is any.
    fn whether_any(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(None);
        }
        Ok(self.next_batch(run)?.map(|_| Batch::unit()))
    }

    fn next_batch(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        let (arity, skip, wanted, folds) = (visit.index.arity(), self.key.len(), visit.wanted, visit.copies);
        loop {
            run.check()?;
            let Some(scan) = &mut self.current else {
                match self.advance(run)? {
                    Next::Counted(batch) => return Ok(Some(batch)),
                    Next::End => return Ok(None),
                    Next::Scanned | Next::Empty => continue,
                }
            };
            let mut columns = Columns::with_wanted(arity, wanted << skip);
            if !run.source.scan_next(scan, &mut columns, self.rows)? {
                self.current = None;
                continue;
            }
            self.rows = (self.rows * 4).min(run.query.batch.most);
            let passed = if folds == Copies::Count { None } else { self.leap(&columns, run)? };
            if let Some(mut batch) = self.finish(columns, run)? {
                if let (Some((value, rows)), Copies::Weigh) = (passed, folds) {
                    lengthen(&mut batch, value, rows);
                }
                return Ok(Some(batch));
            }
        }
    }

    /// After rows of one value in the first column: if there have been many, the scan goes on
    /// behind the last of them. The value, and the number of rows that it passes over.
    fn leap(&mut self, columns: &Columns, run: &mut Run) -> Result<Option<(u64, u64)>> {
        let visit = self.visit.as_ref().expect("asked for with a visit");
        let is_alone = self.shared.is_none() && self.steps.is_none();
        if !is_alone || visit.new != [0] || !visit.checks_first_column() {
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
        let end = self.span.range.map_or(u64::MAX, |(_, end)| end);
        let next = value.checked_add(1).filter(|next| *next <= end);
        self.current = None;
        if let Some(next) = next {
            self.left.push_front(Span { range: Some((next, end)), ..self.span.clone() });
        }
        self.rows = run.query.batch.first.max(LEAP_ROWS as usize);
        Ok(Some((*value, all.saturating_sub(read))))
    }
}

impl Span {
    fn of(key: &[TermId], range: IdRange) -> Self {
        Self { key: key.to_vec(), range: Some((range.low, range.high)), is_sure: range.is_sure }
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
        match visit.copies {
            Copies::Weigh if visit.new.is_empty() => self.total(run),
            Copies::Merge if visit.new.is_empty() => self.whether_any(run),
            _ => self.next_batch(run),
        }
    }

    fn reset(&mut self, _: &Batch) {
        assert!(self.shared.is_none(), "a shared scan is read once");
        self.left = self.all.iter().cloned().collect();
        if let Some(steps) = &mut self.steps {
            steps.next = Some(steps.within.0);
        }
        self.current = None;
        self.last = None;
        self.is_over = false;
    }

    fn is_in_order(&self) -> bool {
        self.shared.is_none()
    }
}
