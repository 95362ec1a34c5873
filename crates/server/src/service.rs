//! One HTTP request: route, parse, run the query on a blocking thread, send the answer as it comes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, header};
use snowmelt_sparql::{Engine, QueryError, QueryKind, QueryOptions};
use tokio::sync::{Semaphore, oneshot};

use crate::body::{AnswerBody, AnswerWriter, Head};
use crate::negotiate::{self, Answer};
use crate::request::{self, QueryRequest, Refusal};

/// Bounds on what clients may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// queries running at the same time; others wait
    pub queries_at_once: usize,
    /// the longest a query may run
    pub timeout: Option<Duration>,
    /// the largest request body
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queries_at_once: 64, timeout: None, body_bytes: 16 << 20 }
    }
}

/// What all connections share.
pub struct Service {
    engine: Arc<Engine>,
    limits: Limits,
    slots: Arc<Semaphore>,
    running: Mutex<HashMap<u64, Arc<AtomicBool>>>,
    next_query: AtomicU64,
    answered: AtomicU64,
    refused: AtomicU64,
    started: Instant,
}

/// A running query's entry; dropping it (the client left, or the answer ended) cancels and forgets the query.
struct Running<'a> {
    service: &'a Service,
    number: u64,
    cancel: Arc<AtomicBool>,
    // while a streamed answer goes on after this is dropped, its writer notices a lost client itself
    done: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.cancel.store(true, Ordering::Relaxed);
        }
        self.service.running.lock().expect("no holder panics").remove(&self.number);
    }
}

type HttpResponse = Response<AnswerBody>;

impl Service {
    pub fn new(engine: Arc<Engine>, limits: Limits) -> Self {
        Self {
            engine,
            slots: Arc::new(Semaphore::new(limits.queries_at_once)),
            limits,
            running: Mutex::default(),
            next_query: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Asks every running query to stop.
    pub fn cancel_all(&self) {
        for cancel in self.running.lock().expect("no holder panics").values() {
            cancel.store(true, Ordering::Relaxed);
        }
    }

    pub async fn respond(&self, request: Request<Incoming>) -> Result<HttpResponse, Infallible> {
        let response = match request.uri().path() {
            "/sparql" | "/query" => self.query(request).await,
            "/stats" => get_only(&request).and_then(|()| self.stats(request.uri().query())),
            "/health" => get_only(&request).map(|()| text(StatusCode::OK, "ok\n")),
            "/" => get_only(&request).map(|()| text(StatusCode::OK, INDEX)),
            path => Err((StatusCode::NOT_FOUND, format!("no such resource: {path}; queries go to /sparql"))),
        };
        let counter = if response.is_ok() { &self.answered } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(response.unwrap_or_else(|(status, message)| text(status, format!("{message}\n"))))
    }

    async fn query(&self, request: Request<Incoming>) -> Result<HttpResponse, Refusal> {
        let (head, body) = request.into_parts();
        let body =
            Limited::new(body, self.limits.body_bytes).collect().await.map_err(|e| self.body_refusal(&*e))?;
        let query = request::parse(&head.method, head.uri.query(), &head.headers, &body.to_bytes())?;
        let accept =
            head.headers.get(header::ACCEPT).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
        let slot = Arc::clone(&self.slots).acquire_owned().await.expect("the semaphore is never closed");

        let mut running = self.register();
        let options = self.options(&query, &running.cancel);
        let (head_sender, answer_head) = oneshot::channel();
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || {
            let _slot = slot;
            answer(&engine, &query.query, &options, accept.as_deref(), head_sender);
        });
        let lost = (
            StatusCode::INTERNAL_SERVER_ERROR,
            String::from("the query ended without an answer; see the log"),
        );
        let (media_type, body) = answer_head.await.map_err(|_| lost)??;
        running.done = true;
        Ok(response(StatusCode::OK, media_type, body))
    }

    fn register(&self) -> Running<'_> {
        let number = self.next_query.fetch_add(1, Ordering::Relaxed);
        let cancel = Arc::new(AtomicBool::new(false));
        self.running.lock().expect("no holder panics").insert(number, Arc::clone(&cancel));
        Running { service: self, number, cancel, done: false }
    }

