//! The seam to object stores: byte strings under keys, written whole, read by ranges.
//!
//! A store answers each [`Ask`] once, from any thread, so that hundreds can be on their way without
//! a thread for each. Objects do not change once written, but for the few that are replaced by a
//! conditional put ([`PutIf::Is`]): of two that replace the same version, one is refused.
//!
//! | asked | answered |
//! |---|---|
//! | get of a key, or of a range of its bytes | the bytes, the length of the whole object, its version |
//! | put of a key, on a condition | the new version |
//! | delete of a key, whether it is there or not | nothing |
//! | list of the keys that begin with a prefix | keys, lengths, times; at most so many, ascending |

pub(crate) mod bounds;
pub(crate) mod faulty;
pub(crate) mod folder;
pub(crate) mod memory;
pub(crate) mod patient;
pub(crate) mod reply;
pub(crate) mod timed;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// An object store, or a part of one: all keys are relative to its prefix.
pub trait Objects: Send + Sync {
    /// Its address, as `s3://bucket/prefix`: never with a secret.
    fn name(&self) -> &Arc<str>;

    /// Begins a request. `done` is called once, from any thread, also from within this call, and
    /// must not wait; not at all once the answered handle was dropped, which gives the request up.
    fn begin(&self, ask: Ask, done: Done) -> Ongoing;
}

/// Hears the answer.
pub type Done = Box<dyn FnOnce(Result<Answer, ObjectError>) + Send>;

/// A request on its way; dropped, it is given up as far as that is possible. A put or delete that
/// is given up may still happen.
#[must_use = "a request is given up when its handle is dropped"]
pub struct Ongoing(Option<Box<dyn FnOnce() + Send>>);

impl Ongoing {
    /// A request that `cancel` gives up.
    pub fn new(cancel: impl FnOnce() + Send + 'static) -> Ongoing {
        Ongoing(Some(Box::new(cancel)))
    }

    /// A request that is over already, or that cannot be given up.
    pub fn over() -> Ongoing {
        Ongoing(None)
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel();
        }
    }
}

/// A request to an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Bytes of an object: those of a range, which must not be empty, or all.
    Get {
        /// Its key.
        key: Arc<str>,
        /// Of its bytes. One that reaches beyond the end: [`ObjectErrorKind::Short`].
        range: Option<Range<u64>>,
    },
    /// Writes an object.
    Put {
        /// Its key.
        key: Arc<str>,
        /// Its bytes.
        bytes: Arc<[u8]>,
        /// On this condition.
        only: PutIf,
    },
    /// Deletes an object. One that is not there is deleted already.
    Delete {
        /// Its key.
        key: Arc<str>,
    },
    /// Lists keys in ascending order.
    List {
        /// They begin with this.
        prefix: Arc<str>,
        /// And come after this one.
        after: Option<Arc<str>>,
        /// At most so many; a store may answer fewer, but none only at the end.
        most: usize,
    },
}

impl Ask {
    /// The key or prefix that it is about.
    pub fn key(&self) -> &Arc<str> {
        match self {
            Ask::Get { key, .. } | Ask::Put { key, .. } | Ask::Delete { key } => key,
            Ask::List { prefix, .. } => prefix,
        }
    }

    /// Its name in messages and meters.
    pub fn name(&self) -> &'static str {
        match self {
            Ask::Get { .. } => "get",
            Ask::Put { .. } => "put",
            Ask::Delete { .. } => "delete",
            Ask::List { .. } => "list",
        }
    }
}

/// Condition of a put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutIf {
    /// None.
    Always,
    /// No object has the key.
    Absent,
    /// The object with the key is of this version.
    Is(Version),
}

/// A version of an object, as its store names it (ETag).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(pub Arc<str>);

