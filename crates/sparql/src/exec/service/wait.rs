//! The wait of a query for an endpoint: metered, shown in the list of requests, and without its
//! slot, which others have meanwhile.

use snowmelt_database::{Account, MeteredWait, ShownWait, WaitFor};

use crate::bounds::Resting;
use crate::error::QueryError;
use crate::exec::{Result, Run};
use crate::remote::QuerySlot;

/// A wait that has begun. Where it is dropped before its end, so is the query.
pub(super) struct EndpointWait<'a> {
    run: &'a Run,
    slot: Option<&'a dyn QuerySlot>,
    _shown: Option<ShownWait<'a>>,
    _metered: MeteredWait<'a>,
    _resting: Option<Resting<'a>>,
}

impl<'a> EndpointWait<'a> {
    pub fn begin(run: &'a Run) -> Self {
        let database = run.source.session.graph().database();
        let query = &*run.query;
        // beside a forked worker others of its query go on
        let slot = query.slot.as_deref().filter(|_| !run.is_forked);
        if let Some(slot) = slot {
            slot.lend();
        }
        Self {
            run,
            slot,
            _shown: query.account.as_deref().map(Account::sign).map(|sign| sign.show(WaitFor::Endpoint)),
            _metered: database.endpoint_waits().wait(database.clock()),
            _resting: (!run.is_forked).then(|| query.active.rest()),
        }
    }

    /// Waits for the slot again.
    pub fn end(self) -> Result<()> {
        let Self { run, slot, .. } = self;
        drop(self);
        let Some(slot) = slot else { return Ok(()) };
        let _shown = run.query.account.as_deref().map(Account::sign).map(|sign| sign.show(WaitFor::Slot));
        if !slot.take_again(&|| run.check().is_ok()) {
            run.check()?;
            return Err(QueryError::Cancelled);
        }
        Ok(())
    }
}
