//! Answers that are not written by a query: texts, JSON, failures.

use std::future::Future;
use std::time::Duration;

use hyper::{HeaderMap, Response, StatusCode, header};
use snowmelt_base::tell;
use snowmelt_database::Account;
use snowmelt_database::meters::Activity;
use snowmelt_graph::Namespaces;

use crate::body::{ACTIVITY, AnswerBody, Begun, activity_value};
use crate::coding::CODINGS;
use crate::dataset::folder::DatasetError;
use crate::freshness::VARIES;
use crate::negotiate::{self, Answer};
use crate::page;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::running::Running;
use crate::tokens::Denied;

pub type Answered = Result<HttpResponse, Failure>;
pub type HttpResponse = Response<AnswerBody>;

/// A request without an answer of its own.
pub struct Failure {
    pub why: Why,
    /// The activity on behalf of the request until it failed.
    pub activity: Option<Box<Activity>>,
}

/// Why it has none.
pub enum Why {
    Refused(Refusal),
    /// a method that the resource does not take
    Method(Resource),
    /// the user may not
    Denied(Denied),
    /// its address has so many requests under way, and may have no more
    TooMany(usize),
    /// all slots are taken
    Busy {
        what: &'static str,
        all: usize,
        switch: &'static str,
        wait: Duration,
    },
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { why: Why::Refused(refusal), activity: None }
    }
}

impl From<Why> for Failure {
    fn from(why: Why) -> Self {
        Self { why, activity: None }
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Why::Denied(denied).into()
    }
}

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        let status = match &error {
            DatasetError::Unknown(_) => StatusCode::NOT_FOUND,
            DatasetError::Exists(_) | DatasetError::InUse(_) | DatasetError::Elsewhere { .. } => {
                StatusCode::CONFLICT
            }
            DatasetError::Name(_) => StatusCode::BAD_REQUEST,
            DatasetError::Memory(_) => StatusCode::SERVICE_UNAVAILABLE,
            DatasetError::NoBackups => StatusCode::FORBIDDEN,
            DatasetError::Failed(why) => {
                // It names files, so it goes to the administrator and not to the client.
                tell!("snowmelt: a dataset cannot be had: {why}");
                let message = "the dataset cannot be had; see the log of the server".to_owned();
                return Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message).into();
            }
        };
        Refusal::new(status, error.to_string()).into()
    }
}

impl Failure {
    /// Adds the activity of the account to the failure.
    pub fn with_activity(self, account: &Account) -> Self {
        Self { activity: Some(Box::new(account.activity())), ..self }
    }

    /// The answer: text, or a problem of that media type.
    pub fn response(self, problem: Option<&'static str>) -> HttpResponse {
        let mut response = self.why.told().response(problem);
        if let Some(activity) = &self.activity {
            response.headers_mut().insert(ACTIVITY, activity_value(activity));
        }
        response
    }
}

/// A failure in the words of the protocol.
struct ToldFailure {
    status: StatusCode,
    message: String,
    /// of a text, see [`Refusal::faults`]
    faults: Option<Box<serde_json::Value>>,
    headers: HeaderMap,
}

impl ToldFailure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), faults: None, headers: HeaderMap::new() }
    }

    /// That of a busy server: the request may succeed later.
    fn busy(message: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .with(header::RETRY_AFTER, header::HeaderValue::from_static("1"))
    }

    fn with(mut self, name: header::HeaderName, value: header::HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// One line, or a problem of RFC 9457.
    fn response(self, problem: Option<&'static str>) -> HttpResponse {
        let Self { status, message, faults, headers } = self;
        let mut response = match problem {
            None => text(status, format!("{message}\n")),
            Some(media_type) => {
                let title = status.canonical_reason().unwrap_or_default();
                let mut problem =
                    serde_json::json!({ "title": title, "status": status.as_u16(), "detail": message });
                if let Some(faults) = faults {
                    problem["errors"] = *faults;
                }
                response(status, media_type, AnswerBody::whole(format!("{problem:#}\n")))
            }
        };
        response.headers_mut().extend(headers);
        response
    }
}

