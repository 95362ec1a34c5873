//! Operators row by row: filter, extend, project, slice.

use snowmelt_graph::TermId;

use super::{Boxed, Operator, Result, Run};
use crate::exec::Batch;
use crate::expr::Expr;

/// Rows whose conditions all hold.
pub(super) struct Filter {
    pub input: Boxed,
    pub conditions: Vec<Expr>,
    pub keep: Vec<u16>,
}

impl Operator for Filter {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        while let Some(mut batch) = self.input.next(run)? {
            run.check()?;
            for condition in &self.conditions {
                let pass =
                    condition.filter(&mut run.terms, &mut run.source.session, &batch.cols, batch.rows)?;
                assert!(pass.len() <= batch.rows, "a condition makes no rows");
                batch.retain(&pass);
                if batch.rows == 0 {
                    break;
                }
            }
            if batch.rows > 0 {
                return Ok(Some(batch.project(&self.keep)));
            }
        }
        Ok(None)
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
    }

    fn is_in_order(&self) -> bool {
        self.input.is_in_order()
    }
}

/// One more column, computed.
pub(super) struct Extend {
    pub input: Boxed,
    pub expr: Expr,
    pub keep: Vec<u16>,
    pub stored: bool,
}

impl Operator for Extend {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(run)? else { return Ok(None) };
        run.check()?;
        let mut col =
            self.expr.eval_column(&mut run.terms, &mut run.source.session, &batch.cols, batch.rows)?;
        if self.stored {
            run.terms.to_stored(&mut run.source.session, &mut col)?;
        }
        assert_eq!(col.len(), batch.rows, "an expression has a value for each row");
        let mut batch = batch.project(&self.keep);
        batch.cols.push(col);
        Ok(Some(batch))
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
    }

    fn is_in_order(&self) -> bool {
        self.input.is_in_order()
    }
}

/// Columns in another order, some unbound.
pub(super) struct Project {
    pub input: Boxed,
    pub cols: Vec<Option<u16>>,
}

impl Operator for Project {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(run)? else { return Ok(None) };
        Ok(Some(rearrange(batch, &self.cols)))
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
    }

    fn is_in_order(&self) -> bool {
        self.input.is_in_order()
    }
}

/// Columns by position, unbound where there is none.
pub(super) fn rearrange(mut batch: Batch, cols: &[Option<u16>]) -> Batch {
    debug_assert!(cols.iter().flatten().all(|c| usize::from(*c) < batch.cols.len()), "a column of the batch");
    let mut out = Vec::with_capacity(cols.len());
    for (i, c) in cols.iter().enumerate() {
        out.push(match c {
            None => vec![TermId::UNDEF; batch.rows],
            Some(c) if cols[i + 1..].contains(&Some(*c)) => batch.cols[*c as usize].clone(),
            Some(c) => std::mem::take(&mut batch.cols[*c as usize]),
        });
    }
    Batch { cols: out, rows: batch.rows }
}

/// OFFSET and LIMIT. Asks no more of its input than it needs.
pub(super) struct Slice {
    pub input: Boxed,
    pub offset: u64,
    pub limit: Option<u64>,
    pub skipped: u64,
    pub given: u64,
}

impl Operator for Slice {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if self.limit.is_some_and(|l| self.given >= l) {
                return Ok(None);
            }
            let Some(mut batch) = self.input.next(run)? else { return Ok(None) };
            let skip = (self.offset - self.skipped).min(batch.rows as u64);
            self.skipped += skip;
            let left = self.limit.map_or(u64::MAX, |l| l - self.given);
            let take = (batch.rows as u64 - skip).min(left);
            if take == 0 {
                continue;
            }
            if take < batch.rows as u64 {
                let rows: Vec<u32> = (skip as u32..(skip + take) as u32).collect();
                batch.retain(&rows);
            }
            assert!(self.skipped == self.offset, "rows are given once all of OFFSET are skipped");
            self.given += take;
            assert!(self.limit.is_none_or(|limit| self.given <= limit), "no more rows than LIMIT are given");
            assert_eq!(batch.rows as u64, take, "the rows that are counted are those that are given");
            return Ok(Some(batch));
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.skipped = 0;
        self.given = 0;
    }
}
