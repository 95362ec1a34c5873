//! The `threads` engine: each thread carries out one device request at a time, and takes the next one itself.
//!
//! Threads are started when there is more work than sleepers, up to the depth of the queue.

use std::sync::Arc;

use crate::queue::{Locked, NoUnwinding, Shared};

/// Sees to it that enough threads are awake for what waits.
pub(crate) fn wake(shared: &Arc<Shared>, mut state: Locked<'_>) {
    let free = shared.limits.depth.saturating_sub(state.outstanding.requests);
    let wanted = state.schedule.len().min(free);
    let to_wake = wanted.min(state.idle);
    let room = shared.limits.depth.saturating_sub(state.threads.len());
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
    drop(state);
    for _ in 0..to_wake {
        shared.work.notify_one();
    }
}

fn serve(shared: &Arc<Shared>) {
    let _guard = NoUnwinding;
    let mut state = shared.state.lock();
    loop {
        if let Some(mut request) = shared.take(&mut state, shared.clock.now_ns()) {
            drop(state);
            let end = request.execute(&*shared.device, &shared.scratch);
            shared.deliver(&mut request, end, shared.clock.now_ns());
            state = shared.state.lock();
            shared.retire(&mut state, request);
        } else if state.closing && state.schedule.is_empty() {
            return;
        } else {
            state.idle += 1;
            shared.work.wait(&mut state);
        }
    }
}