/// The answer to an [`Ask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To a get.
    Got {
        /// The bytes asked for.
        bytes: Vec<u8>,
        /// Length of the whole object.
        object_bytes: u64,
        /// Its version.
        version: Version,
    },
    /// To a put: the version that it made.
    Put(Version),
    /// To a delete.
    Deleted,
    /// To a list.
    Listed(Vec<Listed>),
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: Arc<str>,
    /// Its length.
    pub bytes: u64,
    /// When it was written, milliseconds since 1970, by the clock of the store.
    pub written_unix_ms: u64,
}

/// The failure of a request to an object store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {ask} {key} of {store}: {kind}")]
pub struct ObjectError {
    /// Name of the store.
    pub store: Arc<str>,
    /// The request, as [`Ask::name`] has it.
    pub ask: &'static str,
    /// The key.
    pub key: Arc<str>,
    /// The reason.
    pub kind: ObjectErrorKind,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectErrorKind {
    /// No object has the key.
    #[error("there is no such object")]
    Missing,
    /// The condition of a put does not hold.
    #[error("another one has written it meanwhile")]
    Changed,
    /// Too many requests: the store wants fewer.
    #[error("the store is asked too often")]
    TooOften,
    /// Credentials are missing, wrong or expired, or do not allow it.
    #[error("access is refused: {0}")]
    Refused(String),
    /// No answer in time.
    #[error("no answer within {ms} ms")]
    Late {
        /// The deadline.
        ms: u64,
    },
    /// The answer ended before all bytes had come.
    #[error("only {got} of {wanted} bytes came")]
    Short {
        /// Bytes that came.
        got: u64,
        /// Bytes asked for.
        wanted: u64,
    },
    /// The store, or the way to it, fails at the moment.
    #[error("{0}")]
    Unavailable(String),
    /// The store cannot do it, in words: conditional puts, for example.
    #[error("{0}")]
    Unsupported(String),
    /// An address or setting that cannot be used, in words.
    #[error("{0}")]
    Invalid(String),
}

impl ObjectError {
    /// The failure of `ask` at the store called `store`.
    pub fn new(store: &Arc<str>, ask: &Ask, kind: ObjectErrorKind) -> ObjectError {
        ObjectError { store: store.clone(), ask: ask.name(), key: ask.key().clone(), kind }
    }
}

impl ObjectErrorKind {
    /// True when the same request may be answered later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::TooOften | Self::Late { .. } | Self::Short { .. } | Self::Unavailable(_) => true,
            Self::Missing | Self::Changed | Self::Refused(_) | Self::Unsupported(_) | Self::Invalid(_) => {
                false
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Asks, and waits in `clock`'s time for the answer.
///
/// # Errors
/// The request fails.
pub fn ask(objects: &dyn Objects, clock: &Clock, ask: Ask) -> Result<Answer, ObjectError> {
    ask_all(objects, clock, vec![ask]).pop().expect("an answer to each request")
}

/// Asks for all of them at once, and waits in `clock`'s time for the answers, which come in the
/// order of the requests.
pub fn ask_all(objects: &dyn Objects, clock: &Clock, asks: Vec<Ask>) -> Vec<Result<Answer, ObjectError>> {
    struct Answers {
        list: Mutex<Vec<Option<Result<Answer, ObjectError>>>>,
        come: EventCount,
    }
    let list = Mutex::new(asks.iter().map(|_| None).collect());
    let answers = Arc::new(Answers { list, come: EventCount::named(clock, "an object store") });
    let begin = |(i, ask): (usize, Ask)| {
        let answers = answers.clone();
        let done = move |answer| {
            answers.list.lock()[i] = Some(answer);
            answers.come.notify_all();
        };
        objects.begin(ask, Box::new(done))
    };
    let _ongoing: Vec<Ongoing> = asks.into_iter().enumerate().map(begin).collect();
    answers.come.wait_until(|| answers.list.lock().iter().all(Option::is_some));
    let list = std::mem::take(&mut *answers.list.lock());
    list.into_iter().map(|answer| answer.expect("each answer was waited for")).collect()
}
