//! OPTIONAL and EXISTS by seeds: the right side is run once per batch of the left.
//!
//! The seed holds the *distinct* combinations of the left's columns that the right side reads,
//! each with its number; the right side's rows come back with that number and are paired with
//! all left rows of it, in bounded batches: a right row that meets many left rows is paired
//! over several of them.
//!
//! A correlated right side reads these rows as its context, in any number of places. It may have
//! very many matches for each, of which EXISTS needs one. So it is run for a few left rows first
//! ([`Pace`]), and a run ends as soon as all of them have matched. A run that goes on finding
//! matches for rows that have one is ended, too: the rows without a match are put back, and tried
//! in a smaller run.

use hashbrown::HashTable;
use snowmelt_graph::{TermId, from_boolean as boolean};

use super::rows::{Queue, append, columns, hash_row, same_row};
use super::{Boxed, Operator, Result, Run};
use crate::algebra::{ExistsKind, Var};
use crate::exec::Batch;
use crate::exec::batch::gather;
use crate::plan::JoinKind;

pub(super) struct Nested {
    pub left: Boxed,
    pub right: Boxed,
    pub seed: Vec<usize>,
    pub context: Option<Var>,
    pub pace: Pace,
    /// stack of left batches with rows still to be done, from the row beside each on
    pub waiting: Vec<(Batch, usize)>,
    pub row: usize,
    pub kind: JoinKind,
    pub keep_left: Vec<u16>,
    pub keep_right: Vec<(u16, Option<u16>)>,
    pub current: Option<Current>,
    /// right rows that are not all paired yet
    pub pending: Option<Pending>,
    /// matched rows not yet given out
    pub matched: Batch,
    pub queue: Queue,
}

/// How many left rows a correlated right side is run for at once.
pub(super) struct Pace {
    rows: usize,
    /// right rows of this run
    found: usize,
}

/// Left rows of the first run.
const FIRST: usize = 64;

/// A run for several left rows is ended when it has found more right rows than this.
const FOUND: usize = 1 << 14;

impl Default for Pace {
    fn default() -> Self {
        Self { rows: FIRST, found: 0 }
    }
}

impl Pace {
    /// After a complete run: the next takes more left rows.
    fn faster(&mut self, most: usize) {
        *self = Self { rows: (self.rows * 4).clamp(1, most.max(1)), found: 0 };
    }

    /// After a run that was ended early: the next takes fewer.
    fn slower(&mut self) {
        *self = Self { rows: (self.rows / 4).max(1), found: 0 };
    }
}

/// A left batch whose right side is under way.
pub(super) struct Current {
    batch: Batch,
    /// left rows by seed number: `rows[starts[g]..starts[g + 1]]`
    rows: Vec<u32>,
    starts: Vec<u32>,
    matched: Vec<bool>,
    /// seed numbers without a match so far
    open: usize,
}

impl Current {
    /// The left rows of the seed numbers for which `wanted` holds, given whether they have a match.
    fn rows_where(&self, wanted: impl Fn(bool) -> bool) -> Vec<u32> {
        let numbers = (0..self.matched.len()).filter(|g| wanted(self.matched[*g]));
        let of = |g: usize| &self.rows[self.starts[g] as usize..self.starts[g + 1] as usize];
        numbers.flat_map(of).copied().collect()
    }
}

/// Right rows of a left join on their way to be paired.
pub(super) struct Pending {
    right: Batch,
    /// the next right row, and how many of its left rows are done
    row: usize,
    done: usize,
}

/// Numbers the distinct rows of some columns; the number of each row, and the first row of each
/// number.
pub(super) fn number(batch: &Batch, cols: &[usize]) -> (Vec<u32>, Vec<u32>) {
    let of = columns(batch, cols);
    let mut table: HashTable<u32> = HashTable::with_capacity(batch.rows.min(1 << 12));
    let mut firsts: Vec<u32> = Vec::new();
    let mut numbers = Vec::with_capacity(batch.rows);
    for row in 0..batch.rows {
        let hash = hash_row(&of, row);
        let found = table.find(hash, |g| same_row(&of, firsts[*g as usize] as usize, &of, row));
        numbers.push(match found {
            Some(g) => *g,
            None => {
                let g = firsts.len() as u32;
                firsts.push(row as u32);
                table.insert_unique(hash, g, |g| hash_row(&of, firsts[*g as usize] as usize));
                g
            }
        });
    }
    (numbers, firsts)
}

