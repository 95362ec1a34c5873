//! Requests that get no answer: a status and a line that says why and what to do.

use hyper::StatusCode;
use snowmelt_sparql::QueryError;

/// A refusal: status and one line that says what to do.
pub type Refusal = (StatusCode, String);

/// A refusal on its way through code that knows input and output errors only.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.1)]
pub struct Refused(pub Refusal);

impl From<Refused> for std::io::Error {
    fn from(refused: Refused) -> Self {
        Self::other(refused)
    }
}

/// The refusal of a change that finds no room; the device is not named to clients.
pub(crate) fn no_room() -> Refusal {
    (StatusCode::INSUFFICIENT_STORAGE, "there is no room on the server's device".to_owned())
}

/// The refusal that an error of a query or an update is.
pub(crate) fn refusal(error: &QueryError) -> Refusal {
    let is_of_room = match error {
        QueryError::Store(error) => error.is_of_room(),
        QueryError::Load(error) => error.is_of_room(),
        _ => false,
    };
    if is_of_room {
        return no_room();
    }
    let status = match error {
        QueryError::Parse { .. }
        | QueryError::TooLarge { .. }
        | QueryError::Unsupported { .. }
        | QueryError::UsingTwice => StatusCode::BAD_REQUEST,
        QueryError::LoadRefused { .. } | QueryError::Forbidden { .. } => StatusCode::FORBIDDEN,
        QueryError::OperationTooLong { .. } | QueryError::TextMemory { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        QueryError::GraphExists(_) => StatusCode::CONFLICT,
        QueryError::Unwritable { .. } => StatusCode::NOT_ACCEPTABLE,
        QueryError::Load(error) if error.is_of_input() => StatusCode::BAD_REQUEST,
        QueryError::TermTooLong { .. } | QueryError::Search { .. } => StatusCode::BAD_REQUEST,
        error if error.is_of_limits() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let limit =
        if matches!(error, QueryError::Timeout(_)) { "; the server's limit is --timeout" } else { "" };
    (status, format!("{error}{limit}"))
}
