//! The runtime that requests run on: one for the process, with two threads. They wait for sockets,
//! encrypt and copy; hundreds of requests share them.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// It is never shut down: requests may be begun for as long as the process lives.
static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// The runtime, started at the first call. The error is a sentence.
pub(crate) fn handle() -> Result<Handle, String> {
    let started = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(8) // they look names of hosts up
            .thread_name("cloud")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| format!("the threads of requests cannot be started: {error}"))
    });
    started.as_ref().map(|runtime| runtime.handle().clone()).map_err(Clone::clone)
}
