//! Checks of what each operator hands on; around every operator in builds with debug
//! assertions.

use super::{Boxed, Operator, Result, Run};
use crate::exec::Batch;

pub(super) struct Checked {
    pub inner: Boxed,
    pub id: usize,
    /// columns that the plan says the operator puts out
    pub columns: usize,
}

impl Operator for Checked {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let batch = self.inner.next(run)?;
        if let Some(batch) = &batch {
            assert!(batch.rows > 0, "operator {} gives an empty batch", self.id);
            assert_eq!(batch.cols.len(), self.columns, "operator {} gives other columns", self.id);
            let are_whole = batch.cols.iter().all(|col| col.len() == batch.rows);
            assert!(are_whole, "operator {} gives columns of other lengths than its rows", self.id);
        }
        assert!(run.part.is_none(), "operator {} leaves the part to another scan", self.id);
        Ok(batch)
    }

    fn reset(&mut self, seed: &Batch) {
        assert!(seed.rows > 0, "operator {} is seeded with no row", self.id);
        seed.check();
        self.inner.reset(seed);
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }
}
