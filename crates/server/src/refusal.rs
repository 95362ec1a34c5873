//! Requests that get no answer: a status and a line that says why and what to do.

use hyper::StatusCode;
use snowmelt_graph::load::{DocumentSetting, LoadError};
use snowmelt_graph::{GraphError, Namespaces};
use snowmelt_sparql::{LoadRefusal, QueryError, RemoteFaultKind, SparqlLanguage};
use snowmelt_syntax_help::{Report, likely_cause};

/// Why a request gets no answer, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Its status.
    pub status: StatusCode,
    /// One line.
    pub message: String,
    /// The faults of a query's or update's text, if they are the reason: as
    /// [`Report::to_json`] has them.
    pub faults: Option<Box<serde_json::Value>>,
}

impl Refusal {
    /// A refusal.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), faults: None }
    }
}

/// For code that knows input and output errors only.
impl From<Refusal> for std::io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::other(refusal)
    }
}

/// The refusal of a change that finds no room; the device is not named to clients.
pub(crate) fn no_room() -> Refusal {
    Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "there is no room on the server's device")
}

/// The refusal that an error of a query or an update is.
pub(crate) fn refusal(error: &QueryError) -> Refusal {
    refusal_of_text(error, &Namespaces::default())
}

/// The refusal that an error of a text is; these prefixes may be meant.
pub(crate) fn refusal_of_text(error: &QueryError, prefixes: &Namespaces) -> Refusal {
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
        | QueryError::WrongLanguage { .. }
        | QueryError::TooLarge { .. }
        | QueryError::Unsupported { .. }
        | QueryError::Untagged { .. }
        | QueryError::UsingTwice => StatusCode::BAD_REQUEST,
        QueryError::Service { fault, .. } | QueryError::LoadFailed { fault, .. } => of_endpoint(fault.kind).0,
        QueryError::ServiceName { .. } => StatusCode::BAD_REQUEST,
        QueryError::LoadRefused { .. } | QueryError::Forbidden { .. } => StatusCode::FORBIDDEN,
        QueryError::OperationTooLong { .. } | QueryError::TextMemory { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        QueryError::GraphExists(_) => StatusCode::CONFLICT,
        QueryError::Unwritable { .. } | QueryError::Store(GraphError::NotInJsonLd) => {
            StatusCode::NOT_ACCEPTABLE
        }
        QueryError::Load(error) if error.is_of_input() => StatusCode::BAD_REQUEST,
        QueryError::Store(GraphError::TooDeep { .. }) => StatusCode::BAD_REQUEST,
        QueryError::TermTooLong { .. } | QueryError::Search { .. } | QueryError::Count => {
            StatusCode::BAD_REQUEST
        }
        error if error.is_of_limits() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let prefixes: Vec<(String, String)> =
        prefixes.iter().map(|(name, iri)| (name.to_owned(), iri.to_owned())).collect();
    let message = told(error, &prefixes);
    Refusal { faults: faults(error, &prefixes).map(Box::new), ..Refusal::new(status, message) }
}

/// The faults of a text, for programs.
fn faults(error: &QueryError, prefixes: &[(String, String)]) -> Option<serde_json::Value> {
    let (code, line, column) = match error {
        QueryError::Parse { syntax: Some(syntax), .. } => {
            return Some(Report::new(syntax, prefixes).to_json());
        }
        QueryError::Parse { line, column, .. } => ("unexpected", line, column),
        QueryError::WrongLanguage { line, column, .. } => ("wrong-language", line, column),
        QueryError::Unsupported { line, column, .. } => ("unsupported", line, column),
        QueryError::TooLarge { line, column, .. } | QueryError::OperationTooLong { line, column, .. } => {
            ("limit", line, column)
        }
        _ => return None,
    };
    let said = error.to_string();
    let message = said.split_once(": ").map_or(said.as_str(), |(_place, message)| message);
    Some(serde_json::json!([{ "code": code, "message": message, "line": line, "column": column }]))
}

const LONGEST_TERM: &str = "; the server's limit is --longest-term";
const DAMAGE: &str = "; restore the database from a copy";
const MEMORY: &str = "; give the server more with --memory";

/// Advice to clients for an error of a document, with its own separator.
pub(crate) fn advice_of_load(error: &LoadError) -> &'static str {
    match error {
        LoadError::Graph(error) => advice_of_graph(error),
        LoadError::Store(error) if error.is_damage() => DAMAGE,
        error if error.is_of_memory() => MEMORY,
        error => match error.setting() {
            Some(DocumentSetting::LongestTerm) => LONGEST_TERM,
            Some(DocumentSetting::Memory) => MEMORY,
            Some(DocumentSetting::Contexts) => "; the server knows those of --context",
            None => "",
        },
    }
}

fn advice_of_graph(error: &GraphError) -> &'static str {
    match error {
        GraphError::TermTooLong { .. } => LONGEST_TERM,
        error if error.is_of_memory() => MEMORY,
        error if error.is_damage() => DAMAGE,
        _ => "",
    }
}

/// Status and advice for an endpoint elsewhere that gave no answer.
fn of_endpoint(kind: RemoteFaultKind) -> (StatusCode, &'static str) {
    match kind {
        RemoteFaultKind::NoneAllowed | RemoteFaultKind::NotAllowed => (
            StatusCode::FORBIDDEN,
            "; the server allows endpoints with --allow-service, a token with services",
        ),
        RemoteFaultKind::Private => {
            (StatusCode::FORBIDDEN, "; the server allows private addresses with --service-address")
        }
        RemoteFaultKind::Late => (StatusCode::GATEWAY_TIMEOUT, "; the server's limit is --service-timeout"),
        RemoteFaultKind::UpdateLate => {
            (StatusCode::GATEWAY_TIMEOUT, "; the server's limit is --service-wait")
        }
        RemoteFaultKind::TooLong | RemoteFaultKind::Failed => (StatusCode::BAD_GATEWAY, ""),
    }
}

