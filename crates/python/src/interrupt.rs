//! Long work without the GIL, which Ctrl-C ends.
//!
//! Python handles signals in its main thread only, and only when that thread checks for them. So
//! work of the main thread goes to another thread, while the main thread checks a few times a
//! second and sets the work's flag when a signal handler raised something. In all other threads the
//! work just runs.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;

/// How often the main thread asks for signals.
const INTERVAL: Duration = Duration::from_millis(50);
/// Stack of the thread that works: as large as a main thread's usually is.
const STACK_BYTES: usize = 8 << 20;

/// Ends some work: by its flag, and with what a callable raised that is no error of a value.
#[derive(Clone, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Cancel {
    /// Set to end the work.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Ends the work, which then raises this. What was raised first counts.
    pub fn raise(&self, raised: PyErr) {
        drop(keep_first(&self.raised, raised));
        self.flag.store(true, Ordering::Relaxed);
    }

    fn take_raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Keeps a value where there is none yet, or gives it back. Dropping it may run code of the
/// program, which lets other threads come here: so that is not done under the lock.
fn keep_first<T>(kept: &Mutex<Option<T>>, value: T) -> Option<T> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_some() {
        return Some(value);
    }
    *kept = Some(value);
    None
}

/// Runs `work` without the GIL. If a signal handler raises, sets the flag, waits for the end of the
/// work, and returns what was raised; so with what a callable raised.
pub fn run<T: Send>(py: Python<'_>, cancel: &Cancel, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done =
        if is_main_thread(py)? { py.detach(|| watched(&cancel.flag, work)) } else { Ok(py.detach(work)) };
    cancel.take_raised().map_or(done, Err)
}

fn watched<T: Send>(cancel: &AtomicBool, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    thread::scope(|scope| {
        let (done, result) = sync_channel(1);
        let worker = thread::Builder::new().name("snowmelt".to_owned()).stack_size(STACK_BYTES);
        // Sending cannot fail: the receiver lives as long as the scope.
        let worker = worker.spawn_scoped(scope, move || drop(done.send(work())))?;
        let mut raised = None;
        loop {
            match result.recv_timeout(INTERVAL) {
                Ok(value) => return raised.map_or(Ok(value), Err),
                Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                    raised = Python::attach(|py| py.check_signals()).err();
                    cancel.fetch_or(raised.is_some(), Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = worker.join().expect_err("it ended without a value");
                    resume_unwind(panic);
                }
            }
        }
    })
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let current = threading.call_method0(intern!(py, "get_ident"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    current.eq(main)
}