impl Why {
    fn told(self) -> ToldFailure {
        match self {
            Self::Refused(Refusal { status, message, faults }) => {
                let told = ToldFailure { faults, ..ToldFailure::new(status, message) };
                match status {
                    StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                        told.with(header::ACCEPT_ENCODING, header::HeaderValue::from_static(CODINGS))
                    }
                    // for caches: another Accept may have an answer
                    StatusCode::NOT_ACCEPTABLE => told.with(header::VARY, VARIES),
                    _ => told,
                }
            }
            Self::Method(resource) => {
                let message = format!("use {}", resource.allow());
                ToldFailure::new(StatusCode::METHOD_NOT_ALLOWED, message).with(header::ALLOW, allow(resource))
            }
            Self::Denied(Denied::Unknown) => {
                let message =
                    "who are you? send a token: Authorization: Bearer TOKEN, or Basic with its name";
                ["Bearer realm=\"snowmelt\"", "Basic realm=\"snowmelt\", charset=\"UTF-8\""]
                    .map(header::HeaderValue::from_static)
                    .into_iter()
                    .fold(ToldFailure::new(StatusCode::UNAUTHORIZED, message), |told, scheme| {
                        told.with(header::WWW_AUTHENTICATE, scheme)
                    })
            }
            Self::Denied(Denied::Forbidden(needed)) => {
                let message = format!("this needs a token with the rights '{}'", needed.name());
                ToldFailure::new(StatusCode::FORBIDDEN, message)
            }
            Self::Denied(Denied::Dataset) => {
                ToldFailure::new(StatusCode::FORBIDDEN, "this token is for other datasets")
            }
            Self::Denied(Denied::Twice) => {
                let message = "the request has two Authorization headers: send one";
                ToldFailure::new(StatusCode::BAD_REQUEST, message)
            }
            Self::TooMany(most) => ToldFailure::busy(format!(
                "this address has {most} requests under way, and may have no more (--connections-per-address)"
            )),
            Self::Busy { what, all, switch, wait } => ToldFailure::busy(format!(
                "{all} {what} are running ({switch}), and none has ended in {wait:?} (--wait): try again"
            )),
        }
    }
}

pub fn not_acceptable(kind: Answer) -> Refusal {
    let message = format!("none of the accepted types is on offer: {}", negotiate::offered(kind));
    Refusal::new(StatusCode::NOT_ACCEPTABLE, message)
}

pub fn internal(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

pub fn typed(media_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type))])
}

pub fn allow(resource: Resource) -> header::HeaderValue {
    resource.allow().parse().expect("names of methods")
}

pub fn json(value: &serde_json::Value) -> HttpResponse {
    let mut text = serde_json::to_vec_pretty(value).expect("a tree of values is written");
    text.push(b'\n');
    response(StatusCode::OK, "application/json", AnswerBody::whole(text))
}

/// Adds the activity of the account to the failure, if it is one.
pub async fn with_account<T>(
    answered: impl Future<Output = Result<T, Failure>>,
    account: &Account,
) -> Result<T, Failure> {
    answered.await.map_err(|failure| failure.with_activity(account))
}

pub fn bad(message: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message)
}

pub fn lost() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the request ended without an answer; see the log")
}

pub fn accept(headers: &HeaderMap) -> Option<String> {
    headers.get(header::ACCEPT).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
}

pub fn response(status: StatusCode, media_type: &'static str, body: AnswerBody) -> HttpResponse {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, media_type)
        .body(body)
        .expect("status and header are valid constants")
}

/// The answer that a query has begun.
pub fn begun(Begun { status, headers, body, activity }: Begun, running: Running) -> HttpResponse {
    let mut response = Response::new(body.while_running(running));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    let (name, value) = match &activity {
        Some(activity) => (ACTIVITY, activity_value(activity)),
        None => (header::TRAILER, header::HeaderValue::from_static("Snowmelt-Activity")),
    };
    response.headers_mut().insert(name, value);
    response
}

/// Takes the activity out of an answer: its header, and the announcement of a trailer.
pub fn without_activity(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().remove(ACTIVITY);
    response.headers_mut().remove(header::TRAILER);
    response
}

/// A page for people, whose query begins with these prefixes.
pub fn page_of(mount: &str, endpoint: &str, prefixes: &Namespaces) -> HttpResponse {
    let form = page::form(mount, endpoint, prefixes);
    response(StatusCode::OK, "text/html; charset=utf-8", AnswerBody::whole(form))
}

/// Adds warnings to an answer: each a header, in ASCII, some of many.
pub fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    /// Most warnings, and bytes of each.
    const MOST: usize = 8;
    const MOST_BYTES: usize = 500;
    for warning in warnings.iter().take(MOST) {
        let ascii = warning.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).take(MOST_BYTES);
        let value = ascii.collect::<String>().parse().expect("printable ASCII is a value");
        headers.append(WARNING, value);
    }
}

/// The header of a warning.
const WARNING: header::HeaderName = header::HeaderName::from_static("snowmelt-warning");

/// Adds the activity of the account to an answer, as a header.
pub fn with_activity(mut response: HttpResponse, account: &Account) -> HttpResponse {
    response.headers_mut().insert(ACTIVITY, activity_value(&account.activity()));
    response
}

/// The value of a parameter of an address.
pub fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut all = form_urlencoded::parse(query?.as_bytes());
    all.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

pub fn empty(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(AnswerBody::empty());
    *response.status_mut() = status;
    response
}

pub fn text(status: StatusCode, message: impl Into<String>) -> HttpResponse {
    response(status, "text/plain; charset=utf-8", AnswerBody::whole(message.into()))
}
