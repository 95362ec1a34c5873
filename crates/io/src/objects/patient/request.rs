//! A request with its attempts, and the meaning of an answer for it.
//!
//! Gets, lists, deletes and puts without a condition are tried again after an error that passes.
//! A put on a condition is not, unless the store says that it did nothing: it may have happened,
//! and would then be refused because of itself. The next attempt is a get that finds out:
//!
//! | condition | found                   | meaning                                          |
//! |-----------|-------------------------|--------------------------------------------------|
//! | `Is`      | the version to replace  | it did not happen: it is tried again             |
//! | both      | its own bytes           | it happened: a success, with the version found   |
//! | `Absent`  | no object               | it did not happen: it is tried again             |
//! | both      | anything else           | another one was faster, or has replaced it since |
//!
//! A put that was given up may still happen when it is tried again. Then one of both is refused,
//! and the next get finds its bytes. Two writers that put the same bytes on the same condition may
//! both be told of success, so objects that decide between writers must differ. A put that happened
//! and was replaced before it was looked for is told as one that did not: `Changed`.
//!
//! A put that fails with "asked too often" did not happen: that error does not take the place of an
//! earlier one. The fate of one that fails with another error that passes is unknown.

use crate::objects::{Answer, Ask, Done, ObjectError, ObjectErrorKind, Ongoing, PutIf};

/// The same short answer from the store so often in a row is the truth: the range reaches beyond
/// the end of the object.
const SHORT_ANSWERS: u32 = 3;

/// A request of a caller.
pub(super) struct PatientRequest {
    pub ask: Ask,
    pub done: Done,
    pub begun_ns: u64,
    /// When its first attempt began.
    pub first_ns: Option<u64>,
    pub stage: Stage,
    pub attempts: Vec<Attempt>,
    pub failures: u32,
    pub last_error: Option<ObjectError>,
    /// A second attempt is made at this time.
    pub hedge_ns: Option<u64>,
    /// The time it is entered with in the list of times.
    pub next_ns: u64,
    /// A put on a condition that may have happened.
    pub is_unsure: bool,
    /// The next attempt, or the outstanding one, finds out whether it did.
    pub finds_out: bool,
    /// Short answers in a row that were the same.
    shorts: u32,
}

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits for its turn.
    Ready,
    /// Has attempts outstanding.
    Asking,
    /// Waits before the next attempt.
    Pausing { until_ns: u64 },
}

/// An attempt that is outstanding.
pub(super) struct Attempt {
    pub number: u64,
    pub begun_ns: u64,
    /// It is given up then.
    pub until_ns: u64,
    pub is_hedge: bool,
    /// None until the store has taken it.
    pub ongoing: Option<Ongoing>,
}

/// The meaning of an answer.
pub(super) enum Verdict {
    /// The request is over.
    Over(Result<Answer, ObjectError>),
    /// Over: the put whose answer was lost had happened.
    Found(Answer),
    /// Another attempt, after a pause.
    Again,
}

impl PatientRequest {
    pub(super) fn new(ask: Ask, done: Done, begun_ns: u64) -> PatientRequest {
        PatientRequest {
            ask,
            done,
            begun_ns,
            first_ns: None,
            stage: Stage::Ready,
            attempts: Vec::new(),
            failures: 0,
            last_error: None,
            hedge_ns: None,
            next_ns: u64::MAX,
            is_unsure: false,
            finds_out: false,
            shorts: 0,
        }
    }

    /// The request of the next attempt.
    pub(super) fn next_ask(&self) -> Ask {
        if self.finds_out { Ask::Get { key: self.ask.key().clone(), range: None } } else { self.ask.clone() }
    }

    /// Bytes that an attempt moves, where they are known.
    pub(super) fn bytes(&self) -> Option<u64> {
        match &self.ask {
            Ask::Get { range, .. } => range.as_ref().map(|range| range.end - range.start),
            Ask::Put { bytes, .. } => Some(bytes.len() as u64),
            Ask::Delete { .. } | Ask::List { .. } => Some(0),
        }
    }

