//! A query's share of the memory budget.
//!
//! Operators that hold rows say how many bytes; over the share they spill, and what cannot spill ends the query with an error
//! that says so.

use super::Result;
use crate::error::QueryError;

/// Bytes held by the operators of one query.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    share: usize,
    used: usize,
}

impl MemoryShare {
    pub fn new(share_bytes: usize) -> Self {
        Self { share: share_bytes, used: 0 }
    }

    /// Takes bytes for an operator that cannot do with less.
    pub fn take(&mut self, bytes: usize, what: &'static str) -> Result<()> {
        self.used += bytes;
        if self.used > self.share {
            return Err(QueryError::Memory { share_bytes: self.share, what });
        }
        Ok(())
    }

    pub fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Whether an operator that already holds `held` should spill before it takes more: one operator leaves half of the
    /// share to the others.
    pub fn is_tight(&self, held: usize) -> bool {
        held > self.share / 2 || self.used > self.share / 4 * 3
    }
}
