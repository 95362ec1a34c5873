//! One HTTP request: is it meant for us, route, parse, run the query or update on a blocking
//! thread, send the answer as it comes.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use snowmelt_graph::{
    Account, Activity, GraphWrite, MeterScope, Priority, Report, Samples, TREE_COLUMNS, as_json,
    as_prometheus, as_text, sort_trees,
};
use snowmelt_sparql::{Engine, LoadPermission, QueryError, QueryKind, QueryOptions, UpdateOptions};
use tokio::sync::oneshot;

use crate::audience::{Audience, check_origin};
use crate::body::{ACTIVITY, AnswerBody, AnswerWriter, Begun, Head, Turn, activity_value};
use crate::connections::{Connection, Connections};
use crate::durations::RequestKind;
use crate::graph_store::{self, Target};
use crate::guard::Link;
use crate::limits::Limits;
use crate::negotiate::{self, Answer};
use crate::refusal::{Refusal, refusal};
use crate::request::{self, Operation, ProtocolRequest};
use crate::running::{Asker, Register};
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
    pub connections: Arc<Connections>,
    /// The accounts of queries and of changes.
    query_account: Arc<Account>,
    update_account: Arc<Account>,
    answered: AtomicU64,
    refused: AtomicU64,
    started: Instant,
}

/// A request without an answer of its own.
struct Failure {
    why: Why,
    /// The activity on its behalf all the same.
    activity: Option<Activity>,
}

/// Why it has none.
enum Why {
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
        Self { why: Why::Refused(refusal), activity: None }
    }
}

type Answered = Result<HttpResponse, Failure>;
type HttpResponse = Response<AnswerBody>;