/// An error with advice to clients: the server's switches, and parts of its protocol.
fn told(error: &QueryError, prefixes: &[(String, String)]) -> String {
    let advice = match error {
        QueryError::Parse { syntax: Some(syntax), .. } => {
            let cause = likely_cause(syntax, prefixes).map(|cause| format!("; {cause}"));
            return format!("{error}{}", cause.unwrap_or_default());
        }
        QueryError::Timeout(_) => "; the server's limit is --timeout",
        QueryError::WrongLanguage { found: SparqlLanguage::Query, .. } => "; send it to /sparql",
        QueryError::WrongLanguage { found: SparqlLanguage::Update, .. } => "; POST it to /update",
        QueryError::TooLarge { limit, .. } if !limit.starts_with("query_") => {
            "; the limit follows from --memory: make it smaller, or give the server more"
        }
        QueryError::TooLarge { limit, .. } => {
            let switch = limit.replace('_', "-");
            return format!("{error}; make it smaller, or raise the server's limit (--{switch})");
        }
        QueryError::OperationTooLong { .. } => "; the server's limit is --max-update",
        QueryError::Memory { .. } | QueryError::TooMuch => {
            "; make it smaller, or give the server more with --memory"
        }
        QueryError::TextMemory { .. } => {
            "; make it smaller, send it in several parts, or give the server more with --memory"
        }
        QueryError::Busy { .. } => return format!("the server is {error}; try again later"),
        QueryError::TermTooLong { .. } => LONGEST_TERM,
        QueryError::Store(error) => advice_of_graph(error),
        QueryError::Load(error) => advice_of_load(error),
        QueryError::LoadRefused { why: LoadRefusal::NoFolder, .. } => {
            "; the server allows a folder with --allow-load"
        }
        QueryError::LoadRefused { why: LoadRefusal::OtherFolder, .. } => " (--allow-load)",
        QueryError::Service { fault, .. } | QueryError::LoadFailed { fault, .. } => of_endpoint(fault.kind).1,
        QueryError::UsingTwice => ": leave out using-graph-uri and using-named-graph-uri",
        QueryError::Forbidden { what } => {
            return format!("{what} is not for this user: its token is for some graphs alone");
        }
        _ => "",
    };
    format!("{error}{advice}")
}

#[cfg(test)]
mod tests {
    use snowmelt_sparql::RemoteFault;

    use super::*;

    fn refused(error: QueryError) -> (u16, String) {
        let Refusal { status, message, .. } = refusal(&error);
        (status.as_u16(), message)
    }

    #[test]
    fn clients_are_told_the_limit_of_the_server() {
        let large = QueryError::TooLarge { limit: "query_chain", most: 5, line: 1, column: 2 };
        let (status, told) = refused(large);
        assert!(
            status == 400 && told.contains("query_chain = 5") && told.contains("(--query-chain)"),
            "{told}"
        );
        let (status, told) = refused(QueryError::Store(GraphError::TooDeep { most: 64 }));
        assert!(status == 400 && told.contains("64 levels"), "{told}");
        let memory = QueryError::Memory { share_bytes: 10, what: "a sort" };
        let (status, told) = refused(memory);
        assert!(status == 503 && told.contains("a sort") && told.contains("--memory"), "{told}");
        let document = |setting| {
            let (file, message) = ("the request body".to_owned(), "a fault".to_owned());
            refused(QueryError::Load(LoadError::Syntax { file, line: 2, column: 1, message, setting }))
        };
        let long = "the request body:2:1: a fault; the server's limit is --longest-term".to_owned();
        assert_eq!(document(Some(DocumentSetting::LongestTerm)), (400, long));
        assert_eq!(document(None), (400, "the request body:2:1: a fault".to_owned()));
        let service = |kind| {
            let fault = RemoteFault { kind, why: "it is a fault".to_owned() };
            refused(QueryError::Service { endpoint: "http://e/".to_owned(), fault })
        };
        let (status, told) = service(RemoteFaultKind::NotAllowed);
        assert!(status == 403 && told.contains("<http://e/>: it is a fault; "), "{told}");
        assert!(told.contains("--allow-service"), "{told}");
        assert_eq!(service(RemoteFaultKind::Late).0, 504);
        assert_eq!(service(RemoteFaultKind::Failed), (502, "SERVICE <http://e/>: it is a fault".to_owned()));
        let load = QueryError::LoadRefused { source_iri: "file:///a".to_owned(), why: LoadRefusal::NoFolder };
        let (status, told) = refused(load);
        assert!(status == 403 && told.contains("file:///a") && told.contains("--allow-load"), "{told}");
    }

    #[test]
    fn clients_are_told_in_words_of_the_protocol() {
        let update = QueryError::WrongLanguage { found: SparqlLanguage::Update, line: 1, column: 1 };
        let told = "line 1, column 1: this is an update, not a query; POST it to /update".to_owned();
        assert_eq!(refused(update), (400, told));
        let (status, told) = refused(QueryError::Forbidden { what: "LOAD".to_owned() });
        assert!(status == 403 && told.contains("its token"), "{told}");
        let (status, told) = refused(QueryError::UsingTwice);
        assert!(status == 400 && told.contains("using-graph-uri"), "{told}");
    }
}
