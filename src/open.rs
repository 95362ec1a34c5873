//! State that the handles of an open database share.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use snowmelt_graph::GraphDatabase as Graph;
use snowmelt_sparql::QueryEngine;
use tempfile::TempDir;

use crate::error::{Error, Result};

/// An open database. The engine closes before its directory goes: fields are dropped in order.
pub(crate) struct Open {
    pub engine: QueryEngine,
    /// the directory of a database in memory
    pub in_memory: Option<TempDir>,
    /// who has the transaction under way
    writer: Mutex<Writer>,
}

/// The threads that a transaction under way would wait for.
#[derive(Default)]
struct Writer {
    /// has used it last
    user: Option<ThreadId>,
    /// runs the function it was begun for, whichever thread uses it there
    caller: Option<ThreadId>,
}

/// While it lives, the thread that works on a transaction may not wait for another one.
pub(crate) struct Writing(Arc<Open>);

impl Writing {
    pub fn new(open: &Arc<Open>) -> Self {
        let writing = Writing(open.clone());
        writing.is_by_this_thread();
        writing
    }

    /// The transaction is this thread's from now on.
    pub fn is_by_this_thread(&self) {
        self.0.writer.lock().expect("no holder panics").user = Some(std::thread::current().id());
    }

    /// It does not end before a function that this thread runs does.
    pub fn is_for_a_call(&self) {
        self.0.writer.lock().expect("no holder panics").caller = Some(std::thread::current().id());
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        *self.0.writer.lock().expect("no holder panics") = Writer::default();
    }
}

impl Open {
    pub fn new(graph: Arc<Graph>, in_memory: Option<TempDir>) -> Arc<Self> {
        Arc::new(Open { engine: QueryEngine::new(graph), in_memory, writer: Mutex::default() })
    }

    /// Refuses to wait for the writer before when that is this thread.
    pub fn may_wait(&self) -> Result<()> {
        let me = Some(std::thread::current().id());
        let writer = self.writer.lock().expect("no holder panics");
        if writer.user == me || writer.caller == me { Err(Error::InTransaction) } else { Ok(()) }
    }

    pub fn graph(&self) -> &Arc<Graph> {
        self.engine.graph()
    }
}
