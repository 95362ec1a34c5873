//! The answer that a caller waits for: given once, or given up with its handle.
//!
//! Invariant: of the answer and the giving up, the first takes the caller's closure. So it is
//! called at most once, and not after the giving up, unless the answer had begun to be given.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::objects::{Answer, Done, ObjectError, Ongoing};

/// The side of a request that answers.
#[derive(Clone)]
pub(crate) struct Reply(Arc<Mutex<Option<Done>>>);

impl Reply {
    /// A reply to `done`, and the handle that gives it up.
    pub(crate) fn new(done: Done) -> (Reply, Ongoing) {
        let reply = Reply(Arc::new(Mutex::new(Some(done))));
        let given_up = reply.clone();
        let ongoing = Ongoing::new(move || drop(given_up.take()));
        (reply, ongoing)
    }

    /// Answers, unless the request was answered or given up.
    pub(crate) fn give(&self, answer: Result<Answer, ObjectError>) {
        // Called without the lock, since the caller may drop its handle meanwhile.
        if let Some(done) = self.take() {
            done(answer);
        }
    }

    /// True when no caller waits any more.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().is_none()
    }

    fn take(&self) -> Option<Done> {
        self.0.lock().take()
    }
}
