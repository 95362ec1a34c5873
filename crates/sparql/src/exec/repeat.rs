//! Rows that stand for several come as often as they count, up to a number of which more are of
//! no use.

use super::group::products;
use super::rows::Queue;
use super::{Boxed, Operator, Result, Run};

/// Rows that are repeated at once.
const ROWS_AT_ONCE: usize = 1 << 16;

pub(super) struct Repeat {
    pub input: Boxed,
    pub keep: Vec<u16>,
    pub weights: Vec<usize>,
    pub most: u64,
    pub queue: Queue,
}

impl Operator for Repeat {
    fn next(&mut self, run: &mut Run) -> Result<Option<super::Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            run.check()?;
            let Some(batch) = self.input.next(run)? else { return Ok(None) };
            let mut rows: Vec<u32> = Vec::with_capacity(batch.rows);
            for (row, weight) in (0..).zip(products(&batch, &self.weights)?) {
                rows.extend(std::iter::repeat_n(row, weight.min(self.most) as usize));
                if rows.len() >= ROWS_AT_ONCE {
                    self.queue.push(batch.gather(&self.keep, &rows), run);
                    rows.clear();
                }
            }
            self.queue.push(batch.gather(&self.keep, &rows), run);
        }
    }

    fn reset(&mut self, seed: &super::Batch) {
        self.input.reset(seed);
        self.queue.clear();
    }
}
