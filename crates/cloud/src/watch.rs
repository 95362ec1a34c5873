//! The HTTP client of a store, which keeps the reason of a refusal.
//!
//! `object_store` turns a refusal into an error of a type of its own that only has a text. Here the
//! client below it is wrapped: it reads the body of each refusal and puts status, code and message
//! into a cell of the task that asked. Each request of the task empties the cell first, so in the
//! end it holds the trouble of the last one.
//!
//! S3 refuses some deletes with status 200 and `<Error>` in the body. So bodies of answers to POST,
//! which are short, are read as well.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::Write;

use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};

/// Bytes that are read of the body of a refusal, or of an answer to POST.
const BODY_BYTES: usize = 1 << 20;

tokio::task_local! {
    static TROUBLE: RefCell<Option<Trouble>>;
}

/// Why a request to a server failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server refused.
    Refused(Refusal),
    /// There was no answer, or it broke off.
    Lost {
        /// The time for it was over.
        is_late: bool,
        /// The reason, in words.
        reason: String,
    },
}

/// The refusal of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// As `NoSuchKey`; may be empty.
    pub(crate) code: String,
    pub(crate) message: String,
    /// Region of the bucket, if it is another one.
    pub(crate) region: Option<String>,
}

/// Runs requests and gives their answer with the trouble of the last one.
pub(crate) async fn watched<T>(requests: impl Future<Output = T>) -> (T, Option<Trouble>) {
    TROUBLE
        .scope(RefCell::new(None), async {
            let answer = requests.await;
            (answer, TROUBLE.with(RefCell::take))
        })
        .await
}

/// The trouble of the last request of this task.
pub(crate) fn last_trouble() -> Option<Trouble> {
    TROUBLE.try_with(|trouble| trouble.borrow().clone()).ok().flatten()
}

fn set(trouble: Option<Trouble>) {
    // outside of a task of requests it is not asked for
    let _ = TROUBLE.try_with(|cell| cell.replace(trouble));
}

impl Trouble {
    pub(crate) fn lost(error: &HttpError) -> Self {
        Self::Lost { is_late: error.kind() == HttpErrorKind::Timeout, reason: innermost(error) }
    }
}

/// The last cause of an error, which has the system's words, after the first, which has the rest.
fn innermost(error: &HttpError) -> String {
    let mut last: &dyn Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    let mut text = match error.kind() {
        HttpErrorKind::Connect => "cannot connect".to_owned(),
        HttpErrorKind::Timeout => "no answer in time".to_owned(),
        _ => "the connection failed".to_owned(),
    };
    let _ = write!(text, ": {last}");
    text
}

/// Makes clients that are watched.
#[derive(Debug)]
pub(crate) struct WatchedConnector;

impl HttpConnector for WatchedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(WatchedClient { inner }))
    }
}

#[derive(Debug)]
struct WatchedClient {
    inner: HttpClient,
}

#[async_trait]
impl HttpService for WatchedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        set(None);
        let is_post = request.method().as_str() == "POST";
        let answer = async {
            let response = self.inner.execute(request).await?;
            if response.status().is_success() && !is_post {
                return Ok(response);
            }
            let (parts, body) = response.into_parts();
            let body = beginning(body).await?;
            let text = String::from_utf8_lossy(&body);
            let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
            let mut refusal = refusal(parts.status.as_u16(), header("x-ms-error-code"), &text);
            refusal.region = header("x-amz-bucket-region").map(str::to_owned).or(refusal.region);
            if !parts.status.is_success() || text.contains("<Error>") {
                set(Some(Trouble::Refused(refusal)));
            }
            Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
        };
        let answer = answer.await;
        if let Err(error) = &answer {
            set(Some(Trouble::lost(error)));
        }
        answer
    }
}

/// At most [`BODY_BYTES`] of a body.
async fn beginning(body: HttpResponseBody) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    let mut stream = body.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece?;
        bytes.extend_from_slice(&piece[..piece.len().min(BODY_BYTES - bytes.len())]);
        if bytes.len() == BODY_BYTES {
            break;
        }
    }
    Ok(bytes)
}

/// The refusal that a body tells: in XML for all three services, with the code of a header first.
fn refusal(status: u16, code: Option<&str>, body: &str) -> Refusal {
    let error = body.find("<Error>").map_or(body, |at| &body[at..]);
    let text = |name| element(error, name).map(|text| unescaped(text.trim()));
    let code = code.map(str::to_owned).or_else(|| text("Code")).unwrap_or_default();
    let mut message = text("Message").unwrap_or_default();
    if code.is_empty() && message.is_empty() && !body.trim().is_empty() {
        message = "the answer is not that of a store".to_owned();
    }
    let status = match (status, &*code) {
        (200..300, "AccessDenied") => 403,
        (200..300, "NoSuchKey" | "BlobNotFound") => 404,
        (200..300, "SlowDown") => 503,
        (200..300, _) => 500,
        _ => status,
    };
    Refusal { status, code, message, region: text("Region") }
}

/// Text of the first element of a name, as far as it has no elements in it.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let after = &xml[xml.find(&format!("<{name}>"))? + name.len() + 2..];
    after.split('<').next()
}

/// XML's five characters, by name or as servers number them.
fn unescaped(text: &str) -> String {
    const ESCAPES: [(&str, &str); 7] = [
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"), // the last one: it makes no escapes
    ];
    ESCAPES.iter().fold(text.to_owned(), |text, (escape, character)| text.replace(escape, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_from_bodies() {
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code>\
             <Message>It is\nnot &quot;there&quot;.</Message><Region>r</Region></Error>";
        let read = refusal(404, None, body);
        assert_eq!((read.status, &*read.code, &*read.message), (404, "NoSuchKey", "It is\nnot \"there\"."));
        assert_eq!(read.region.as_deref(), Some("r"));
        // a delete is refused within an answer of status 200
        let body = "<DeleteResult><Deleted><Key>b</Key></Deleted><Error><Key>a</Key>\
             <Code>AccessDenied</Code><Message>No.</Message></Error></DeleteResult>";
        let read = refusal(200, None, body);
        assert_eq!((read.status, &*read.code, &*read.message), (403, "AccessDenied", "No."));
        assert_eq!(refusal(200, None, &body.replace("AccessDenied", "Strange")).status, 500);
        assert_eq!(refusal(409, Some("BlobAlreadyExists"), "").code, "BlobAlreadyExists");
        assert_eq!(refusal(500, None, " "), Refusal { status: 500, ..Refusal::default() });
        assert_eq!(refusal(404, None, "<html>").message, "the answer is not that of a store");
        assert_eq!(refusal(500, None, "<Code>cut off").code, "cut off");
    }

    #[test]
    fn trouble_belongs_to_its_task() {
        let lost = Trouble::Lost { is_late: true, reason: String::new() };
        let runtime = crate::runtime::handle().unwrap();
        let (_, seen) = runtime.block_on(watched(async { set(Some(lost.clone())) }));
        assert_eq!(seen, Some(lost));
        assert_eq!(runtime.block_on(watched(async {})).1, None);
        assert_eq!(last_trouble(), None);
    }
}
