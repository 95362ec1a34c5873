//! A wait for memory of the budget. From the first pause on it is metered, and shown in the list of
//! requests.

use std::cell::OnceCell;

use snowmelt_store::{Clock, MeteredWait, ShownWait, WaitFor, WaitSign, WaitTally};

/// The wait of one request, which may never begin.
pub struct MemoryWait<'a> {
    tally: &'a WaitTally,
    clock: &'a Clock,
    sign: Option<&'a WaitSign>,
    begun: OnceCell<(Option<ShownWait<'a>>, MeteredWait<'a>)>,
}

impl<'a> MemoryWait<'a> {
    /// A wait that is counted in `tally` and shown at `sign`.
    pub fn new(tally: &'a WaitTally, clock: &'a Clock, sign: Option<&'a WaitSign>) -> Self {
        Self { tally, clock, sign, begun: OnceCell::new() }
    }

    /// Sleeps; the first call begins the wait.
    pub fn sleep_ns(&self, ns: u64) {
        self.begun
            .get_or_init(|| (self.sign.map(|sign| sign.show(WaitFor::Memory)), self.tally.wait(self.clock)));
        self.clock.sleep_ns(ns);
    }
}
