//! One HTTP request: is it meant for us, route, parse, run the query or update on a blocking
//! thread, send the answer as it comes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use snowmelt_graph::GraphWrite;
use snowmelt_sparql::{Engine, LoadPermission, QueryError, QueryKind, QueryOptions, UpdateOptions};
use tokio::sync::oneshot;

use crate::audience::{Audience, check_origin};
use crate::body::{AnswerBody, AnswerWriter, Head, Turn};
use crate::graph_store::{self, Target};
use crate::guard::Link;
use crate::limits::Limits;
use crate::negotiate::{self, Answer};
use crate::refusal::{Refusal, refusal};
use crate::request::{self, Operation, ProtocolRequest};
use crate::running::Register;
use crate::slots::{Slot, Slots};
use crate::spool::Spooled;
use crate::{ServerConfig, intake};

/// State that all connections share.
pub struct Service {
    engine: Arc<Engine>,
    limits: Limits,
    audience: Audience,
    allow_load: Vec<LoadPermission>,
    read_only: bool,
    slots: Slots,
    /// Of changes, which wait for each other: they must not keep queries out.
    change_slots: Slots,
    running: Arc<Register>,
    /// Commands beside the server.
    pub commands: Arc<Register>,
    answered: AtomicU64,
    refused: AtomicU64,
    started: Instant,
}

/// Why a request has no answer of its own.
enum Failure {
    Refused(Refusal),
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
        Self::Refused(refusal)
    }
}

type Answered = Result<HttpResponse, Failure>;
type HttpResponse = Response<AnswerBody>;

impl Service {
    pub fn new(engine: Arc<Engine>, config: &ServerConfig) -> Self {
        Self {
            engine,
            slots: Slots::new(config.limits.queries),
            change_slots: Slots::new(config.limits.changes),
            limits: config.limits.clone(),
            audience: Audience::new(&config.allow_hosts),
            allow_load: config.allow_load.clone(),
            read_only: config.read_only,
            running: Arc::default(),
            commands: Arc::default(),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Asks every running request to stop.
    pub fn cancel_all(&self) {
        self.running.cancel_all();
    }

    /// The answer to a request that came over `link`.
    pub async fn respond(
        &self,
        request: Request<Incoming>,
        link: &Arc<Link>,
    ) -> Result<HttpResponse, Infallible> {
        let answered = match link.take_verdict() {
            Ok(()) => self.route(request).await,
            Err(doubt) => Err(bad(doubt).into()),
        };
        let counter = if answered.is_ok() { &self.answered } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut response = answered.unwrap_or_else(Failure::response);
        if !link.is_complete() {
            // Its body is not wanted any more.
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| body.on(link)))
    }

    async fn route(&self, request: Request<Incoming>) -> Answered {
        let (head, body) = request.into_parts();
        let host = self.audience.host_of(&head)?;
        match head.uri.path() {
            "/sparql" | "/sparql/" | "/query" | "/update" => self.operation(head, body, &host).await,
            path if path == graph_store::PATH || path.starts_with("/graphs/") => {
                self.graph(head, body, &host).await
            }
            "/stats" => {
                get_only(&head)?;
                // Sizes are read from the database.
                Ok(tokio::task::block_in_place(|| self.stats(head.uri.query()))?)
            }
            "/health" => Ok(get_only(&head).map(|()| text(StatusCode::OK, "ok\n"))?),
            "/" => Ok(get_only(&head).map(|()| text(StatusCode::OK, INDEX))?),
            path => {
                let message = format!("no such resource: {path}; queries and updates go to /sparql");
                Err((StatusCode::NOT_FOUND, message).into())
            }
        }
    }

    async fn operation(&self, head: Parts, body: Incoming, host: &str) -> Answered {
        check_origin(&head.headers, host)?;
        let body = intake::hold(body, &self.limits, self.engine.database()).await?;
        let operation = request::parse(&head.method, head.uri.query(), &head.headers, &body.bytes)?;
        match (operation, head.uri.path()) {
            (Operation::Query(_), "/update") => Err(bad("queries go to /sparql or /query").into()),
            (Operation::Update(_), "/query") => Err(bad("updates go to /sparql or /update").into()),
            (Operation::Query(query), path) => {
                let base = format!("http://{host}{path}");
                self.query(query, Some(base), accept(&head.headers)).await
            }
            (Operation::Update(update), path) => {
                self.may_change()?;
                self.update(update, format!("http://{host}{path}")).await
            }
        }
    }

    async fn query(&self, query: ProtocolRequest, base: Option<String>, accept: Option<String>) -> Answered {
        let slot = self.slot(&self.slots, "queries", "--queries").await?;
        let running = self.running.enter();
        let options = QueryOptions { base, ..self.options(&query, &running.cancel) };
        let (head_sender, answer_head) = oneshot::channel();
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || {
            answer(&engine, &query.text, &options, accept.as_deref(), slot, head_sender);
        });
        let (media_type, body) = answer_head.await.map_err(|_| lost())??;
        Ok(response(StatusCode::OK, media_type, body.while_running(running)))
    }

    /// Runs an update; the answer says what it did, and that it is durable.
    async fn update(&self, update: ProtocolRequest, base: String) -> Answered {
        let slot = self.slot(&self.change_slots, "changes", "--changes").await?;
        let running = self.running.enter();
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
        let report = serde_json::json!({
            "transaction": updated.txn, "inserted": updated.changed.inserted, "deleted": updated.changed.deleted,
        });
        Ok(response(StatusCode::OK, "application/json", AnswerBody::whole(format!("{report}\n"))))
    }