    fn options(&self, query: &QueryRequest, cancel: &Arc<AtomicBool>) -> QueryOptions {
        let asked = query.timeout_ms.map(Duration::from_millis);
        let timeout = match (asked, self.limits.timeout) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        QueryOptions {
            timeout,
            cancel: Some(Arc::clone(cancel)),
            default_graphs: query.default_graphs.clone(),
            named_graphs: query.named_graphs.clone(),
            ..QueryOptions::default()
        }
    }

    fn body_refusal(&self, error: &(dyn std::error::Error + 'static)) -> Refusal {
        if error.is::<LengthLimitError>() {
            let message = format!("the request body exceeds {} bytes", self.limits.body_bytes);
            (StatusCode::PAYLOAD_TOO_LARGE, message)
        } else {
            (StatusCode::BAD_REQUEST, format!("the request body broke off: {error}"))
        }
    }

    fn stats(&self, parameters: Option<&str>) -> Result<HttpResponse, Refusal> {
        let failed = |e: &dyn std::fmt::Display| (StatusCode::INTERNAL_SERVER_ERROR, e.to_string());
        let database = self.engine.database().stats().map_err(|e| failed(&e))?;
        if parameters == Some("format=table") {
            return Ok(text(StatusCode::OK, database.to_string()));
        }
        let stats = serde_json::json!({
            "uptime_s": self.started.elapsed().as_secs_f64(),
            "answered": self.answered.load(Ordering::Relaxed),
            "refused": self.refused.load(Ordering::Relaxed),
            "running": self.running.lock().expect("no holder panics").len(),
            "activity": self.engine.activity(),
            "database": database,
        });
        let body = serde_json::to_vec_pretty(&stats).map_err(|e| failed(&e))?;
        Ok(response(StatusCode::OK, "application/json", AnswerBody::whole(body)))
    }
}

/// Runs one query on this thread and writes its answer.
fn answer(
    engine: &Engine,
    text: &str,
    options: &QueryOptions,
    accept: Option<&str>,
    head: oneshot::Sender<Head>,
) {
    let refuse = |head: oneshot::Sender<Head>, refusal| drop(head.send(Err(refusal)));
    let result = match engine.query(text, options) {
        Ok(result) => result,
        Err(error) => return refuse(head, refusal(&error)),
    };
    let kind = match result.kind() {
        QueryKind::Graph => Answer::Graph,
        _ => Answer::Solutions,
    };
    let Some((format, media_type)) = negotiate::negotiate(accept, kind) else {
        let message = format!("none of the accepted types is on offer: {}", negotiate::offered(kind));
        return refuse(head, (StatusCode::NOT_ACCEPTABLE, message));
    };
    let mut writer = AnswerWriter::new(media_type, head);
    match result.write(format, &mut writer) {
        // A client that left before the end is its own affair.
        Ok(_) => drop(writer.finish()),
        Err(error) => writer.fail(refusal(&error)),
    }
}

fn refusal(error: &QueryError) -> Refusal {
    let status = match error {
        QueryError::Parse { .. } | QueryError::Unsupported { .. } => StatusCode::BAD_REQUEST,
        QueryError::Timeout(_) | QueryError::Memory { .. } | QueryError::Rows(_) | QueryError::Cancelled => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

fn get_only(request: &Request<Incoming>) -> Result<(), Refusal> {
    match *request.method() {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err((StatusCode::METHOD_NOT_ALLOWED, "use GET".into())),
    }
}

fn response(status: StatusCode, media_type: &'static str, body: AnswerBody) -> HttpResponse {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, media_type)
        .body(body)
        .expect("status and header are valid constants")
}

fn text(status: StatusCode, message: impl Into<String>) -> HttpResponse {
    response(status, "text/plain; charset=utf-8", AnswerBody::whole(message.into()))
}

const INDEX: &str = "\
Snowmelt answers SPARQL queries here.

  GET  /sparql?query=...          results as JSON, XML, CSV, TSV, N-Triples, Turtle or RDF/XML (Accept)
  POST /sparql                    a form with 'query', or the query itself as application/sparql-query
  GET  /stats                     what is stored, what was read
  GET  /health                    ok
";