    /// Takes note of the store's own word that an object is too short.
    pub(super) fn count_shorts(&mut self, answer: &Result<Answer, ObjectError>) {
        self.shorts = match (answer, &self.last_error) {
            (Err(e), Some(last)) if is_short(e) && e == last => self.shorts + 1,
            (Err(e), _) if is_short(e) => 1,
            _ => 0,
        };
    }

    /// Judges the answer to an attempt.
    pub(super) fn judge(&mut self, answer: Result<Answer, ObjectError>) -> Verdict {
        if self.finds_out { self.judge_found(answer) } else { self.judge_asked(answer) }
    }

    fn judge_asked(&mut self, answer: Result<Answer, ObjectError>) -> Verdict {
        let error = match answer {
            Ok(answer) => return Verdict::Over(Ok(answer)),
            Err(error) => error,
        };
        let is_put_on_condition = matches!(&self.ask, Ask::Put { only: PutIf::Absent | PutIf::Is(_), .. });
        let is_refused_by_itself = self.is_unsure && error.kind == ObjectErrorKind::Changed;
        let is_truth = self.shorts >= SHORT_ANSWERS;
        if is_truth || !(error.kind.is_passing() || is_refused_by_itself) {
            return Verdict::Over(Err(error));
        }
        // A store that is asked too often has done nothing.
        self.is_unsure |= is_put_on_condition && error.kind != ObjectErrorKind::TooOften;
        self.finds_out = self.is_unsure;
        let says_nothing = error.kind == ObjectErrorKind::TooOften && self.last_error.is_some();
        if !is_refused_by_itself && !says_nothing {
            self.last_error = Some(error);
        }
        Verdict::Again
    }

    /// Judges the object found under the key of a put on a condition.
    fn judge_found(&mut self, answer: Result<Answer, ObjectError>) -> Verdict {
        let Ask::Put { bytes: own, only, .. } = &self.ask else {
            unreachable!("only puts on a condition are looked for")
        };
        let did_not_happen = match (&answer, only) {
            (Ok(Answer::Got { bytes, version, .. }), only) => {
                let is_replaced = *only != PutIf::Is(version.clone());
                if is_replaced && **bytes == **own {
                    return Verdict::Found(Answer::Put(version.clone()));
                }
                !is_replaced
            }
            (Err(e), PutIf::Absent) => e.kind == ObjectErrorKind::Missing,
            _ => false,
        };
        match answer {
            _ if did_not_happen => {
                self.finds_out = false;
                Verdict::Again
            }
            Err(e) if e.kind.is_passing() => Verdict::Again,
            // Objects may be written that may not be read: its fate stays unknown.
            Err(e) if e.kind != ObjectErrorKind::Missing => {
                Verdict::Over(Err(self.last_error.take().unwrap_or(e)))
            }
            _ => Verdict::Over(Err(self.changed())),
        }
    }

    fn changed(&self) -> ObjectError {
        let last = self.last_error.as_ref().expect("a put is looked for after an error");
        ObjectError { kind: ObjectErrorKind::Changed, ..last.clone() }
    }
}

fn is_short(error: &ObjectError) -> bool {
    matches!(error.kind, ObjectErrorKind::Short { .. })
}

/// The answer, if it is one to `ask` and whole.
///
/// # Errors
/// The body is too short, or it is no answer to the request.
pub(super) fn sound(ask: &Ask, answer: Answer) -> Result<Answer, ObjectErrorKind> {
    match (ask, &answer) {
        (Ask::Get { range, .. }, Answer::Got { bytes, object_bytes, .. }) => {
            let wanted = range.as_ref().map_or(*object_bytes, |range| range.end - range.start);
            let got = bytes.len() as u64;
            if got == wanted { Ok(answer) } else { Err(ObjectErrorKind::Short { got, wanted }) }
        }
        (Ask::Put { .. }, Answer::Put(_))
        | (Ask::Delete { .. }, Answer::Deleted)
        | (Ask::List { .. }, Answer::Listed(_)) => Ok(answer),
        _ => Err(ObjectErrorKind::Unavailable("the answer is to another request".into())),
    }
}
