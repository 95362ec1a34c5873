//! Statistics that have grown old are made again, and committed.

use std::sync::Arc;

use crate::database::GraphDatabase;
use crate::database::state::GraphState;
use crate::error::Result;

/// Statistics of fewer quads are old only once so many have changed.
const LEAST_CHANGED: u64 = 10_000;

impl GraphState {
    /// Whether more than a fifth of the quads have changed since the statistics were made.
    pub fn has_old_statistics(&self) -> bool {
        let age = if self.statistics.is_empty() { self.changed } else { self.statistics.age() };
        age > LEAST_CHANGED.max(self.quads() / 5)
    }
}

impl GraphDatabase {
    /// Makes statistics anew and commits them; false if `go_on` said no before, which is asked now
    /// and then. Reads three indexes whole, and holds no lock meanwhile.
    ///
    /// # Errors
    /// Fails if an index cannot be read, or the database not be written.
    pub fn renew_statistics(self: &Arc<Self>, go_on: &(dyn Fn() -> bool + Sync)) -> Result<bool> {
        let before = self.state()?.changed();
        let Some(mut made) = self.make_statistics(go_on)? else { return Ok(false) };
        let Some(mut txn) = self.begin_while(go_on)? else { return Ok(false) };
        let state = txn.state_mut();
        made.age = state.changed.saturating_sub(before);
        state.statistics = Arc::new(made);
        state.has_new_statistics = true;
        txn.commit()?;
        Ok(true)
    }
}
