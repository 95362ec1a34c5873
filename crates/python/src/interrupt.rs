//! Long work without the GIL, which Ctrl-C ends.
//!
//! Python handles signals in its main thread only, and only when that thread checks for them. So
//! work of the main thread goes to another thread, while the main thread checks a few times a
//! second and sets the work's flag when a signal handler raised something. In all other threads the
//! work just runs.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;

/// How often the main thread asks for signals.
const INTERVAL: Duration = Duration::from_millis(50);
/// Stack of the thread that works: as large as a main thread's usually is.
const STACK_BYTES: usize = 8 << 20;

/// The flag of some work: set to end it.
pub type Cancel = Arc<AtomicBool>;

/// Runs `work` without the GIL. If a signal handler raises, sets `cancel`, waits for the end of the
/// work, and returns what was raised.
pub fn run<T: Send>(py: Python<'_>, cancel: &Cancel, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if !is_main_thread(py)? {
        return Ok(py.detach(work));
    }
    py.detach(|| watched(cancel, work))
}

fn watched<T: Send>(cancel: &Cancel, work: impl FnOnce() -> T + Send) -> PyResult<T> {
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