    /// The Graph Store Protocol.
    async fn graph(&self, head: Parts, body: Incoming, host: &str) -> Answered {
        check_origin(&head.headers, host)?;
        let target = graph_store::target(&head.method, head.uri.path(), head.uri.query(), host)?;
        match head.method {
            Method::GET | Method::HEAD => {
                let text = tokio::task::block_in_place(|| graph_store::query_of(&self.engine, &target))?;
                let asked =
                    ProtocolRequest { text, triples_are_distinct: true, ..ProtocolRequest::default() };
                self.query(asked, None, accept(&head.headers)).await
            }
            Method::PUT | Method::POST => {
                self.may_change()?;
                let body = intake::spool(body, &self.limits, self.engine.database()).await?;
                let replace = head.method == Method::PUT;
                let write = if replace { GraphWrite::Replace } else { GraphWrite::Add };
                self.store_graph(target, write, head.headers, body, format!("http://{host}/graphs")).await
            }
            Method::DELETE => {
                self.may_change()?;
                let engine = Arc::clone(&self.engine);
                self.change(move |cancel| graph_store::delete(&engine, &target, cancel)).await?;
                Ok(empty(StatusCode::NO_CONTENT))
            }
            _ => {
                Err((StatusCode::METHOD_NOT_ALLOWED, "use GET, HEAD, PUT, POST or DELETE".to_owned()).into())
            }
        }
    }

    async fn store_graph(
        &self,
        target: Target,
        write: GraphWrite,
        headers: HeaderMap,
        body: Spooled,
        base: String,
    ) -> Answered {
        let engine = Arc::clone(&self.engine);
        let stored = self
            .change(move |cancel| graph_store::store(&engine, &target, write, &headers, body, &base, cancel))
            .await?;
        let status = if stored.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        let mut response = empty(status);
        if let Some(location) = stored.location {
            let value = location.parse().expect("a UUID is a header value");
            response.headers_mut().insert(header::LOCATION, value);
        }
        Ok(response)
    }

    /// A slot, once it is this request's turn.
    async fn slot(&self, slots: &Slots, what: &'static str, switch: &'static str) -> Result<Slot, Failure> {
        let wait = self.limits.wait;
        slots.take(wait).await.ok_or(Failure::Busy { what, all: slots.all(), switch, wait })
    }

    /// Runs a change on a blocking thread; it is told to stop when the client leaves, or at the
    /// time limit.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&AtomicBool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        let slot = self.slot(&self.change_slots, "changes", "--changes").await?;
        let running = self.running.enter();
        let cancel = Arc::clone(&running.cancel);
        let mut done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            change(&cancel)
        });
        let limit = async {
            match self.limits.timeout {
                Some(most) => tokio::time::sleep(most).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = &mut done => return Ok(changed.map_err(|_| lost())??),
            () = limit => running.cancel.store(true, Ordering::Relaxed),
        }
        // It may have come to its end all the same.
        match done.await.map_err(|_| lost())? {
            Ok(changed) => Ok(changed),
            Err(_) => Err(refusal(&QueryError::Timeout(self.limits.timeout.unwrap_or_default())).into()),
        }
    }

    /// Whether this server changes data.
    fn may_change(&self) -> Result<(), Refusal> {
        match self.read_only {
            true => Err((StatusCode::FORBIDDEN, "this server is read-only (--read-only)".into())),
            false => Ok(()),
        }
    }

    fn timeout(&self, asked: &ProtocolRequest) -> Option<Duration> {
        match (asked.timeout_ms.map(Duration::from_millis), self.limits.timeout) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn options(&self, query: &ProtocolRequest, cancel: &Arc<AtomicBool>) -> QueryOptions {
        QueryOptions {
            timeout: self.timeout(query),
            cancel: Some(Arc::clone(cancel)),
            threads: query.threads.unwrap_or(usize::MAX).min(self.limits.threads),
            default_graphs: query.default_graphs.clone(),
            named_graphs: query.named_graphs.clone(),
            triples_are_distinct: query.triples_are_distinct,
            ..QueryOptions::default()
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
            "running": self.running.len(),
            "commands": self.commands.len(),
            "activity": self.engine.activity(),
            "journal": crate::stats::journal(self.engine.database()),
            "database": database,
        });
        let body = serde_json::to_vec_pretty(&stats).map_err(|e| failed(&e))?;
        Ok(response(StatusCode::OK, "application/json", AnswerBody::whole(body)))
    }
}

impl Failure {
    fn response(self) -> HttpResponse {
        match self {
            Self::Refused((status, message)) => text(status, format!("{message}\n")),
            Self::Busy { what, all, switch, wait } => {
                let message = format!(
                    "{all} {what} are running ({switch}), and none has ended in {wait:?} (--wait): try again\n"
                );
                let mut busy = text(StatusCode::SERVICE_UNAVAILABLE, message);
                busy.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
                busy
            }
        }
    }
}

/// Runs one query on this thread and writes its answer.
fn answer(
    engine: &Engine,
    text: &str,
    options: &QueryOptions,
    accept: Option<&str>,
    slot: Slot,
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
    let mut writer = AnswerWriter::new(media_type, head, Turn { slot, memory: result.memory() });
    match result.write(format, &mut writer) {
        // A client that left before the end is its own affair.
        Ok(_) => drop(writer.finish()),
        Err(error) => writer.fail(refusal(&error)),
    }
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

fn get_only(head: &Parts) -> Result<(), Refusal> {
    match head.method {
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
    let mut response = Response::new(AnswerBody::empty());
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
