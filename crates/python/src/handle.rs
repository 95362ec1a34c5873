//! An open database as Python objects share it: closed once, refused in a forked child.
//!
//! A child of fork() has the file descriptors and the lock of its parent, but none of its
//! threads: what it wrote would meet what the parent writes. So there every use is an error, and
//! the database is left alone instead of being closed.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::PyResult;
use snowmelt::{Database, Transaction};

use crate::errors;
use crate::interrupt::Cancel;
use std::sync::atomic::Ordering;

/// An open or closed database.
pub struct Handle {
    open: Mutex<Option<Database>>,
    process: u32,
    /// the thread that has a transaction of this handle open
    writer: Mutex<Option<ThreadId>>,
}

/// Locks a mutex, also after a panic: its holders never leave it half changed.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    pub fn new(database: Database) -> Self {
        let open = Mutex::new(Some(database));
        Handle { open, process: std::process::id(), writer: Mutex::default() }
    }

    /// The database, to be used without the GIL.
    pub fn database(&self) -> PyResult<Database> {
        self.own_process()?;
        locked(&self.open).clone().ok_or_else(|| errors::named("ClosedError", "the database is closed"))
    }

    /// The database, to be written to by this thread.
    pub fn to_write(&self) -> PyResult<Database> {
        if *locked(&self.writer) == Some(thread::current().id()) {
            let why = "this thread has a transaction open on the database: write through it, or end it first";
            return Err(errors::named("TransactionError", why));
        }
        self.database()
    }

    /// Begins a transaction; waits for other writers until `cancel` is set.
    pub fn begin(database: &Database, cancel: &Cancel) -> snowmelt::Result<Transaction> {
        let begun = database.begin_while(&|| !cancel.flag().load(Ordering::Relaxed))?;
        begun.ok_or(snowmelt::Error::Cancelled)
    }

    /// Notes that this thread has a transaction open, or none any more.
    pub fn set_writer(&self, writer: Option<ThreadId>) {
        *locked(&self.writer) = writer;
    }

    /// Takes the database away from all further use.
    pub fn close(&self) -> PyResult<Option<Database>> {
        self.own_process()?;
        Ok(locked(&self.open).take())
    }

    pub fn is_closed(&self) -> bool {
        locked(&self.open).is_none()
    }

    fn own_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let why = "the database was opened by the parent process: open it after the fork";
        Err(errors::named("ClosedError", why))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            mem::forget(locked(&self.open).take());
        }
    }
}
