//! OPTIONAL and EXISTS by seeds: the right side is run once per batch of the left.
//!
//! The seed holds the *distinct* combinations of the left's columns that the right side reads, each with its number; the right
//! side's rows come back with that number and are paired with all left rows of it, in bounded batches: a right row that meets many left
//! rows is paired over several of them.

use super::rows::{Queue, append, columns, hash_row, same_row};
use super::{Boxed, Operator, Result, Run};
use crate::algebra::ExistsKind;
use crate::batch::{Batch, gather};
use crate::plan::JoinKind;
use hashbrown::HashTable;
use snowmelt_graph::{TermId, from_boolean as boolean};

pub(super) struct Nested {
    pub left: Boxed,
    pub right: Boxed,
    pub seed: Vec<usize>,
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

/// Right rows of a left join on their way to be paired.
pub(super) struct Pending {
    right: Batch,
    /// the next right row, and how many of its left rows are done
    row: usize,
    done: usize,
}

/// Numbers the distinct rows of some columns; the number of each row, and the first row of each number.
fn number(batch: &Batch, cols: &[usize]) -> (Vec<u32>, Vec<u32>) {
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

impl Nested {
    fn begin(&mut self, batch: Batch) {
        let (numbers, firsts) = number(&batch, &self.seed);
        let mut starts = vec![0u32; firsts.len() + 1];
        numbers.iter().for_each(|g| starts[*g as usize + 1] += 1);
        for g in 0..firsts.len() {
            starts[g + 1] += starts[g];
        }
        let mut next = starts.clone();
        let mut rows = vec![0u32; batch.rows];
        for (row, g) in numbers.iter().enumerate() {
            rows[next[*g as usize] as usize] = row as u32;
            next[*g as usize] += 1;
        }
        let mut seed = batch.gather(&self.seed.iter().map(|c| *c as u16).collect::<Vec<_>>(), &firsts);
        // any ids will do: they are only carried through
        seed.cols.push((0..firsts.len() as u64).map(|g| TermId(g + 1)).collect());
        self.right.reset(&seed);
        let (matched, open) = (vec![false; firsts.len()], firsts.len());
        self.current = Some(Current { batch, rows, starts, matched, open });
    }

    /// Notes which left rows have a match; those of a left join wait to be paired.
    fn take_right(&mut self, right: Batch) {
        let current = self.current.as_mut().expect("the right side runs for a left batch");
        for g in &right.cols[self.row] {
            let matched = &mut current.matched[g.0 as usize - 1];
            current.open -= usize::from(!std::mem::replace(matched, true));
        }
        if self.kind == JoinKind::Left {
            self.pending = Some(Pending { right, row: 0, done: 0 });
        }
    }

    /// Pairs waiting right rows with their left rows, up to a batch of them.
    fn pair(&mut self, run: &Run) {
        let current = self.current.as_ref().expect("the right side runs for a left batch");
        let pending = self.pending.as_mut().expect("right rows wait");
        let (right, most) = (&pending.right, run.batch.most.max(1));
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
        if pending.row == right.rows {
            self.pending = None;
        }
        append(&mut self.matched, out);
        if self.matched.rows >= run.batch.first {
            self.queue.push(std::mem::take(&mut self.matched), run);
        }
    }

    /// Whether the right side can add nothing: a match is known for every left row, and none is paired.
    fn is_settled(&self) -> bool {
        self.kind != JoinKind::Left && self.current.as_ref().is_some_and(|c| c.open == 0)
    }

    /// What the left rows become once all matches are known.
    fn finish(&mut self, run: &Run) {
        let current = self.current.take().expect("the right side ran for a left batch");
        let wanted = match self.kind {
            JoinKind::Exists(ExistsKind::Semi) => Some(true),
            JoinKind::Exists(ExistsKind::Mark(_)) => None,
            _ => Some(false),
        };
        let mut rows: Vec<u32> = Vec::new();
        let mut marks = Vec::new();
        for g in 0..current.matched.len() {
            if wanted.is_none_or(|w| w == current.matched[g]) {
                rows.extend(&current.rows[current.starts[g] as usize..current.starts[g + 1] as usize]);
                marks.resize(rows.len(), boolean(current.matched[g]));
            }
        }
        let mut out = current.batch.gather(&self.keep_left, &rows);
        if wanted.is_none() {
            out.cols.push(marks);
        }
        for (_, left) in &self.keep_right {
            out.cols.push(match left {
                Some(l) => gather(&current.batch.cols[*l as usize], &rows),
                None => vec![TermId::UNDEF; rows.len()],
            });
        }
        // together with the last matched rows: a batch each would make all operators above run twice
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
                let Some(batch) = self.left.next(run)? else { return Ok(None) };
                self.begin(batch);
            }
            if self.pending.is_some() {
                self.pair(run);
                continue;
            }
            if self.is_settled() {
                self.finish(run);
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
