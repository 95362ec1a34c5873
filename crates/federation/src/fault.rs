//! Why there is no answer, or no whole one.

use std::net::IpAddr;
use std::time::Duration;

use snowmelt_base::printable;

/// Why an endpoint gave no (whole) answer. The text speaks of the endpoint as "it".
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Its name is not one of HTTP.
    #[error("it is no address of HTTP: {0}")]
    NotAnAddress(&'static str),
    /// No prefix is allowed at all.
    #[error("no endpoint may be asked")]
    NoneAllowed,
    /// It has none of the prefixes.
    #[error("it is none of those that may be asked")]
    NotAllowed,
    /// It is on a machine that may not be reached.
    #[error("{host} is {address}, which is no public address and was not named")]
    Private {
        /// Its name.
        host: String,
        /// The address that is not allowed.
        address: IpAddr,
    },
    /// Its name has no address.
    #[error("{host} cannot be found: {why}")]
    Unknown {
        /// Its name.
        host: String,
        /// The system's answer.
        why: String,
    },
    /// There is no connection to it.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// A connection that should be encrypted has nothing to check it by.
    #[error("no certificates of authorities are here to check it by")]
    NoAuthorities,
    /// It has not gone on in time.
    #[error("it did not answer within {0:?}")]
    Late(Duration),
    /// Its place among the requests under way did not come in time.
    #[error("{under_way} requests are under way, and none ended within {waited:?}")]
    Busy {
        /// Requests under way.
        under_way: usize,
        /// How long this one waited.
        waited: Duration,
    },
    /// It refused, or failed.
    #[error("it answered {status}{said}")]
    Status {
        /// As HTTP numbers it.
        status: u16,
        /// The beginning of its words, with a separator; empty where it had none.
        said: String,
    },
    /// It sends its clients to a place that is no place.
    #[error("it sends its clients elsewhere, and does not say where")]
    Nowhere,
    /// It sends its clients on and on.
    #[error("it sends its clients elsewhere more than {0} times")]
    Redirects(usize),
    /// It sends its clients to a place that may not be asked.
    #[error("it sends its clients to {to}: {why}")]
    Redirected {
        /// The place.
        to: String,
        /// Why that may not be asked.
        why: Box<Fault>,
    },
    /// It answered with something else.
    #[error("it answered with {0}, and not with results of a query")]
    MediaType(String),
    /// The text of its answer is wrong.
    #[error("its answer cannot be read: {0}")]
    Malformed(String),
    /// Its answer ended before its end.
    #[error("its answer broke off: {0}")]
    BrokenOff(String),
    /// Its answer ends with the connection, and in its format a cut could not be seen.
    #[error("its answer has no length, and a cut in it could not be seen")]
    NoEnd,
    /// Its answer is longer than any may be.
    #[error("its answer is longer than {0} bytes")]
    TooLong(u64),
    /// Its answer has other variables.
    #[error("it was asked for {asked} and answered with {answered}")]
    Variables {
        /// The variables of the query.
        asked: String,
        /// Those of the answer.
        answered: String,
    },
    /// The reader of the answer has gone.
    #[error("the request was cancelled")]
    Cancelled,
}

/// Characters of a text in a fault; an endpoint may have written it.
const MOST_SHOWN: usize = 300;

fn shown(text: String) -> String {
    let end = text.char_indices().nth(MOST_SHOWN).map(|(at, _)| at);
    let begin = printable::line(&text[..end.unwrap_or(text.len())]);
    // an escape is longer than its character
    let begin: String = begin.chars().take(MOST_SHOWN).collect();
    if end.is_some() { begin + "…" } else { begin }
}

impl Fault {
    /// Its texts as they are shown: in one line, and not long.
    pub(crate) fn cut(self) -> Self {
        match self {
            Self::Unknown { host, why } => Self::Unknown { host: shown(host), why: shown(why) },
            Self::Unreachable(why) => Self::Unreachable(shown(why)),
            Self::Status { status, said } => Self::Status { status, said: shown(said) },
            Self::Redirected { to, why } => Self::Redirected { to: shown(to), why: Box::new(why.cut()) },
            Self::MediaType(name) => Self::MediaType(shown(name)),
            Self::Malformed(why) => Self::Malformed(shown(why)),
            Self::BrokenOff(why) => Self::BrokenOff(shown(why)),
            Self::Variables { asked, answered } => {
                Self::Variables { asked: shown(asked), answered: shown(answered) }
            }
            Self::Private { host, address } => Self::Private { host: shown(host), address },
            Self::NotAnAddress(_)
            | Self::NoneAllowed
            | Self::NotAllowed
            | Self::NoAuthorities
            | Self::Late(_)
            | Self::Busy { .. }
            | Self::Nowhere
            | Self::Redirects(_)
            | Self::NoEnd
            | Self::TooLong(_)
            | Self::Cancelled => self,
        }
    }

    /// Whether another request, with fewer values, may have an answer.
    pub fn is_of_length(&self) -> bool {
        matches!(self, Self::Status { status: 413 | 414 | 431, .. })
    }

    /// Whether it is refused here, without a request.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::NotAnAddress(_) | Self::NoneAllowed | Self::NotAllowed | Self::Private { .. } => true,
            Self::Redirected { why, .. } => why.is_refusal(),
            _ => false,
        }
    }

    /// Whether a limit on time or on requests ended it.
    pub fn is_of_time(&self) -> bool {
        matches!(self, Self::Late(_) | Self::Busy { .. })
    }
}