/// Rows by their numbers, of which there are so many: those of number g are
/// `rows[starts[g]..starts[g + 1]]`.
pub(super) fn grouped(numbers: &[u32], groups: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; groups + 1];
    numbers.iter().for_each(|g| starts[*g as usize + 1] += 1);
    for g in 0..groups {
        starts[g + 1] += starts[g];
    }
    assert_eq!(starts.last().map(|end| *end as usize), Some(numbers.len()), "each row has one number");
    let mut next = starts.clone();
    let mut rows = vec![0u32; numbers.len()];
    for (row, g) in numbers.iter().enumerate() {
        rows[next[*g as usize] as usize] = row as u32;
        next[*g as usize] += 1;
    }
    debug_assert_eq!(next[..groups], starts[1..], "each number has all of its rows");
    (rows, starts)
}

impl Nested {
    /// The next left rows.
    fn next_left(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if self.context.is_none() {
            return self.left.next(run);
        }
        let (batch, from) = match self.waiting.pop() {
            Some(waiting) => waiting,
            None => match self.left.next(run)? {
                Some(batch) => (batch, 0),
                None => return Ok(None),
            },
        };
        assert!(from < batch.rows, "a batch that waits has rows left");
        let to = (from + self.pace.rows).min(batch.rows);
        if from == 0 && to == batch.rows {
            return Ok(Some(batch));
        }
        let cols = batch.cols.iter().map(|c| c[from..to].to_vec()).collect();
        if to < batch.rows {
            self.waiting.push((batch, to));
        }
        Ok(Some(Batch { cols, rows: to - from }))
    }

    fn begin(&mut self, batch: Batch, run: &mut Run) {
        assert!(self.current.is_none() && self.pending.is_none(), "one left batch is worked on at a time");
        let (numbers, firsts) = number(&batch, &self.seed);
        let (rows, starts) = grouped(&numbers, firsts.len());
        let mut seed = batch.gather(&self.seed.iter().map(|c| *c as u16).collect::<Vec<_>>(), &firsts);
        // any ids will do: they are only carried through
        seed.cols.push((0..firsts.len() as u64).map(|g| TermId(g + 1)).collect());
        self.right.reset(&seed);
        if let Some(row) = self.context {
            run.contexts.insert(row, seed);
        }
        let (matched, open) = (vec![false; firsts.len()], firsts.len());
        self.current = Some(Current { batch, rows, starts, matched, open });
    }

    /// Notes which left rows have a match; those of a left join wait to be paired.
    fn take_right(&mut self, right: Batch) {
        assert!(self.pending.is_none(), "right rows are paired before more are asked for");
        let current = self.current.as_mut().expect("the right side runs for a left batch");
        self.pace.found += right.rows;
        for g in &right.cols[self.row] {
            let matched = &mut current.matched[g.0 as usize - 1];
            current.open -= usize::from(!std::mem::replace(matched, true));
        }
        debug_assert_eq!(
            current.open,
            current.matched.iter().filter(|matched| !**matched).count(),
            "seed numbers without a match are counted"
        );
        if self.kind == JoinKind::Left {
            self.pending = Some(Pending { right, row: 0, done: 0 });
        }
    }

    /// Pairs waiting right rows with their left rows, up to a batch of them.
    fn pair(&mut self, run: &Run) {
        let current = self.current.as_ref().expect("the right side runs for a left batch");
        let pending = self.pending.as_mut().expect("right rows wait");
        let (right, most) = (&pending.right, run.query.batch.most.max(1));
        let expected = (right.rows - pending.row).min(most);
        let (mut left_rows, mut right_rows) = (Vec::with_capacity(expected), Vec::with_capacity(expected));
        while pending.row < right.rows && left_rows.len() < most {
            let g = right.cols[self.row][pending.row].0 as usize - 1;
            let of = &current.rows[current.starts[g] as usize..current.starts[g + 1] as usize];
            let end = of.len().min(pending.done + (most - left_rows.len()));
            left_rows.extend_from_slice(&of[pending.done..end]);
            right_rows.resize(left_rows.len(), pending.row as u32);
            (pending.row, pending.done) =
                if end < of.len() { (pending.row, end) } else { (pending.row + 1, 0) };
        }
        let mut out = current.batch.gather(&self.keep_left, &left_rows);
        for (c, left) in &self.keep_right {
            out.cols.push(either(
                &right.cols[*c as usize],
                &right_rows,
                left.map(|l| (&current.batch.cols[l as usize][..], &left_rows[..])),
            ));
        }
        assert_eq!(left_rows.len(), right_rows.len(), "a pair has two rows");
        assert!(left_rows.len() <= most, "{} pairs are more than {most}", left_rows.len());
        if pending.row == right.rows {
            self.pending = None;
        }
        append(&mut self.matched, out);
        if self.matched.rows >= run.query.batch.first {
            self.queue.push(std::mem::take(&mut self.matched), run);
        }
    }

