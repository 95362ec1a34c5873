//! A query's share of the memory budget.
//!
//! Operators that hold rows say how many bytes. The bytes are reserved from the database's one budget, in steps; a query over its
//! share (or a budget that is used up) makes operators spill, and what cannot spill ends the query with an error that says so.

use super::Result;
use crate::error::QueryError;
use snowmelt_graph::{MemoryBudget, Reservation};

/// Reserved at once, so that small queries ask the shared budget seldom.
const STEP_BYTES: usize = 1 << 20;

/// What every query may hold without asking.
const FREE_BYTES: usize = 128 << 10;

/// Bytes held by the operators of one query.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    share: usize,
    used: usize,
    budget: MemoryBudget,
    reserved: Option<Reservation>,
}

impl MemoryShare {
    /// At most `share_bytes` of a budget.
    pub fn new(share_bytes: usize, budget: MemoryBudget) -> Self {
        Self { share: share_bytes, used: 0, budget, reserved: None }
    }

    /// The share of one of several threads of the query.
    pub fn part(&self, threads: usize) -> Self {
        Self::new(self.share / threads, self.budget.clone())
    }

    fn reserved_bytes(&self) -> usize {
        self.reserved.as_ref().map_or(0, |r| r.bytes() as usize) + FREE_BYTES
    }

    /// Takes bytes for an operator that cannot do with less.
    pub fn take(&mut self, bytes: usize, what: &'static str) -> Result<()> {
        self.used += bytes;
        let over = || QueryError::Memory { share_bytes: self.share, what };
        if self.used > self.share {
            return Err(over());
        }
        let missing = self.used.saturating_sub(self.reserved_bytes());
        if missing > 0 {
            let step = missing.next_multiple_of(STEP_BYTES) as u64;
            let grown = match &mut self.reserved {
                Some(reserved) => reserved.grow("a query", step),
                none => self.budget.reserve("a query", step).map(|r| *none = Some(r)),
            };
            if grown.is_err() {
                return Err(QueryError::Memory { share_bytes: self.share, what });
            }
        }
        Ok(())
    }

    /// Gives bytes back.
    pub fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
        let spare = self.reserved_bytes().saturating_sub(self.used + STEP_BYTES);
        if let Some(reserved) = &mut self.reserved {
            reserved.shrink(spare as u64 / STEP_BYTES as u64 * STEP_BYTES as u64);
        }
    }

    /// Whether an operator that holds `held` bytes, some of them not yet taken, should spill before it takes more: one operator
    /// leaves half of the share to the others, and all together a step of the budget.
    pub fn is_tight(&self, held: usize) -> bool {
        let beyond = (self.used + STEP_BYTES).saturating_sub(self.reserved_bytes());
        held > self.share / 2
            || self.used > self.share / 4 * 3
            || (held > FREE_BYTES && beyond as u64 > self.budget.free())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_gets_back_what_queries_took() {
        let budget = MemoryBudget::new(4 << 20);
        let mut share = MemoryShare::new(usize::MAX, budget.clone());
        share.take(FREE_BYTES, "test").unwrap();
        assert_eq!(budget.used(), 0);
        share.take(2 << 20, "test").unwrap();
        assert_eq!(budget.used(), 2 << 20);
        assert!(share.take(3 << 20, "test").is_err(), "more than the budget has");
        share.give_back(5 << 20);
        assert!(budget.used() <= 1 << 20);
        drop(share);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_share_is_a_bound_of_its_own() {
        let mut share = MemoryShare::new(1000, MemoryBudget::new(1 << 30));
        assert!(share.is_tight(501) && !share.is_tight(500));
        assert!(matches!(share.take(1001, "test"), Err(QueryError::Memory { share_bytes: 1000, .. })));
    }
}
