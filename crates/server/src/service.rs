//! One HTTP request: route, parse, run the query or update on a blocking thread, send the answer as it comes.
//!
//! Who may change data: the server listens on loopback only, but a web page in a browser on this machine can send requests there, too. So a
//! change is refused when its `Host` is not this machine's or its `Origin` is another page's.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::HeaderMap;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, header};
use snowmelt_sparql::{Engine, LoadPermission, QueryError, QueryKind, QueryOptions, UpdateOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::ServerConfig;
use crate::body::{AnswerBody, AnswerWriter, Head};
use crate::graph_store::{self, Target};
use crate::negotiate::{self, Answer};
use crate::request::{self, Operation, Refusal, Request as Asked};
use crate::spool::{Spool, Spooled};

/// Bounds on what clients may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// queries running at the same time; others wait
    pub queries_at_once: usize,
    /// updates and graphs on their way at the same time; they change one after the other and become durable together
    pub changes_at_once: usize,
    /// the longest a query or update may run
    pub timeout: Option<Duration>,
    /// the largest request body
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queries_at_once: 64, changes_at_once: 64, timeout: None, body_bytes: 16 << 20 }
    }
}

/// What all connections share.
pub struct Service {
    engine: Arc<Engine>,
    limits: Limits,
    allow_load: Vec<LoadPermission>,
    read_only: bool,
    slots: Arc<Semaphore>,
    /// Of changes, which wait for each other: they must not keep queries out.
    change_slots: Arc<Semaphore>,
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
    pub fn new(engine: Arc<Engine>, config: &ServerConfig) -> Self {
        Self {
            engine,
            slots: Arc::new(Semaphore::new(config.limits.queries_at_once)),
            change_slots: Arc::new(Semaphore::new(config.limits.changes_at_once)),
            limits: config.limits.clone(),
            allow_load: config.allow_load.clone(),
            read_only: config.read_only,
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
            "/sparql" | "/sparql/" | "/query" | "/update" => self.operation(request).await,
            path if path == graph_store::PATH || path.starts_with("/graphs/") => self.graph(request).await,
            "/stats" => get_only(&request).and_then(|()| self.stats(request.uri().query())),
            "/health" => get_only(&request).map(|()| text(StatusCode::OK, "ok\n")),
            "/" => get_only(&request).map(|()| text(StatusCode::OK, INDEX)),
            path => Err((
                StatusCode::NOT_FOUND,
                format!("no such resource: {path}; queries and updates go to /sparql"),
            )),
        };
        let counter = if response.is_ok() { &self.answered } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(response.unwrap_or_else(|(status, message)| text(status, format!("{message}\n"))))
    }

    async fn operation(&self, request: Request<Incoming>) -> Result<HttpResponse, Refusal> {
        let (head, body) = request.into_parts();
        let body =
            Limited::new(body, self.limits.body_bytes).collect().await.map_err(|e| self.body_refusal(&*e))?;
        let operation = request::parse(&head.method, head.uri.query(), &head.headers, &body.to_bytes())?;
        let host = host(&head);
        match (operation, head.uri.path()) {
            (Operation::Query(_), "/update") => Err(bad("queries go to /sparql or /query")),
            (Operation::Update(_), "/query") => Err(bad("updates go to /sparql or /update")),
            (Operation::Query(query), path) => {
                let base = format!("http://{host}{path}");
                self.query(query, Some(base), accept(&head.headers)).await
            }
            (Operation::Update(update), path) => {
                self.may_change(&head.headers, &host)?;
                self.update(update, format!("http://{host}{path}")).await
            }
        }
    }