    /// Whether the right side can add nothing: every left row has a match, and no pairs are put
    /// out.
    fn is_settled(&self) -> bool {
        self.kind != JoinKind::Left && self.current.as_ref().is_some_and(|c| c.open == 0)
    }

    /// The output of the left rows, once all matches are known.
    fn finish(&mut self, run: &Run) {
        assert!(self.pending.is_none(), "all right rows are paired");
        let current = self.current.take().expect("the right side ran for a left batch");
        self.pace.faster(run.query.batch.most);
        self.give(&current, |_| true, run);
    }

    /// Whether this run has found so many rows that left rows without a match are better tried in a
    /// smaller one.
    fn is_late(&self) -> bool {
        let several = self.current.as_ref().is_some_and(|c| c.open > 0 && c.matched.len() > 1);
        several && self.context.is_some() && self.kind != JoinKind::Left && self.pace.found > FOUND
    }

    /// Ends a run: the left rows with a match are done, the others wait.
    fn put_back(&mut self, run: &Run) {
        let current = self.current.take().expect("the right side runs for a left batch");
        self.pace.slower();
        self.give(&current, |matched| matched, run);
        let rows = current.rows_where(|matched| !matched);
        assert!(!rows.is_empty(), "a run is ended early only for rows that have no match yet");
        let all: Vec<u16> = (0..current.batch.cols.len() as u16).collect();
        self.waiting.push((current.batch.gather(&all, &rows), 0));
    }

    /// Gives out the left rows that are wanted, of those whose match or lack of one is `known`.
    fn give(&mut self, current: &Current, known: impl Fn(bool) -> bool, run: &Run) {
        let wanted = match self.kind {
            JoinKind::Exists(ExistsKind::Semi) => Some(true),
            JoinKind::Exists(ExistsKind::Mark(_)) => None,
            _ => Some(false),
        };
        let of = |matched: bool| known(matched) && wanted.is_none_or(|w| w == matched);
        let mut rows = current.rows_where(|matched| matched && of(matched));
        let with_match = rows.len();
        rows.extend(current.rows_where(|matched| !matched && of(matched)));
        let mut out = current.batch.gather(&self.keep_left, &rows);
        if wanted.is_none() {
            let mut marks = vec![boolean(true); with_match];
            marks.resize(rows.len(), boolean(false));
            out.cols.push(marks);
        }
        for (_, left) in &self.keep_right {
            out.cols.push(match left {
                Some(l) => gather(&current.batch.cols[*l as usize], &rows),
                None => vec![TermId::UNDEF; rows.len()],
            });
        }
        // together with the last matched rows: a batch each would make all operators above run
        // twice
        let mut whole = std::mem::take(&mut self.matched);
        append(&mut whole, out);
        self.queue.push(whole, run);
    }
}

/// The entries of a column; where unbound, those of another.
pub(super) fn either(col: &[TermId], rows: &[u32], other: Option<(&[TermId], &[u32])>) -> Vec<TermId> {
    let mut out = gather(col, rows);
    if let Some((other, at)) = other {
        for (id, r) in out.iter_mut().zip(at) {
            if id.is_undef() {
                *id = other[*r as usize];
            }
        }
    }
    out
}

impl Operator for Nested {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            run.check()?;
            if self.current.is_none() {
                let Some(batch) = self.next_left(run)? else { return Ok(None) };
                self.begin(batch, run);
            }
            if self.pending.is_some() {
                self.pair(run);
                continue;
            }
            if self.is_settled() {
                self.finish(run);
                continue;
            }
            if self.is_late() {
                self.put_back(run);
                continue;
            }
            match self.right.next(run)? {
                Some(batch) => self.take_right(batch),
                None => self.finish(run),
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.left.reset(seed);
        self.waiting.clear();
        self.current = None;
        self.pending = None;
        self.matched = Batch::default();
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_get_one_number() {
        let batch =
            Batch::from_cols(vec![[5, 6, 5, 7].map(TermId).to_vec(), [1, 1, 1, 2].map(TermId).to_vec()]);
        assert_eq!(number(&batch, &[0, 1]), (vec![0, 1, 0, 2], vec![0, 1, 3]));
        // no column at all: every row reads the same
        assert_eq!(number(&batch, &[]), (vec![0, 0, 0, 0], vec![0]));
    }
}
