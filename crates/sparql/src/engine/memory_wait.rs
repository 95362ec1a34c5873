//! A wait for memory of the budget: shown where the request is listed, and metered, from the first
//! pause on.

use std::cell::OnceCell;

use snowmelt_graph::{Database, MeteredWait, ShownWait, WaitFor, WaitSign};

/// The wait of one request, which may never begin.
pub(super) struct MemoryWait<'a> {
    db: &'a Database,
    sign: Option<&'a WaitSign>,
    begun: OnceCell<(Option<ShownWait<'a>>, MeteredWait<'a>)>,
}

impl<'a> MemoryWait<'a> {
    /// Of a request whose waits are shown at `sign`.
    pub fn new(db: &'a Database, sign: Option<&'a WaitSign>) -> Self {
        Self { db, sign, begun: OnceCell::new() }
    }

    /// Passes some time.
    pub fn sleep_ns(&self, ns: u64) {
        self.begun.get_or_init(|| {
            let shown = self.sign.map(|sign| sign.show(WaitFor::Memory));
            (shown, self.db.store().upper_waits().memory.wait(self.db.clock()))
        });
        self.db.clock().sleep_ns(ns);
    }
}
