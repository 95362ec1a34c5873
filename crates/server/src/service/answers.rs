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

    pub fn response(self) -> HttpResponse {
        let mut response = self.why.response();
        if let Some(activity) = &self.activity {
            response.headers_mut().insert(ACTIVITY, activity_value(activity));
        }
        response
    }
}

impl Why {
    fn response(self) -> HttpResponse {
        match self {
            Self::Refused(Refusal { status, message }) => {
                let mut refused = text(status, format!("{message}\n"));
                if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
                    let codings = header::HeaderValue::from_static(CODINGS);
                    refused.headers_mut().insert(header::ACCEPT_ENCODING, codings);
                }
                refused
            }
            Self::Method(resource) => {
                let message = format!("use {}\n", resource.allow());
                let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, message);
                refused.headers_mut().insert(header::ALLOW, allow(resource));
                refused
            }
            Self::Denied(Denied::Unknown) => {
                let message =
                    "who are you? send a token: Authorization: Bearer TOKEN, or Basic with its name\n";
                let mut refused = text(StatusCode::UNAUTHORIZED, message);
                for scheme in ["Bearer realm=\"snowmelt\"", "Basic realm=\"snowmelt\", charset=\"UTF-8\""] {
                    let scheme = header::HeaderValue::from_static(scheme);
                    refused.headers_mut().append(header::WWW_AUTHENTICATE, scheme);
                }
                refused
            }
            Self::Denied(Denied::Forbidden(needed)) => {
                let message = format!("this needs a token with the rights '{}'\n", needed.name());
                text(StatusCode::FORBIDDEN, message)
            }
            Self::Denied(Denied::Dataset) => {
                text(StatusCode::FORBIDDEN, "this token is for other datasets\n")
            }
            Self::Denied(Denied::Twice) => {
                text(StatusCode::BAD_REQUEST, "the request has two Authorization headers: send one\n")
            }
            Self::TooMany(most) => busy(format!(
                "this address has {most} requests under way, and may have no more (--connections-per-address)\n"
            )),
            Self::Busy { what, all, switch, wait } => busy(format!(
                "{all} {what} are running ({switch}), and none has ended in {wait:?} (--wait): try again\n"
            )),
        }
    }
}

/// The refusal of a busy server: the request may succeed later.
fn busy(message: String) -> HttpResponse {
    let mut busy = text(StatusCode::SERVICE_UNAVAILABLE, message);
    busy.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    busy
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
