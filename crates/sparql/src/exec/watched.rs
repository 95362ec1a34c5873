//! Operators whose rows are counted, so that their plan can be given up: see [`super::watch`].

use super::watch::WatchedJoin;
use super::{Boxed, Operator, Result, Run};
use crate::exec::Batch;
use crate::plan::PlanNode;

/// Counts the rows of a join.
pub(super) struct Watched {
    inner: Boxed,
    of: WatchedJoin,
}

impl Watched {
    /// The operator, watched if its rows are those of a join.
    pub fn around(inner: Boxed, node: &PlanNode, run: &Run) -> Boxed {
        match node.join {
            Some(join) if !run.query.watch.is_off() => {
                let of = WatchedJoin { id: node.id, join, expected: node.rows };
                Box::new(Self { inner, of })
            }
            _ => inner,
        }
    }
}

impl Operator for Watched {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let batch = self.inner.next(run)?;
        if let Some(batch) = &batch
            && !run.query.watch.is_off()
        {
            run.query.watch.count(&self.of, batch.rows)?;
        }
        Ok(batch)
    }

    fn reset(&mut self, seed: &Batch) {
        self.inner.reset(seed);
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }
}
