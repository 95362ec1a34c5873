//! Ctrl-C, SIGTERM and SIGHUP: undo, then end.
//!
//! One thread waits for signals from the first [`crate::undo::Undo`] on. A command that wants
//! to end in its own way (a trace that still writes its report) asks for a [`Stop`]; then the
//! first signal only sets it, and the second one undoes and ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use snowmelt_base::signals::{SIGHUP, SIGINT, SIGTERM, hear};

use crate::undo;

struct Watch {
    journals: Mutex<Vec<Arc<undo::Inner>>>,
    graceful: AtomicUsize,
    stopped: Arc<AtomicBool>,
}

/// Everything is being undone: a holder of open files in something taken down closes them.
static ENDING: AtomicBool = AtomicBool::new(false);

static WATCH: OnceLock<Watch> = OnceLock::new();

/// Set when a signal asked the command to end.
pub struct Stop {
    flag: Arc<AtomicBool>,
}

impl Stop {
    /// True once a signal came.
    pub fn requested(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The flag itself, for threads and layers that outlive a borrow.
    pub fn shared(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }

    /// Set once a signal came, for those who look at it often.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        if let Some(watch) = WATCH.get() {
            watch.graceful.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// From now on, until it is dropped, the first signal sets the answer instead of ending the
/// process.
pub fn stop_on_signal() -> Stop {
    let watch = watch();
    watch.graceful.fetch_add(1, Ordering::Relaxed);
    Stop { flag: watch.stopped.clone() }
}

/// True while a signal's undoing goes on, after which the process ends.
pub(crate) fn ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Makes a journal that a signal has undone from the moment it is there.
pub(crate) fn undo_on_signal<E>(
    make: impl FnOnce() -> Result<Arc<undo::Inner>, E>,
) -> Result<Arc<undo::Inner>, E> {
    let mut journals = watch().journals.lock();
    let journal = make()?;
    journals.push(journal.clone());
    Ok(journal)
}

/// The journal is undone.
pub(crate) fn forget(journal: &Arc<undo::Inner>) {
    watch().journals.lock().retain(|other| !Arc::ptr_eq(other, journal));
}

fn watch() -> &'static Watch {
    let mut first = false;
    let watch = WATCH.get_or_init(|| {
        first = true;
        Watch { journals: Mutex::default(), graceful: AtomicUsize::new(0), stopped: Arc::default() }
    });
    if first && let Err(e) = hear(&[SIGINT, SIGTERM, SIGHUP], |signal| heard(watch, signal)) {
        crate::tell!("warning: signals cannot be watched ({e}); after Ctrl-C run `snowmelt-lab restore`");
    }
    watch
}

fn heard(watch: &Watch, signal: i32) {
    let again = watch.stopped.swap(true, Ordering::Relaxed);
    if watch.graceful.load(Ordering::Relaxed) > 0 && !again {
        crate::tell!("ending; once more to end at once");
        return;
    }
    ENDING.store(true, Ordering::Relaxed);
    // Held to the end: no journal is begun any more.
    let journals = watch.journals.lock();
    for journal in journals.iter().rev() {
        if let Err(e) = journal.end() {
            crate::tell!("warning: {e}");
        }
    }
    std::process::exit(128 + signal);
}
