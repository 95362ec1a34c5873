//! State that the handles of an open database share.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use snowmelt_graph::GraphDatabase as Graph;
use snowmelt_sparql::{CustomFunctions, QueryEngine};
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::functions;

/// An open database. The engine closes before its directory goes: fields are dropped in order.
pub(crate) struct Open {
    pub engine: QueryEngine,
    /// of the program, for all of its queries and updates
    pub functions: Arc<CustomFunctions>,
    /// the directory of a database in memory
    pub in_memory: Option<TempDir>,
    /// who has the transaction under way
    writer: Mutex<Writer>,
}

/// The threads that must not wait for the transaction under way, because they would wait for
/// themselves.
#[derive(Default)]
struct Writer {
    /// the thread that used it last
    user: Option<ThreadId>,
    /// the thread that runs the function it was begun for, whichever thread uses it there
    caller: Option<ThreadId>,
}

/// A transaction under way. While it lives, the thread that works on it may not wait for another
/// one.
pub(crate) struct Writing(Arc<Open>);

impl Writing {
    pub fn new(open: &Arc<Open>) -> Self {
        let writing = Writing(open.clone());
        writing.is_by_this_thread();
        writing
    }

    /// Notes that this thread used the transaction last.
    pub fn is_by_this_thread(&self) {
        self.0.writer.lock().expect("no holder panics").user = Some(std::thread::current().id());
    }

    /// Notes that the transaction lasts as long as a function that this thread runs.
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
    pub fn new(graph: Arc<Graph>, functions: Arc<CustomFunctions>, in_memory: Option<TempDir>) -> Arc<Self> {
        Arc::new(Open { engine: QueryEngine::new(graph), functions, in_memory, writer: Mutex::default() })
    }

    /// Refuses to wait for a writer when that is this thread, or may be the update that calls the
    /// function which this thread runs.
    pub fn may_wait(&self) -> Result<()> {
        if functions::is_called() {
            return Err(Error::InTransaction);
        }
        let me = Some(std::thread::current().id());
        let writer = self.writer.lock().expect("no holder panics");
        if writer.user == me || writer.caller == me { Err(Error::InTransaction) } else { Ok(()) }
    }

    pub fn graph(&self) -> &Arc<Graph> {
        self.engine.graph()
    }
}
