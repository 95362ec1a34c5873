//! Pages as snapshots see them: a frame of the pool, or a version.
//!
//! The pool knows of a page only that it has versions (a bit in its word); the version table knows
//! them. Invariant: the bit changes under the lock of the page's part of the table, so it is set
//! exactly while the page has versions.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::history::step::Step;
use crate::history::versions::{Readable, Seen, Versions};
use crate::history::waiting::WaitingPage;
use crate::journal::Loc;
use crate::page::{PageBuf, PageId};
use crate::pool::{Brought, Coming, Look, PageRef, Pool};

/// The pool and the version table of a store.
pub(crate) struct VisiblePages {
    pub pool: Pool,
    /// Pages with more than the state on the stripe.
    pub versions: Versions,
}

/// Result of a look at a page as of a transaction.
#[derive(Debug)]
pub(crate) enum Sight {
    /// It is here. The first user of a page that was read ahead gets the rule that brought it.
    Here(PageRef, Option<Brought>),
    /// Its read is under way.
    InFlight(Coming),
    /// Not in memory, and no read of it is under way.
    Absent,
    /// It is a version that only the journal has: of this transaction, put together from these
    /// changes.
    Journal(u64, Vec<Loc>),
    /// The page number lies beyond what the pool can ever hold.
    Nowhere,
}

/// A version that is seen instead of the stripe's state.
enum Newer {
    Memory(PageRef),
    Journal(u64, Vec<Loc>),
}

impl VisiblePages {
    /// The pages of a store that was just opened: none is resident, none has versions.
    pub fn new(pool: Pool) -> VisiblePages {
        VisiblePages { pool, versions: Versions::default() }
    }

    /// Looks for a page, for a snapshot as of `txn`.
    pub fn look(&self, page: PageId, txn: u64) -> Sight {
        let version = || match self.versions.see(page, txn) {
            Seen::Stripe => None,
            Seen::Memory(state) => Some(Newer::Memory(PageRef::from_memory(state))),
            Seen::Journal(txn, way) => Some(Newer::Journal(txn, way)),
        };
        match self.pool.look(page, version) {
            Look::Here(page, brought) => Sight::Here(page, brought),
            Look::Version(Newer::Memory(page)) => Sight::Here(page, None),
            Look::Version(Newer::Journal(txn, way)) => Sight::Journal(txn, way),
            Look::InFlight(coming) => Sight::InFlight(coming),
            Look::Absent => Sight::Absent,
            Look::Nowhere => Sight::Nowhere,
        }
    }

    /// Publishes a version of a page that snapshots as of `txn` and later see; `readable`: the
    /// transactions as of which readers read.
    pub fn publish_version(
        &self,
        page: PageId,
        txn: u64,
        state: Option<Arc<PageBuf>>,
        step: Option<Step>,
        readable: &Readable,
    ) {
        self.versions.publish(page, txn, state, step, readable, || self.pool.mark_versioned(page));
    }

    /// Puts in the only version of a page that recovery found.
    pub fn restore_version(&self, page: PageId, txn: u64, state: Option<WaitingPage>, history: Vec<Step>) {
        self.versions.restore(page, txn, state, history, || self.pool.mark_versioned(page));
    }

    /// Drops versions up to and including `txn`.
    pub fn forget_versions(&self, page: PageId, txn: u64) {
        self.versions.forget(page, txn, || self.pool.unmark_versioned(page));
    }
}
