//! How an engine begins to serve a queue.

#![allow(unsafe_code)]

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::engine::serving::{NoUnwinding, Serving};
use crate::engine::serving_thread::ServingThread;
use crate::engine::wake::Wake;
use crate::error::{IoError, Operation};

/// An engine: started once for each queue of real devices.
pub trait StartEngine: Debug + Send + Sync {
    /// Name in settings, tables and metrics.
    fn name(&self) -> &'static str;

    /// Name in messages.
    fn title(&self) -> &'static str {
        self.name()
    }

    /// Begins to serve the queue.
    ///
    /// # Errors
    /// The engine is not to be had here.
    fn start(&self, queue: &ServedQueue) -> Result<Started, NotStarted>;
}

/// The way a queue is served.
pub enum Started {
    /// By the asking thread, before `submit` returns.
    Inline,
    /// By up to `depth` threads, one device request each.
    Threads,
    /// By one thread, which is woken when it sleeps and could start something.
    Thread(StartedThread),
}

/// The reason why an engine does not serve a queue.
pub enum NotStarted {
    /// The system refuses it: threads serve instead, with a notice.
    Refused(io::Error),
    /// The queue cannot be opened.
    Failed(IoError),
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> NotStarted {
        NotStarted::Refused(error)
    }
}

/// A thread that serves.
pub struct StartedThread {
    pub(crate) handle: JoinHandle<()>,
    pub(crate) wake: Arc<Wake>,
}

impl StartedThread {
    /// Waits for its end: it could not serve.
    pub(crate) fn join(self) {
        self.handle.join().expect("it only failed to begin");
    }
}

/// A queue that is to be served.
pub struct ServedQueue {
    serving: Arc<Serving>,
}

impl ServedQueue {
    pub(crate) fn new(serving: &Arc<Serving>) -> ServedQueue {
        ServedQueue { serving: serving.clone() }
    }

    /// The descriptor of its device, where there is one.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the device, which owns the descriptor, lives as long as the queue.
        self.serving.device.fd().map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Most device requests outstanding, ever.
    pub fn most_outstanding(&self) -> usize {
        self.serving.settings.most_outstanding()
    }

    /// Starts a thread that serves. A panic in it ends the process.
    ///
    /// # Errors
    /// There is no thread, or no descriptor to wake it, to be had.
    pub fn start_thread(
        &self,
        name: &str,
        serve: impl FnOnce(ServingThread) + Send + 'static,
    ) -> Result<StartedThread, NotStarted> {
        let device = self.serving.device.name();
        let failed = |e: io::Error| NotStarted::Failed(IoError::os(device, Operation::Engine, 0, 0, &e));
        let wake = Arc::new(Wake::new().map_err(failed)?);
        let thread = ServingThread::new(&self.serving, &wake);
        let handle = std::thread::Builder::new().name(name.into()).spawn(move || {
            let _guard = NoUnwinding;
            serve(thread);
        })?;
        Ok(StartedThread { handle, wake })
    }
}
