//! A query on the thread of its connection.
//!
//! A query that is answered on a thread of its own costs two changes of thread, which a short one
//! feels. So a query is tried on the connection's thread when all of its shape took
//! at most [`BRIEF`] of late. Others may wait for that thread: an attempt is given up after
//! [`MOMENT`], or when its answer is longer than a piece, and the query runs again on a thread of
//! its own. Figures: `docs/src/decisions/short-queries.md`.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use snowmelt_database::Priority;
use snowmelt_sparql::{QueryEngine, QueryError, QueryOptions, QueryText};
use tokio::sync::oneshot;

use super::answers::{Failure, lost};
use crate::body::Head;
use crate::request::ProtocolRequest;

/// The longest that a query may keep a thread of connections.
const MOMENT: Duration = Duration::from_millis(3);
/// Queries that took no longer of late are tried.
const BRIEF: Duration = Duration::from_micros(500);

/// Attempts of a server.
#[derive(Default)]
pub struct Attempts {
    made: AtomicU64,
    given_up: AtomicU64,
}

/// The thread that makes an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// the connection's, where a query is tried
    Connection,
    /// its own
    Own,
}

impl Attempts {
    /// Has a query answered on this thread; `None` when `answer` gave it up, and sent no head.
    pub fn attempt(&self, answer: impl FnOnce(oneshot::Sender<Head>)) -> Result<Option<Head>, Failure> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let (head_sender, mut head) = oneshot::channel();
        let answer = || answer(head_sender);
        // On a thread of its own a panic would end that alone.
        std::panic::catch_unwind(AssertUnwindSafe(answer)).map_err(|_| lost())?;
        let head = head.try_recv().ok();
        if head.is_none() {
            self.given_up.fetch_add(1, Ordering::Relaxed);
        }
        Ok(head)
    }

    /// How many were made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// How many of them were given up.
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }
}

impl Thread {
    /// The one for a query, by how long those of its shape took.
    pub fn choose(
        engine: &QueryEngine,
        query: &ProtocolRequest,
        text: &QueryText<'_>,
        options: &QueryOptions,
    ) -> Self {
        let is_plain = query.explain.is_none()
            && query.priority == Priority::Normal
            && options.timeout.is_none_or(|most| most > MOMENT);
        match is_plain && engine.expected(text, options).is_some_and(|took| took <= BRIEF) {
            true => Self::Connection,
            false => Self::Own,
        }
    }

    /// The options of a query there.
    pub fn options(self, options: &QueryOptions) -> Cow<'_, QueryOptions> {
        match self {
            Self::Own => Cow::Borrowed(options),
            Self::Connection => Cow::Owned(QueryOptions {
                timeout: Some(MOMENT),
                memory_wait: Some(Duration::ZERO),
                threads: 1,
                ..options.clone()
            }),
        }
    }

    /// Whether an error means that the query needs a thread of its own.
    pub fn gives_up(self, error: &QueryError) -> bool {
        let is_of_moment =
            matches!(error, QueryError::Timeout(_) | QueryError::Busy { .. } | QueryError::Write(_));
        self == Self::Connection && is_of_moment
    }
}
