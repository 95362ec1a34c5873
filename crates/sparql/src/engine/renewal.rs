//! Statistics that have grown old are made again, on a thread of their own: begun after an update,
//! one at a time, and ended with the engine.
//!
//! Where that fails the old ones stay, and it is not tried with every update: a page that cannot be
//! read would cost all reads before it each time. The next reader of the page reports it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snowmelt_graph::GraphDatabase;

/// The wait after a first failure, which doubles with each further one, and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The thread that makes them.
#[derive(Default)]
pub(super) struct Renewal {
    stop: Arc<AtomicBool>,
    failed: Arc<Mutex<Option<Failed>>>,
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
        if self.failed.lock().as_ref().is_some_and(|failed| failed.at.elapsed() < failed.wait) {
            return;
        }
        let (db, stop, failed) = (Arc::clone(db), Arc::clone(&self.stop), Arc::clone(&self.failed));
        let run = move || {
            let go_on = || !stop.load(Ordering::Relaxed);
            let done = db.renew_statistics(&go_on);
            let mut failed = failed.lock();
            *failed = done.is_err().then(|| Failed::after(failed.take()));
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

/// When statistics could not be made, and how long they are not tried again.
struct Failed {
    at: Instant,
    wait: Duration,
}

impl Failed {
    fn after(before: Option<Failed>) -> Failed {
        let wait = before.map_or(FIRST_WAIT, |before| (2 * before.wait).min(LONGEST_WAIT));
        Failed { at: Instant::now(), wait }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}
