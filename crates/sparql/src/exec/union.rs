//! UNION: branch after branch; with an input, all branches for each of its batches.

use super::extend::rearrange;
use super::{Boxed, Operator, Result, Run};
use crate::exec::Batch;

pub(super) struct Union {
    pub input: Option<Boxed>,
    pub branches: Vec<(Boxed, Vec<Option<u16>>)>,
    pub at: usize,
    /// with an input: whether the branches have a seed
    pub seeded: bool,
}

impl Operator for Union {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            run.check()?;
            if let Some(input) = &mut self.input
                && !self.seeded
            {
                let Some(batch) = input.next(run)? else { return Ok(None) };
                self.branches.iter_mut().for_each(|(b, _)| b.reset(&batch));
                self.seeded = true;
                self.at = 0;
            }
            while let Some((branch, cols)) = self.branches.get_mut(self.at) {
                if let Some(batch) = branch.next(run)? {
                    return Ok(Some(rearrange(batch, cols)));
                }
                self.at += 1;
            }
            if self.input.is_none() {
                return Ok(None);
            }
            self.seeded = false;
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.at = 0;
        self.seeded = false;
        match &mut self.input {
            Some(input) => input.reset(seed),
            // independent branches begin again
            None => self.branches.iter_mut().for_each(|(b, _)| b.reset(seed)),
        }
    }
}
