//! State that the handles of an open database share.

use std::sync::Arc;

use snowmelt_graph::Database as Graph;
use snowmelt_sparql::Engine;
use tempfile::TempDir;

/// An open database. The engine closes before its directory goes: fields are dropped in order.
pub(crate) struct Open {
    pub engine: Engine,
    /// the directory of a database in memory
    pub in_memory: Option<TempDir>,
}

impl Open {
    pub fn new(graph: Arc<Graph>, in_memory: Option<TempDir>) -> Arc<Self> {
        Arc::new(Open { engine: Engine::new(graph), in_memory })
    }

    pub fn graph(&self) -> &Arc<Graph> {
        self.engine.database()
    }
}