impl Service {
    pub fn new(engine: Arc<Engine>, config: &ServerConfig) -> Self {
        let account = |name| engine.database().account(name);
        let running = Arc::new(Register::default());
        let commands = Arc::new(Register::timed_with(&running));
        Self {
            query_account: account("http query"),
            update_account: account("http update"),
            connections: Arc::default(),
            engine,
            slots: Slots::new(config.limits.queries),
            change_slots: Slots::new(config.limits.changes),
            limits: config.limits.clone(),
            audience: Audience::new(&config.allow_hosts),
            allow_load: config.allow_load.clone(),
            read_only: config.read_only,
            running,
            commands,
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
        connection: &Connection,
    ) -> Result<HttpResponse, Infallible> {
        connection.count_request();
        let answered = match link.take_verdict() {
            Ok(()) => self.route(request, connection).await,
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

    async fn route(&self, request: Request<Incoming>, connection: &Connection) -> Answered {
        let (head, body) = request.into_parts();
        let host = self.audience.host_of(&head)?;
        match head.uri.path() {
            "/sparql" | "/sparql/" | "/query" | "/update" => {
                self.operation(head, body, &host, connection).await
            }
            path if path == graph_store::PATH || path.starts_with("/graphs/") => {
                self.graph(head, body, &host, connection).await
            }
            "/stats" => {
                get_only(&head)?;
                // Sizes are read from the database.
                Ok(tokio::task::block_in_place(|| self.stats(head.uri.query()))?)
            }
            "/metrics" => {
                get_only(&head)?;
                // Takes the counters of each queue under its lock.
                Ok(tokio::task::block_in_place(|| self.metrics()))
            }
            "/ready" => {
                get_only(&head)?;
                Ok(self.ready()?)
            }
            "/stats/reset" => {
                check_origin(&head.headers, &host)?;
                Ok(self.reset(&head)?)
            }
            "/health" => Ok(get_only(&head).map(|()| text(StatusCode::OK, "ok\n"))?),
            "/" => Ok(get_only(&head).map(|()| text(StatusCode::OK, INDEX))?),
            path => {
                let message = format!("no such resource: {path}; queries and updates go to /sparql");
                Err((StatusCode::NOT_FOUND, message).into())
            }
        }
    }

    async fn operation(&self, head: Parts, body: Incoming, host: &str, connection: &Connection) -> Answered {
        check_origin(&head.headers, host)?;
        let body = intake::hold(body, &self.limits, self.engine.database()).await?;
        let operation = request::parse(&head.method, head.uri.query(), &head.headers, &body.bytes)?;
        match (operation, head.uri.path()) {
            (Operation::Query(_), "/update") => Err(bad("queries go to /sparql or /query").into()),
            (Operation::Update(_), "/query") => Err(bad("updates go to /sparql or /update").into()),
            (Operation::Query(query), path) => {
                let base = format!("http://{host}{path}");
                let account = self.account_of_query(connection, query.priority);
                let answered = self.query(query, Some(base), accept(&head.headers), Arc::clone(&account));
                with_account(answered, &account).await
            }
            (Operation::Update(update), path) => {
                self.may_change()?;
                let account = self.account_of_update(connection, update.priority);
                let answered = self.update(update, format!("http://{host}{path}"), Arc::clone(&account));
                with_account(answered, &account).await
            }
        }
    }

    /// The account of one query, within those of all queries and of the connection.
    fn account_of_query(&self, connection: &Connection, priority: Priority) -> Arc<Account> {
        let others = std::slice::from_ref(&connection.account);
        Account::prioritized(&self.query_account, others, priority, None)
    }

    /// The same for a change.
    fn account_of_update(&self, connection: &Connection, priority: Priority) -> Arc<Account> {
        let others = std::slice::from_ref(&connection.account);
        Account::prioritized(&self.update_account, others, priority, None)
    }

    async fn query(
        &self,
        query: ProtocolRequest,
        base: Option<String>,
        accept: Option<String>,
        account: Arc<Account>,
    ) -> Answered {
        let slot = self.slot(&self.slots, "queries", "--queries").await?;
        let running = self.running.enter(RequestKind::Query);
        let account = Some(account);
        let options = QueryOptions { base, account, ..self.options(&query, &running.cancel) };
        let (head_sender, answer_head) = oneshot::channel();
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || {
            answer(&engine, &query.text, &options, accept.as_deref(), slot, head_sender);
        });
        let Begun { media_type, body, activity } = answer_head.await.map_err(|_| lost())??;
        let mut response = response(StatusCode::OK, media_type, body.while_running(running));
        let (name, value) = match &activity {
            Some(activity) => (ACTIVITY, activity_value(activity)),
            None => (header::TRAILER, header::HeaderValue::from_static("Snowmelt-Activity")),
        };
        response.headers_mut().insert(name, value);
        Ok(response)
    }

    /// Runs an update; the answer says what it did, and that it is durable.
    async fn update(&self, update: ProtocolRequest, base: String, account: Arc<Account>) -> Answered {
        let slot = self.slot(&self.change_slots, "changes", "--changes").await?;
        let running = self.running.enter(RequestKind::Update);
        let options = UpdateOptions {
            base: Some(base),
            timeout: self.timeout(&update),
            threads: self.threads(&update),
            cancel: Some(Arc::clone(&running.cancel)),
            account: Some(Arc::clone(&account)),
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
        let body = AnswerBody::whole(format!("{report}\n")).while_running(running);
        Ok(with_activity(response(StatusCode::OK, "application/json", body), &account))
    }

    /// The Graph Store Protocol.
    async fn graph(&self, head: Parts, body: Incoming, host: &str, connection: &Connection) -> Answered {
        check_origin(&head.headers, host)?;
        let target = graph_store::target(&head.method, head.uri.path(), head.uri.query(), host)?;
        match head.method {
            Method::GET | Method::HEAD => {
                let account = self.account_of_query(connection, Priority::Normal);
                let answered = async {
                    let find = || graph_store::query_of(&self.engine, &target, &account);
                    let text = tokio::task::block_in_place(find)?;
                    let asked =
                        ProtocolRequest { text, triples_are_distinct: true, ..ProtocolRequest::default() };
                    self.query(asked, None, accept(&head.headers), Arc::clone(&account)).await
                };
                with_account(answered, &account).await
            }
            Method::PUT | Method::POST => {
                self.may_change()?;
                let body = intake::spool(body, &self.limits, self.engine.database()).await?;
                let replace = head.method == Method::PUT;
                let write = if replace { GraphWrite::Replace } else { GraphWrite::Add };
                let base = format!("http://{host}/graphs");
                let account = self.account_of_update(connection, Priority::Normal);
                let stored = self.store_graph(target, write, head.headers, body, base, &account);
                let answer = with_account(stored, &account).await?;
                Ok(with_activity(answer, &account))
            }
            Method::DELETE => {
                self.may_change()?;
                let engine = Arc::clone(&self.engine);
                let account = self.account_of_update(connection, Priority::Normal);
                let deleted =
                    self.change(&account, move |asker| graph_store::delete(&engine, &target, asker));
                with_account(deleted, &account).await?;
                Ok(with_activity(empty(StatusCode::NO_CONTENT), &account))
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
        account: &Arc<Account>,
    ) -> Answered {
        let engine = Arc::clone(&self.engine);
        let store =
            move |asker: &Asker| graph_store::store(&engine, &target, write, &headers, body, &base, asker);
        let stored = self.change(account, store).await?;
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
        let busy = || Why::Busy { what, all: slots.all(), switch, wait };
        slots.take(wait).await.ok_or_else(|| Failure { why: busy(), activity: None })
    }

    /// Runs a change on a blocking thread; it is told to stop when the client leaves, or at the
    /// time limit.
    async fn change<T: Send + 'static>(
        &self,
        account: &Arc<Account>,
        change: impl FnOnce(&Asker) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        let slot = self.slot(&self.change_slots, "changes", "--changes").await?;
        let running = self.running.enter(RequestKind::Graph);
        let asker = Asker { account: Arc::clone(account), cancel: Arc::clone(&running.cancel) };
        let mut done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            change(&asker)
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

    fn threads(&self, asked: &ProtocolRequest) -> usize {
        asked.threads.unwrap_or(usize::MAX).min(self.limits.threads)
    }

    fn options(&self, query: &ProtocolRequest, cancel: &Arc<AtomicBool>) -> QueryOptions {
        QueryOptions {
            timeout: self.timeout(query),
            cancel: Some(Arc::clone(cancel)),
            threads: self.threads(query),
            default_graphs: query.default_graphs.clone(),
            named_graphs: query.named_graphs.clone(),
            triples_are_distinct: query.triples_are_distinct,
            ..QueryOptions::default()
        }
    }

    fn stats(&self, parameters: Option<&str>) -> Result<HttpResponse, Refusal> {
        let failed = |e: &dyn std::fmt::Display| (StatusCode::INTERNAL_SERVER_ERROR, e.to_string());
        let asked = |name: &str| parameter(parameters, name);
        let database = self.engine.database().stats().map_err(|e| failed(&e))?;
        let mut samples = self.engine.database().report().samples();
        if let Some(column) = asked("sort")
            && !sort_trees(&mut samples, &column)
        {
            let message = format!("trees have no column {column}: sort by {}", TREE_COLUMNS.join(", "));
            return Err((StatusCode::BAD_REQUEST, message));
        }
        if asked("format").is_some_and(|format| format == "table") {
            return Ok(text(StatusCode::OK, format!("{database}\n{}", as_text(&samples))));
        }
        let (open, connections) = self.connections.json();
        let mut stats = serde_json::json!({
            "uptime_s": self.started.elapsed().as_secs_f64(),
            "answered": self.answered.load(Ordering::Relaxed),
            "refused": self.refused.load(Ordering::Relaxed),
            "running": self.running.len(),
            "commands": self.commands.len(),
            "open_connections": open,
            "connections": connections,
            "database": database,
        });
        if let (Some(stats), serde_json::Value::Object(meters)) = (stats.as_object_mut(), as_json(&samples)) {
            stats.extend(meters);
        }
        let body = serde_json::to_vec_pretty(&stats).map_err(|e| failed(&e))?;
        Ok(response(StatusCode::OK, "application/json", AnswerBody::whole(body)))
    }
}

impl Service {
    /// All meters in the text format of Prometheus.
    fn metrics(&self) -> HttpResponse {
        let mut samples = Samples::default();
        samples.level("uptime_s", "s", self.started.elapsed().as_secs_f64());
        samples.count("requests.answered", "requests", self.answered.load(Ordering::Relaxed));
        samples.count("requests.refused", "requests", self.refused.load(Ordering::Relaxed));
        samples.level("requests.running", "requests", self.running.len() as u64);
        samples.level("commands.running", "commands", self.commands.len() as u64);
        samples.level("connections.open", "connections", self.connections.len() as u64);
        let mut samples = samples.into_list();
        samples.extend(self.engine.database().report().samples());
        let mut out = format!(
            "# HELP snowmelt_build_info the version of the program\n# TYPE snowmelt_build_info gauge\nsnowmelt_build_info{{version=\"{}\"}} 1\n",
            env!("CARGO_PKG_VERSION")
        );
        self.running.durations.prometheus(&mut out);
        out += &as_prometheus(&samples);
        response(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", AnswerBody::whole(out))
    }

    /// Whether queries and updates are worth sending.
    fn ready(&self) -> Result<HttpResponse, Refusal> {
        match self.engine.database().store().poisoned() {
            Some(why) => Err((
                StatusCode::SERVICE_UNAVAILABLE,
                format!("updates fail until the server is started again: {why}"),
            )),
            None => Ok(text(StatusCode::OK, "ready\n")),
        }
    }

    /// Sets meters to zero: all, those of a tree or those of an account.
    fn reset(&self, head: &Parts) -> Result<HttpResponse, Refusal> {
        if head.method != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "use POST".into()));
        }
        let asked = |name: &str| parameter(head.uri.query(), name);
        let scope = match (asked("tree"), asked("account")) {
            (None, None) => MeterScope::All,
            (Some(tree), None) => MeterScope::Tree(tree),
            (None, Some(account)) => MeterScope::Account(account),
            (Some(_), Some(_)) => return Err(bad("one at a time: 'tree' or 'account'")),
        };
        self.reset_meters(&scope).map_err(|message| (StatusCode::NOT_FOUND, message))?;
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// All meters, and the open connections among the accounts.
    pub fn meters(&self) -> Report {
        let mut report = self.engine.database().report();
        report.accounts.extend(self.connections.accounts());
        report
    }

    /// Has them count anew; why not, if there is none of that name.
    pub fn reset_meters(&self, scope: &MeterScope) -> Result<(), String> {
        match scope {
            MeterScope::Account(name) if self.connections.reset(name) => Ok(()),
            _ => self.engine.database().store().reset(scope).map_err(|error| error.to_string()),
        }
    }
}

impl Failure {
    /// The same, with what was done on behalf of the account.
    fn with_activity(self, account: &Account) -> Self {
        Self { activity: Some(account.activity()), ..self }
    }

    fn response(self) -> HttpResponse {
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
        Ok(written) => {
            let account = options.account.as_ref();
            let activity = account.map_or(written.activity, |account| account.activity());
            drop(writer.finish(&activity));
        }
        Err(error) => writer.fail(refusal(&error)),
    }
}

/// The same; a failure says what was done on behalf of the account.
async fn with_account<T>(
    answered: impl Future<Output = Result<T, Failure>>,
    account: &Account,
) -> Result<T, Failure> {
    answered.await.map_err(|failure| failure.with_activity(account))
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

/// The same answer, with what was done on behalf of the account.
fn with_activity(mut response: HttpResponse, account: &Account) -> HttpResponse {
    response.headers_mut().insert(ACTIVITY, activity_value(&account.activity()));
    response
}

/// The value of a parameter of an address.
fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut all = form_urlencoded::parse(query?.as_bytes());
    all.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
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
  GET  /metrics                   the same for Prometheus
  GET  /ready                     200 when queries and updates are worth sending
  POST /stats/reset               counts anew: all, ?tree=NAME, ?account=NAME
  GET  /health                    ok
";
