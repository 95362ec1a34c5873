//! Endpoints as an update asks them: a LOAD that waits for its document lends the slot.
//!
//! Not with the turn of the writers, which all that hold slots may be waiting for: the slot would
//! then never come. So SERVICE keeps it, and a LOAD once the update writes. While a document is
//! parsed the slot is kept, too: turns to parse are few, and it has one.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use snowmelt_database::{Account, WaitFor};
use snowmelt_graph::{ChangePhase, ChangeProgress};
use snowmelt_sparql::{
    QueryEngine, QuerySlot, RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemoteQuestion,
    RemoteTotals,
};

use crate::slots::LentSlot;

/// The endpoints of one update.
pub struct LoadEndpoints {
    pub endpoints: Arc<dyn RemoteEndpoints>,
    pub slot: LentSlot,
    pub engine: Arc<QueryEngine>,
    pub account: Arc<Account>,
    pub progress: Arc<ChangeProgress>,
    /// It has had the turn of the writers, and keeps it to its end.
    pub has_turn: AtomicBool,
}

impl LoadEndpoints {
    fn has_turn(&self) -> bool {
        if self.progress.now().is_some_and(|(phase, _)| phase == ChangePhase::Writing) {
            self.has_turn.store(true, Ordering::Relaxed);
        }
        self.has_turn.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for LoadEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoints.fmt(f)
    }
}

impl RemoteEndpoints for LoadEndpoints {
    fn select(&self, question: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        self.endpoints.select(question)
    }

    fn document(
        &self,
        address: &str,
        go_on: Box<dyn Fn() -> bool + Send>,
    ) -> Result<RemoteDocument, RemoteFault> {
        let lends = !self.has_turn();
        let go_on = Arc::new(Mutex::new(go_on));
        let asked = Arc::clone(&go_on);
        let go_on = move || go_on.lock().expect("no holder panics")();
        let database = self.engine.graph().database();
        let document = {
            let _metered = database.endpoint_waits().wait(database.clock());
            let _shown = self.account.sign().show(WaitFor::Endpoint);
            if lends {
                self.slot.lend();
            }
            self.endpoints.document(address, Box::new(move || asked.lock().expect("no holder panics")()))
        };
        if lends {
            let _shown = self.account.sign().show(WaitFor::Slot);
            // where that is given up, so is the update
            self.slot.take_again(&go_on);
        }
        document
    }

    fn narrowed(&self, prefixes: &[String]) -> Arc<dyn RemoteEndpoints> {
        self.endpoints.narrowed(prefixes)
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        self.endpoints.totals()
    }
}