    async fn query(
        &self,
        query: Asked,
        base: Option<String>,
        accept: Option<String>,
    ) -> Result<HttpResponse, Refusal> {
        let slot = slot_of(&self.slots).await;
        let mut running = self.register();
        let options = QueryOptions { base, ..self.options(&query, &running.cancel) };
        let (head_sender, answer_head) = oneshot::channel();
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || {
            let _slot = slot;
            answer(&engine, &query.text, &options, accept.as_deref(), head_sender);
        });
        let (media_type, body) = answer_head.await.map_err(|_| lost())??;
        running.done = true;
        Ok(response(StatusCode::OK, media_type, body))
    }

    /// Runs an update; the answer says what it did, and that it is durable.
    async fn update(&self, update: Asked, base: String) -> Result<HttpResponse, Refusal> {
        let slot = slot_of(&self.change_slots).await;
        let mut running = self.register();
        let options = UpdateOptions {
            base: Some(base),
            timeout: self.timeout(&update),
            cancel: Some(Arc::clone(&running.cancel)),
            using_graphs: update.default_graphs,
            using_named_graphs: update.named_graphs,
            allow_load: self.allow_load.clone(),
            ..UpdateOptions::default()
        };
        let engine = Arc::clone(&self.engine);
        let text = update.text;
        let done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            engine.update(&text, &options)
        });
        let updated = done.await.map_err(|_| lost())?.map_err(|error| refusal(&error))?;
        running.done = true;
        let report = serde_json::json!({
            "transaction": updated.txn, "inserted": updated.changed.inserted, "deleted": updated.changed.deleted,
        });
        Ok(response(StatusCode::OK, "application/json", AnswerBody::whole(format!("{report}\n"))))
    }

    /// The Graph Store Protocol.
    async fn graph(&self, request: Request<Incoming>) -> Result<HttpResponse, Refusal> {
        let (head, body) = request.into_parts();
        let host = host(&head);
        let target = graph_store::target(&head.method, head.uri.path(), head.uri.query(), &host)?;
        match head.method {
            Method::GET | Method::HEAD => {
                let text = graph_store::query_of(&self.engine, &target)?;
                let asked = Asked { text, triples_are_distinct: true, ..Asked::default() };
                self.query(asked, None, accept(&head.headers)).await
            }
            Method::PUT | Method::POST => {
                self.may_change(&head.headers, &host)?;
                let body = spool(body).await?;
                let replace = head.method == Method::PUT;
                self.store_graph(target, replace, head.headers, body, format!("http://{host}/graphs")).await
            }
            Method::DELETE => {
                self.may_change(&head.headers, &host)?;
                let engine = Arc::clone(&self.engine);
                self.change(move |_| graph_store::delete(&engine, &target)).await?;
                Ok(empty(StatusCode::NO_CONTENT))
            }
            _ => Err((StatusCode::METHOD_NOT_ALLOWED, "use GET, HEAD, PUT, POST or DELETE".into())),
        }
    }

    async fn store_graph(
        &self,
        target: Target,
        replace: bool,
        headers: HeaderMap,
        body: Spooled,
        base: String,
    ) -> Result<HttpResponse, Refusal> {
        let engine = Arc::clone(&self.engine);
        let stored = self
            .change(move |cancel| {
                graph_store::store(&engine, &target, replace, &headers, body, &base, cancel)
            })
            .await?;
        let status = if stored.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        let mut response = empty(status);
        if let Some(location) = stored.location {
            let value = location.parse().expect("a UUID is a header value");
            response.headers_mut().insert(header::LOCATION, value);
        }
        Ok(response)
    }

    /// Runs a change on a blocking thread; it is told to stop when the client leaves.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&AtomicBool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let slot = slot_of(&self.change_slots).await;
        let mut running = self.register();
        let cancel = Arc::clone(&running.cancel);
        let done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            change(&cancel)
        });
        let changed = done.await.map_err(|_| lost())??;
        running.done = true;
        Ok(changed)
    }

    /// Whether a request may change data.
    fn may_change(&self, headers: &HeaderMap, host: &str) -> Result<(), Refusal> {
        if self.read_only {
            return Err((StatusCode::FORBIDDEN, "this server is read-only".into()));
        }
        if !is_this_machine(host) {
            return Err((
                StatusCode::FORBIDDEN,
                format!("changes come from this machine only; the request is for {host}"),
            ));
        }
        match headers
            .get(header::ORIGIN)
            .map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned())
        {
            Some(origin) if origin.split_once("://").is_none_or(|(_, of)| of != host) => {
                Err((StatusCode::FORBIDDEN, format!("a page of {origin} may not change data here")))
            }
            _ => Ok(()),
        }
    }

    fn register(&self) -> Running<'_> {
        let number = self.next_query.fetch_add(1, Ordering::Relaxed);
        let cancel = Arc::new(AtomicBool::new(false));
        self.running.lock().expect("no holder panics").insert(number, Arc::clone(&cancel));
        Running { service: self, number, cancel, done: false }
    }

    fn timeout(&self, asked: &Asked) -> Option<Duration> {
        match (asked.timeout_ms.map(Duration::from_millis), self.limits.timeout) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn options(&self, query: &Asked, cancel: &Arc<AtomicBool>) -> QueryOptions {
        QueryOptions {
            timeout: self.timeout(query),
            cancel: Some(Arc::clone(cancel)),
            default_graphs: query.default_graphs.clone(),
            named_graphs: query.named_graphs.clone(),
            triples_are_distinct: query.triples_are_distinct,
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
            "journal": crate::stats::journal(self.engine.database()),
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

pub(crate) fn refusal(error: &QueryError) -> Refusal {
    let status = match error {
        QueryError::Parse { .. } | QueryError::Unsupported { .. } | QueryError::UsingTwice => {
            StatusCode::BAD_REQUEST
        }
        QueryError::LoadRefused { .. } => StatusCode::FORBIDDEN,
        QueryError::GraphExists(_) => StatusCode::CONFLICT,
        QueryError::Load(error) if error.is_of_input() => StatusCode::BAD_REQUEST,
        QueryError::Timeout(_) | QueryError::Memory { .. } | QueryError::Rows(_) | QueryError::Cancelled => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

fn bad(message: &str) -> Refusal {
    (StatusCode::BAD_REQUEST, message.into())
}

fn lost() -> Refusal {
    (StatusCode::INTERNAL_SERVER_ERROR, "the request ended without an answer; see the log".into())
}

fn accept(headers: &HeaderMap) -> Option<String> {
    headers.get(header::ACCEPT).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
}

/// The authority that the client means by this server.
fn host(head: &hyper::http::request::Parts) -> String {
    let named = head.headers.get(header::HOST).and_then(|v| v.to_str().ok());
    named.or(head.uri.authority().map(|a| a.as_str())).unwrap_or("localhost").to_owned()
}

async fn slot_of(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed")
}

/// Whether an authority is a name of this machine's own: of 127.0.0.0/8, `[::1]` or localhost.
fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Takes a body to its end.
async fn spool(mut body: Incoming) -> Result<Spooled, Refusal> {
    let unwritten =
        |e: std::io::Error| (StatusCode::INSUFFICIENT_STORAGE, format!("the body cannot be kept: {e}"));
    let mut spool = Spool::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| bad(&format!("the request body broke off: {e}")))?;
        if let Some(bytes) = frame.data_ref() {
            // A write to a file blocks, but not for longer than the page cache takes.
            spool.write(bytes).map_err(unwritten)?;
        }
    }
    spool.finish().map_err(unwritten)
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

fn empty(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(AnswerBody::Whole(None));
    *response.status_mut() = status;
    response
}

fn text(status: StatusCode, message: impl Into<String>) -> HttpResponse {
    response(status, "text/plain; charset=utf-8", AnswerBody::whole(message.into()))
}

const INDEX: &str = "\
Snowmelt answers SPARQL queries and runs updates here.

  GET  /sparql?query=...          results as JSON, XML, CSV, TSV, N-Triples, Turtle or RDF/XML (Accept)
  POST /sparql                    a form with 'query', or the query itself as application/sparql-query
  POST /update                    a form with 'update', or the update itself as application/sparql-update
  GET, HEAD, PUT, POST, DELETE /graphs?default, /graphs?graph=IRI   a whole graph
  GET  /stats                     what is stored, what was read
  GET  /health                    ok
";
