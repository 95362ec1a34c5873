//! The wait of a query for an endpoint: metered, shown in the list of requests, and after a moment
//! without its slot and the memory it does not use, which others have meanwhile.

use snowmelt_database::{Account, MeteredWait, ShownWait, WaitFor};

use crate::bounds::{MemoryWait, Resting};
use crate::error::QueryError;
use crate::exec::{Result, Run};
use crate::remote::QuerySlot;

/// Looks for an answer after which slot and memory are lent: about a tenth of a second. Endpoints
/// nearby answer sooner, and a query of many questions would wait for a slot as often.
pub(super) const KEPT_LOOKS: u32 = 10;

/// A wait that has begun. Where it is dropped before its end, so is the query.
pub(super) struct EndpointWait<'a> {
    run: &'a Run,
    slot: Option<&'a dyn QuerySlot>,
    looks: u32,
    _shown: Option<ShownWait<'a>>,
    _metered: MeteredWait<'a>,
    _resting: Option<Resting<'a>>,
}

impl<'a> EndpointWait<'a> {
    pub fn begin(run: &'a Run) -> Self {
        let database = run.source.session.graph().database();
        let query = &*run.query;
        Self {
            run,
            // beside a forked worker others of its query go on
            slot: query.slot.as_deref().filter(|_| !run.is_forked),
            looks: 0,
            _shown: query.account.as_deref().map(Account::sign).map(|sign| sign.show(WaitFor::Endpoint)),
            _metered: database.endpoint_waits().wait(database.clock()),
            _resting: (!run.is_forked).then(|| query.active.rest()),
        }
    }

    /// Nothing has come when it was looked for.
    pub fn goes_on(&mut self) {
        self.looks += 1;
        if self.looks == KEPT_LOOKS
            && let Some(slot) = self.slot
        {
            slot.lend();
            self.run.memory.lend();
        }
    }

    /// Waits for slot and memory again, if they were lent.
    pub fn end(self) -> Result<()> {
        let Self { run, slot, looks, .. } = self;
        drop(self);
        match slot {
            Some(slot) if looks >= KEPT_LOOKS => take_again(slot, run),
            _ => Ok(()),
        }
    }
}

/// Waits for the slot, and for a while without it for the least memory of the query. After that
/// the query goes on with what it can get.
fn take_again(slot: &dyn QuerySlot, run: &Run) -> Result<()> {
    const PAUSE_NS: u64 = 2_000_000;
    const MOST_PAUSES: u32 = 5000;
    let database = run.source.session.graph().database();
    let sign = run.query.account.as_deref().map(Account::sign);
    let mut pauses = 0;
    loop {
        let shown = sign.map(|sign| sign.show(WaitFor::Slot));
        if !slot.take_again(&|| run.check().is_ok()) {
            run.check()?;
            return Err(QueryError::Cancelled);
        }
        drop(shown);
        if run.memory.take_back() || pauses >= MOST_PAUSES {
            return Ok(());
        }
        // not with the slot: what others need to begin, and to end, is not waited with
        slot.lend();
        let waits = MemoryWait::new(&database.store().upper_waits().memory, database.clock(), sign);
        loop {
            run.check()?;
            waits.sleep_ns(PAUSE_NS);
            pauses += 1;
            if run.memory.could_take_back() || pauses >= MOST_PAUSES {
                break;
            }
        }
    }
}
