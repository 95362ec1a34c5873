//! Statistics that have grown old are made again, on a thread of their own: begun after an update,
//! one at a time, and ended with the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use snowmelt_graph::GraphDatabase;

/// The thread that makes them.
#[derive(Default)]
pub(super) struct Renewal {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Renewal {
    /// Begins to make statistics anew if they are old and nothing is at it.
    pub fn begin_if_old(&self, db: &Arc<GraphDatabase>) {
        let is_old = db.state().is_ok_and(|state| state.has_old_statistics());
        if !is_old {
            return;
        }
        let mut thread = self.thread.lock();
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (db, stop) = (Arc::clone(db), Arc::clone(&self.stop));
        let run = move || {
            let go_on = || !stop.load(Ordering::Relaxed);
            // after an error the old ones stay: the next reader of the page reports it
            drop(db.renew_statistics(&go_on));
        };
        *thread = std::thread::Builder::new().name("statistics".to_owned()).spawn(run).ok();
    }

    /// Waits for the thread, if there is one.
    pub fn wait(&self) {
        // an update that begins one must not wait for this one
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}
