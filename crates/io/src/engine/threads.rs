//! The `threads` engine: each thread carries out one device request at a time, and takes the
//! next one itself.
//!
//! Threads are started when there is more work than sleepers, up to the depth of the queue.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::serving::{Locked, NoUnwinding, Serving, Taken};
use crate::engine::start::{NotStarted, ServedQueue, StartEngine, Started};

/// A pool of threads.
#[derive(Debug)]
pub(crate) struct Threads;

impl StartEngine for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn start(&self, _queue: &ServedQueue) -> Result<Started, NotStarted> {
        Ok(Started::Threads)
    }
}

/// Wakes or starts up to `most` threads for the requests that wait.
pub(crate) fn wake(shared: &Arc<Serving>, mut state: Locked<'_>, most: usize) {
    let free = state.schedule.depth().saturating_sub(state.outstanding.requests);
    let wanted = state.schedule.len().min(free).min(most);
    let to_wake = wanted.min(state.idle);
    let room = state.schedule.depth().saturating_sub(state.threads.len());
    for _ in 0..(wanted - to_wake).min(room) {
        let shared = shared.clone();
        let thread = std::thread::Builder::new().name("io".into()).spawn(move || serve(&shared));
        match thread {
            Ok(thread) => state.threads.push(thread),
            Err(e) if state.threads.is_empty() => panic!("not one thread for input and output: {e}"),
            Err(_) => break, // fewer will do
        }
    }
    state.idle -= to_wake; // here, so that the next submission does not count on the same sleepers
    if state.timekeeper {
        shared.time.notify_one(); // it may be the last one that is free
    }
    drop(state);
    for _ in 0..to_wake {
        shared.work.notify_one();
    }
}

fn serve(shared: &Arc<Serving>) {
    let _guard = NoUnwinding;
    let mut state = shared.state.lock();
    loop {
        let now = shared.clock.now_ns();
        match shared.take(&mut state, now) {
            Taken::Request(mut request) => {
                drop(state);
                let end = request.execute(&*shared.device, &shared.scratch);
                shared.deliver(&mut request, end, shared.clock.now_ns());
                state = shared.state.lock();
                shared.retire(&mut state, request);
            }
            _ if state.closing && state.schedule.is_empty() => {
                // Others may have begun to sleep when it was closed already: writes were left that
                // could not go out yet.
                shared.work.notify_all();
                return;
            }
            Taken::NotBefore(at) if !state.timekeeper => {
                state.timekeeper = true;
                shared.time.wait_for(&mut state, Duration::from_nanos(at.saturating_sub(now)));
                state.timekeeper = false;
            }
            Taken::Nothing | Taken::NotBefore(_) => {
                state.idle += 1;
                shared.work.wait(&mut state);
            }
        }
    }
}
