//! The databases that a server serves: one, or those of a folder.

pub mod catalog;
pub mod folder;

use std::sync::{Arc, Mutex};

use snowmelt_base::service_depth;
use snowmelt_database::Account;
use snowmelt_graph::{GraphError, Summary};
use snowmelt_sparql::QueryEngine;

use crate::advice::Advisor;
use crate::description;
use crate::freshness::States;
use crate::slots::Slots;

pub use folder::{Folder, Opener};

/// The databases of a server.
#[derive(Clone)]
pub enum Served {
    /// one database, at the root
    One(Arc<QueryEngine>),
    /// the databases in a folder, each below its name
    Many(Folder),
}

impl From<Arc<QueryEngine>> for Served {
    fn from(engine: Arc<QueryEngine>) -> Self {
        Self::One(engine)
    }
}

/// An open database.
pub struct Dataset {
    /// empty: the only one
    pub name: String,
    pub engine: Arc<QueryEngine>,
    pub states: Arc<States>,
    /// of the newest state that was described
    summary: Mutex<Option<Arc<Summary>>>,
    /// the accounts of queries and of changes
    pub query_account: Arc<Account>,
    pub update_account: Arc<Account>,
    pub advisor: Mutex<Advisor>,
    /// for queries that may wait for endpoints, and hold memory meanwhile, by depth
    waiting_places: Vec<Slots>,
}

impl Dataset {
    pub fn new(name: String, engine: Arc<QueryEngine>) -> Self {
        let database = engine.graph();
        let states = Arc::new(States::new(database.database().newest(), database.database().changed_at()));
        Self {
            query_account: database.database().account("http query"),
            update_account: database.database().account("http update"),
            waiting_places: (0..=service_depth::MOST)
                .map(|depth| Slots::new(service_depth::places(engine.most_waiting(), depth)))
                .collect(),
            name,
            engine,
            states,
            summary: Mutex::default(),
            advisor: Mutex::default(),
        }
    }

    /// The places of queries that may wait for endpoints, in requests of this depth.
    pub fn waiting_places(&self, depth: u32) -> &Slots {
        &self.waiting_places[depth.min(service_depth::MOST) as usize]
    }

    /// The path that all its resources are below.
    pub fn mount(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("/{}", self.name) }
    }

    /// Counts of the newest state, made once for each.
    pub fn summary(&self) -> Result<Arc<Summary>, GraphError> {
        let database = self.engine.graph();
        let known = self.summary.lock().expect("no holder panics").clone();
        if let Some(known) = known.filter(|known| known.txn == database.database().newest()) {
            return Ok(known);
        }
        let made = Arc::new(database.summary(description::MOST_PARTS)?);
        *self.summary.lock().expect("no holder panics") = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Whether nothing but the list of open ones holds it.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && Arc::strong_count(&self.engine) == 1
    }
}
