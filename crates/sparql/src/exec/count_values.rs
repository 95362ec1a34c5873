//! COUNT(DISTINCT ?v) of values that come in order: no value is kept but the one before.

use snowmelt_graph::TermId;

use super::{Boxed, Operator, Result, Run};
use crate::exec::Batch;
use crate::value::Value;

pub(super) struct CountValues {
    pub input: Boxed,
    pub done: bool,
}

impl Operator for CountValues {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let (mut values, mut before) = (0u64, TermId::UNDEF);
        while let Some(batch) = self.input.next(run)? {
            run.check()?;
            for value in &batch.cols[0] {
                debug_assert!(before <= *value, "values come in order");
                values += u64::from(*value != before);
                before = *value;
            }
        }
        let count = run.terms.push_kept(&Value::Integer(values.into()));
        run.terms.fault()?;
        Ok(Some(Batch { cols: vec![vec![count]], rows: 1 }))
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.done = false;
    }
}
