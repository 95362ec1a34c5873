//! Endpoints elsewhere, as queries ask them.
//!
//! The engine knows no network: programs that have one give it something that asks. An answer
//! comes in parts, and the engine asks for the next one with an eye on its own limits.

use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oxrdf::Term;

/// Asks endpoints elsewhere.
pub trait RemoteEndpoints: fmt::Debug + Send + Sync {
    /// Asks for the rows of a query. Does not wait for the answer.
    ///
    /// # Errors
    /// The endpoint may not be asked.
    fn select(&self, question: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault>;

    /// Asks for a document, and waits for the begin of it while `go_on` says so.
    ///
    /// # Errors
    /// The place may not be asked, or gives no answer.
    fn document(
        &self,
        address: &str,
        go_on: Box<dyn Fn() -> bool + Send>,
    ) -> Result<RemoteDocument, RemoteFault>;

    /// The same, for those endpoints alone whose addresses begin with one of these, too.
    fn narrowed(&self, prefixes: &[String]) -> Arc<dyn RemoteEndpoints>;

    /// For a request that is itself within so many of others, which endpoints are told. None: they
    /// are not.
    fn at_depth(&self, _depth: u32) -> Option<Arc<dyn RemoteEndpoints>> {
        None
    }

    /// All that was asked so far, by endpoint.
    fn totals(&self) -> Vec<RemoteTotals>;
}

/// The slot of a query among those that a program runs at the same time.
///
/// While a query waits for an endpoint, or for memory, it uses neither processor nor device, so
/// others have its slot.
pub trait QuerySlot: fmt::Debug + Send + Sync {
    /// Lets others have it.
    fn lend(&self);

    /// Lets others have it while its query waits for memory, until it is taken again. False: it is
    /// kept, because many have lent theirs for that. Then, or a second time, it may be asked again.
    fn lend_for_memory(&self) -> bool;

    /// Takes it again, before those that have had none yet. False: `go_on`, which is asked some
    /// times a second, said no before there was one.
    fn take_again(&self, go_on: &dyn Fn() -> bool) -> bool;
}

/// How long endpoints are waited for in all, by queries that share this.
#[derive(Debug)]
pub struct RemoteWait {
    most: Duration,
    waited_ns: AtomicU64,
}

impl RemoteWait {
    /// So long at most.
    pub fn new(most: Duration) -> Self {
        Self { most, waited_ns: AtomicU64::new(0) }
    }

    /// Some more waiting.
    pub(crate) fn add(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let add = |waited: u64| Some(waited.saturating_add(ns));
        let _ = self.waited_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Whether it was too much: nothing more is to be asked, or waited for.
    pub(crate) fn is_over(&self) -> bool {
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed)) > self.most
    }

    /// The fault of what comes after that.
    pub(crate) fn fault(&self) -> RemoteFault {
        let why =
            format!("the update has waited for endpoints for {:?}, and others for the update", self.most);
        RemoteFault { kind: RemoteFaultKind::UpdateLate, why }
    }
}

/// A question for an endpoint.
#[derive(Clone, Debug)]
pub struct RemoteQuestion {
    /// The endpoint's address.
    pub endpoint: String,
    /// A query that selects `variables`.
    pub text: String,
    /// At least one.
    pub variables: Vec<String>,
}

/// The rows of an answer. When it is dropped before its end, it is wanted no more.
pub trait RemoteAnswer: Send {
    /// The next part, if there is one in time.
    ///
    /// # Errors
    /// The endpoint gives no, or no whole, answer.
    fn next(&mut self, wait: Duration) -> Result<RemotePart, RemoteFault>;
}

/// A part of an answer.
#[derive(Debug)]
pub enum RemotePart {
    /// Rows, their values in the order of the variables of the question.
    Rows(Vec<Vec<Option<Term>>>),
    /// Nothing has come yet.
    Waiting,
    /// All rows have come.
    End(RemoteUse),
}

/// Work that was done for answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteUse {
    /// Requests that were sent.
    pub requests: u64,
    /// Rows that came.
    pub rows: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// From questions to the ends of their answers.
    pub time: Duration,
}

impl std::ops::AddAssign for RemoteUse {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.time += other.time;
    }
}

/// All that an endpoint was asked.
#[derive(Clone, Debug, Default)]
pub struct RemoteTotals {
    /// Scheme, host and port.
    pub endpoint: String,
    /// Requests, rows, bytes and time.
    pub done: RemoteUse,
    /// Requests that were sent again.
    pub retries: u64,
    /// Questions that ended with an error.
    pub failed: u64,
}

/// A document elsewhere.
pub struct RemoteDocument {
    /// Its type, without parameters.
    pub media_type: Option<String>,
    /// The address that redirects have led to; none where there were none.
    pub moved_to: Option<String>,
    /// Its bytes.
    pub read: Box<dyn Read + Send>,
}

/// Why an endpoint gave no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct RemoteFault {
    /// The sort of reason.
    pub kind: RemoteFaultKind,
    /// The reason, of the endpoint as "it".
    pub why: String,
}

/// Sorts of reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteFaultKind {
    /// No endpoint may be asked.
    NoneAllowed,
    /// This one may not.
    NotAllowed,
    /// The machine it is on may not be reached.
    Private,
    /// It has not answered in time.
    Late,
    /// An update has waited for endpoints as long as it may.
    UpdateLate,
    /// The question was too long for it.
    TooLong,
    /// It gave no answer, or not the one to the question.
    Failed,
}

impl RemoteFault {
    /// Where nothing may be asked.
    pub(crate) fn none_allowed() -> Self {
        Self { kind: RemoteFaultKind::NoneAllowed, why: "no endpoint may be asked".to_owned() }
    }

    /// Of an answer that is not one to the question.
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self { kind: RemoteFaultKind::Failed, why: why.into() }
    }
}
