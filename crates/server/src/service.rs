//! One HTTP request: is it meant for us, may it, route, parse, run the query or update on a
//! blocking thread, send the answer as it comes.

pub mod advised;
pub mod answers;
mod change;
mod datasets;
mod run;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use snowmelt_graph::load::Contexts;
use snowmelt_graph::{
    Account, AccountStats, GraphView, MeterScope, Priority, Report, Samples, TREE_COLUMNS, as_json,
    as_prometheus, as_text, sort_trees,
};
use snowmelt_sparql::{LoadPermission, QueryOptions};
use tokio::sync::oneshot;

use self::answers::{
    Answered, Failure, HttpResponse, Why, accept, allow, bad, empty, internal, json, lost, parameter,
    response, text, with_account,
};
use self::run::{DumpLimits, Thread, Wanted};

use crate::ServerConfig;
use crate::addresses::{Addresses, NoClient};
use crate::advice::Advisor;
use crate::audience::{Audience, check_origin};
use crate::body::{ACTIVITY, AnswerBody, Begun, activity_value};
use crate::browser;
use crate::coding::{CODINGS, Coding};
use crate::connections::{Connection, Connections};
use crate::cors::{Cors, Wish};
use crate::dataset::Dataset;
use crate::dataset::folder::{AnswerCommands, Datasets, is_name};
use crate::description::{self, Offer};
use crate::durations::RequestKind;
use crate::freshness::Kept;
use crate::graph_store::{self, Target};
use crate::guard::Link;
use crate::intake::{self, BodyWatch};
use crate::limits::ServerLimits;
use crate::logs::{Logs, RequestLine};
use crate::negotiate::{self, Answer};
use crate::page;
use crate::refusal::Refusal;
use crate::request::{self, Operation, ProtocolRequest};
use crate::resource::Resource;
use crate::running::{Register, Running};
use crate::slots::{Slot, Slots};
use crate::tokens::{Denied, Keeper, Rights, User};

/// State that all connections share.
pub struct Service {
    datasets: Source,
    limits: ServerLimits,
    audience: Audience,
    cors: Cors,
    keeper: Arc<Keeper>,
    /// Of users with a token, by name.
    users: Mutex<BTreeMap<String, Arc<Account>>>,
    logs: Arc<Logs>,
    allow_load: Vec<LoadPermission>,
    contexts: Contexts,
    read_only: bool,
    slots: Slots,
    /// Of changes, which wait for each other: they must not keep queries out.
    change_slots: Slots,
    running: Arc<Register>,
    /// Commands beside the server.
    pub commands: Arc<Register>,
    pub connections: Arc<Connections>,
    pub addresses: Arc<Addresses>,
    answered: AtomicU64,
    refused: AtomicU64,
    /// Queries that the connection's thread tried, and those of them that it gave up.
    tried: AtomicU64,
    given_up: AtomicU64,
    started: Instant,
    advisor: Mutex<Advisor>,
}

/// Where its datasets are.
pub enum Source {
    One(Arc<Dataset>),
    Many(Arc<Datasets>),
}

/// A path: the dataset that it names, if datasets have names here, and the resource in it.
fn split<'p>(path: &'p str, source: &Source) -> (Option<&'p str>, &'p str) {
    let named = || {
        let (name, _) = path.strip_prefix('/')?.split_once('/')?;
        is_name(name).then(|| (Some(name), &path[1 + name.len()..]))
    };
    match source {
        Source::One(_) => (None, path),
        Source::Many(_) => named().unwrap_or((None, path)),
    }
}

/// The sender of a request to a dataset.
struct Client<'a> {
    dataset: Arc<Dataset>,
    connection: &'a Connection,
    peer: SocketAddr,
    user: User,
    /// The user's, if it has a name.
    account: Option<Arc<Account>>,
    /// The authority that it asked, and how.
    host: String,
    scheme: &'static str,
    /// Graphs that are there for it.
    view: Option<Arc<GraphView>>,
}

impl Client<'_> {
    /// The accounts that its requests are counted in, too.
    fn accounts(&self) -> Vec<Arc<Account>> {
        [Some(&self.connection.account), self.account.as_ref()].into_iter().flatten().cloned().collect()
    }

    fn name(&self) -> Option<&str> {
        self.user.token.as_ref().map(|token| token.name.as_str())
    }

    /// The address of the dataset.
    fn root(&self) -> String {
        format!("{}://{}{}", self.scheme, self.host, self.dataset.mount())
    }
}

impl Service {
    pub fn new(datasets: Source, config: &ServerConfig) -> Self {
        let running = Arc::new(Register::default());
        let commands = Arc::new(Register::timed_with(&running));
        Self {
            connections: Arc::default(),
            addresses: Addresses::new(config.limits.per_address, &config.trusted_proxies),
            datasets,
            slots: Slots::new(config.limits.queries),
            change_slots: Slots::new(config.limits.changes),
            limits: config.limits.clone(),
            audience: Audience::new(&config.allow_hosts, !config.keeper.is_open_to_all()),
            cors: config.cors.clone(),
            keeper: Arc::clone(&config.keeper),
            users: Mutex::default(),
            logs: Arc::clone(&config.logs),
            allow_load: config.allow_load.clone(),
            contexts: config.contexts.clone(),
            read_only: config.read_only,
            running,
            commands,
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            tried: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            started: Instant::now(),
            advisor: Mutex::default(),
        }
    }

    /// Has `answer` begin for each database of a folder that is opened for writing.
    pub fn answer_commands(&self, answer: AnswerCommands) {
        // Commands are answered by the process that may write.
        if let (Source::Many(datasets), false) = (&self.datasets, self.read_only) {
            datasets.answer_commands(answer);
        }
    }

    /// Closes datasets that are idle for long.
    pub async fn close_idle(&self) {
        if let Source::Many(datasets) = &self.datasets {
            datasets.close_idle().await;
        }
    }

    /// Those that are open.
    fn open_datasets(&self) -> Vec<Arc<Dataset>> {
        match &self.datasets {
            Source::One(one) => vec![Arc::clone(one)],
            Source::Many(datasets) => datasets.open_ones(),
        }
    }

    pub fn limits(&self) -> &ServerLimits {
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
        let begun = Instant::now();
        if is_last(&request) {
            link.set_last();
        }
        let origin = request.headers().get(header::ORIGIN).cloned();
        let (peer, counted) = match self.addresses.client(connection.peer(), request.headers()) {
            Ok((peer, counted)) => (peer, Ok(counted)),
            Err(why) => (connection.peer(), Err(why)),
        };
        let line = self.logs.access.is_some().then(|| RequestLine::new(&request, peer.to_string()));
        let mut user = None;
        let answered = match (link.take_verdict(), &counted) {
            (Ok(()), Ok(_)) => self.route(request, (connection, peer), &mut user).await,
            (Ok(()), Err(NoClient::TooMany)) => Err(Why::TooMany(self.addresses.most()).into()),
            (Ok(()), Err(NoClient::TwoNames)) => {
                let message = "Forwarded and X-Forwarded-For name different clients: have the proxy write one of them and remove the other";
                Err(bad(message).into())
            }
            (Err(doubt), _) => Err(bad(doubt).into()),
        };
        let counter = if answered.is_ok() { &self.answered } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut response = answered.unwrap_or_else(Failure::response);
        self.cors.mark(origin.as_ref(), response.headers_mut());
        browser::bound(response.headers_mut());
        let response_of = |body: AnswerBody| body.counted(counted.ok().flatten());
        if !link.is_complete() {
            // Its body is not wanted any more.
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
        }
        let response = response.map(response_of);
        let Some(line) = line else { return Ok(response.map(|body| body.on(link))) };
        let (logs, line) = (Arc::clone(&self.logs), line.by(user.as_deref()));
        let (status, headers) = (response.status(), response.headers().clone());
        let log = move |bytes| logs.request(&line, status, bytes, begun.elapsed(), &headers);
        Ok(response.map(|body| body.on(link).when_over(log)))
    }

    /// `name` is told the user's, once it is known.
    async fn route(
        &self,
        request: Request<Incoming>,
        (connection, peer): (&Connection, SocketAddr),
        name: &mut Option<String>,
    ) -> Answered {
        let (head, body) = request.into_parts();
        let host = self.audience.host_of(&head)?;
        let path = head.uri.path();
        let (dataset, in_dataset) = split(path, &self.datasets);
        let found = Resource::at(in_dataset).filter(|found| dataset.is_none() || found.is_of_dataset());
        let Some(resource) = found else {
            let message = format!("no such resource: {path}; queries and updates go to /sparql");
            return Err((StatusCode::NOT_FOUND, message).into());
        };
        if head.method == Method::OPTIONS {
            return Ok(self.options_of(resource, &head.headers));
        }
        if !resource.methods().contains(&head.method) {
            return Err(Why::Method(resource).into());
        }
        let user = match resource.needs(&head.method) {
            Some(rights) => self.keeper.user(&head.headers, rights).map_err(Why::Denied)?,
            None => User { token: None, rights: Rights::Read },
        };
        *name = user.token.as_ref().map(|token| token.name.clone());
        if resource.is_of_dataset() {
            if matches!((&self.datasets, dataset, resource), (Source::Many(_), None, Resource::Stats)) {
                self.check_all_datasets(&user)?;
                return Ok(self.stats(None, head.uri.query())?);
            }
            let dataset = self.dataset(dataset, &user).await?;
            let account = user.token.as_ref().map(|token| self.account_of_user(&token.name));
            let (scheme, view) = (scheme(&head.headers, connection), user.view());
            let client = Client { dataset, connection, peer, user, account, host, scheme, view };
            let is_limited = client.view.is_some();
            let answered = self.of_dataset(resource, head, body, &client).await;
            return match is_limited {
                true => {
                    answered.map(without_activity).map_err(|failure| Failure { activity: None, ..failure })
                }
                false => answered,
            };
        }
        self.of_server(resource, &head, (&user, peer), &host, connection).await
    }

    /// A resource of the server itself.
    async fn of_server(
        &self,
        resource: Resource,
        head: &Parts,
        (user, peer): (&User, SocketAddr),
        host: &str,
        connection: &Connection,
    ) -> Answered {
        // Some look at pages, or take counters under a lock.
        let quickly = |act: &dyn Fn() -> Result<HttpResponse, Refusal>| tokio::task::block_in_place(act);
        let check = |wish| check_origin(&head.headers, host, &self.cors, wish);
        match resource {
            Resource::Datasets => Ok(self.list_datasets(user)?),
            Resource::Dataset => {
                check(Wish::Change)?;
                self.change_dataset(head, user, peer).await
            }
            Resource::Metrics => {
                self.check_all_datasets(user)?;
                Ok(quickly(&|| Ok(self.metrics()))?)
            }
            Resource::Ready => Ok(quickly(&|| self.ready())?),
            Resource::Requests => {
                self.check_all_datasets(user)?;
                Ok(self.requests())
            }
            Resource::Request(number) => {
                self.check_all_datasets(user)?;
                check(if head.method == Method::DELETE { Wish::Change } else { Wish::Read })?;
                Ok(quickly(&|| self.request(number, &head.method))?)
            }
            Resource::Health => Ok(text(StatusCode::OK, "ok\n")),
            Resource::Index => Ok(match &self.datasets {
                Source::One(_) if negotiate::wants_page(accept(&head.headers).as_deref()) => {
                    page_of("", &format!("{}://{host}", scheme(&head.headers, connection)))
                }
                Source::One(_) => text(StatusCode::OK, INDEX),
                Source::Many(_) => text(StatusCode::OK, format!("{MANY}{INDEX}")),
            }),
            _ => unreachable!("the others are of a dataset"),
        }
    }

    /// A resource of a dataset.
    async fn of_dataset(
        &self,
        resource: Resource,
        head: Parts,
        body: Incoming,
        client: &Client<'_>,
    ) -> Answered {
        match resource {
            Resource::Sparql | Resource::Query | Resource::Update => {
                self.operation(resource, head, body, client).await
            }
            Resource::Graphs => self.graph(head, body, client).await,
            Resource::StatsReset => {
                check_origin(&head.headers, &client.host, &self.cors, Wish::Change)?;
                Ok(self.reset(&client.dataset, &head)?)
            }
            _ => {
                let stats = || self.stats(Some(&client.dataset), head.uri.query());
                Ok(tokio::task::block_in_place(stats)?)
            }
        }
    }

    /// The dataset of a request, opened if it is not.
    async fn dataset(&self, name: Option<&str>, user: &User) -> Result<Arc<Dataset>, Failure> {
        match (&self.datasets, name) {
            (Source::One(one), _) => {
                self.check_dataset(user, "")?;
                Ok(Arc::clone(one))
            }
            (Source::Many(datasets), Some(name)) => {
                self.check_dataset(user, name)?;
                Ok(datasets.get(name).await.map_err(datasets::refusal)?)
            }
            (Source::Many(_), None) => {
                let message = "which dataset? /NAME/sparql; /datasets lists them".to_owned();
                Err((StatusCode::NOT_FOUND, message).into())
            }
        }
    }

    fn account_of_user(&self, name: &str) -> Arc<Account> {
        let mut users = self.users.lock().expect("no holder panics");
        Arc::clone(users.entry(name.to_owned()).or_insert_with(Account::alone))
    }

    /// The methods of a resource, and what a browser asks before a page's request.
    fn options_of(&self, resource: Resource, asked: &HeaderMap) -> HttpResponse {
        let mut response = empty(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        headers.insert(header::ALLOW, allow(resource));
        headers.insert(header::ACCEPT_ENCODING, header::HeaderValue::from_static(CODINGS));
        self.cors.preflight(asked, resource, headers);
        response
    }

    async fn operation(
        &self,
        resource: Resource,
        head: Parts,
        body: Incoming,
        client: &Client<'_>,
    ) -> Answered {
        if resource != Resource::Query && request::is_plain_update(&head.method, &head.headers) {
            return self.plain_update(head, body, client).await;
        }
        check_origin(&head.headers, &client.host, &self.cors, Wish::Read)?;
        let coding = Coding::of_body(&head.headers)?;
        let watch = BodyWatch { task: None, most_work: self.limits.timeout };
        let body = intake::hold(body, coding, &self.limits, client.dataset.engine.database(), watch).await?;
        let operation = request::parse(&head.method, head.uri.query(), &head.headers, &body.bytes)?;
        let address = format!("{}://{}{}", client.scheme, client.host, head.uri.path());
        match (operation, resource) {
            (Operation::Nothing, _) => {
                let format = parameter(head.uri.query(), "format");
                self.describe(&address, client, &head.headers, format.as_deref()).await
            }
            (Operation::Query(_), Resource::Update) => Err(bad("queries go to /sparql or /query").into()),
            (Operation::Update(_), Resource::Query) => Err(bad("updates go to /sparql or /update").into()),
            (Operation::Query(query), _) => {
                let account = self.account_of_query(client, query.priority);
                let wanted = Wanted::of(&head.headers, query.format.as_deref());
                let answered = self.query(query, Some(address), wanted, client, Arc::clone(&account));
                with_account(answered, &account).await
            }
            (Operation::Update(update), _) => {
                check_origin(&head.headers, &client.host, &self.cors, Wish::Change)?;
                self.may_change(client)?;
                let listed = self.list_change(RequestKind::Update, &update.text, client, update.priority);
                let account = Arc::clone(listed.account());
                with_account(self.update(update, None, address, client, listed), &account).await
            }
        }
    }

    /// The account of one query, within those of all queries, of the connection and of the user.
    fn account_of_query(&self, client: &Client<'_>, priority: Priority) -> Arc<Account> {
        Account::prioritized(&client.dataset.query_account, &client.accounts(), priority, None)
    }

    /// The account of one change, within those of all changes, of the connection and of the user.
    fn account_of_update(&self, client: &Client<'_>, priority: Priority) -> Arc<Account> {
        Account::prioritized(&client.dataset.update_account, &client.accounts(), priority, None)
    }

    async fn query(
        &self,
        query: ProtocolRequest,
        base: Option<String>,
        wanted: Wanted,
        client: &Client<'_>,
        account: Arc<Account>,
    ) -> Answered {
        let mut slot = self.slot(&self.slots, "queries", "--queries").await?;
        let running = self.running.enter(RequestKind::Query, &client.dataset.name, &query.text, &account);
        let account = Some(account);
        let rows = Some(Arc::clone(&running.task.rows));
        let options =
            QueryOptions { base, account, rows, ..self.options(&query, client, &running.task.cancel) };
        let Dataset { engine, states, .. } = &*client.dataset;
        if Thread::of(engine, &query, &options) == Thread::OfConnection {
            self.tried.fetch_add(1, Ordering::Relaxed);
            let (head_sender, mut head) = oneshot::channel();
            let turn = (slot, Thread::OfConnection);
            let logs = &self.logs;
            let answer =
                || run::answer((engine, states, logs), &query.text, &options, &wanted, turn, head_sender);
            // On a thread of its own a panic would end that alone.
            std::panic::catch_unwind(AssertUnwindSafe(answer)).map_err(|_| lost())?;
            if let Ok(head) = head.try_recv() {
                return Ok(begun(head?, running));
            }
            self.given_up.fetch_add(1, Ordering::Relaxed);
            slot = self.slot(&self.slots, "queries", "--queries").await?;
        }
        let (head_sender, answer_head) = oneshot::channel();
        let (engine, states, logs) = (Arc::clone(engine), Arc::clone(states), Arc::clone(&self.logs));
        tokio::task::spawn_blocking(move || match query.explain {
            None => {
                let turn = (slot, Thread::Own);
                run::answer((&engine, &states, &logs), &query.text, &options, &wanted, turn, head_sender)
            }
            Some(explain) => {
                let _slot = slot;
                drop(head_sender.send(run::explained(&engine, &query.text, &options, explain, &wanted)));
            }
        });
        Ok(begun(answer_head.await.map_err(|_| lost())??, running))
    }

    /// The Graph Store Protocol.
    async fn graph(&self, head: Parts, body: Incoming, client: &Client<'_>) -> Answered {
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        let wish = if reads { Wish::Read } else { Wish::Change };
        check_origin(&head.headers, &client.host, &self.cors, wish)?;
        let path = &head.uri.path()[client.dataset.mount().len()..];
        let target = graph_store::target(&head.method, path, head.uri.query(), &client.root())?;
        if reads {
            let account = self.account_of_query(client, Priority::Normal);
            let format = parameter(head.uri.query(), "format");
            let wanted = Wanted::of(&head.headers, format.as_deref());
            let answered = self.read_graph(&target, wanted, client, &account);
            return with_account(answered, &account).await;
        }
        self.change_graph(target, head, body, client).await
    }

    async fn read_graph(
        &self,
        target: &Target,
        wanted: Wanted,
        client: &Client<'_>,
        account: &Arc<Account>,
    ) -> Answered {
        if *target == Target::All {
            return self.whole(wanted, client, account).await;
        }
        let find = || graph_store::query_of(&client.dataset.engine, target, client.view.as_deref(), account);
        let text = tokio::task::block_in_place(find)?;
        let asked = ProtocolRequest { text, triples_are_distinct: true, ..ProtocolRequest::default() };
        self.query(asked, None, wanted, client, Arc::clone(account)).await
    }

    /// All graphs, written out.
    async fn whole(&self, wanted: Wanted, client: &Client<'_>, account: &Arc<Account>) -> Answered {
        let slot = self.slot(&self.slots, "queries", "--queries").await?;
        let running = self.running.enter(RequestKind::Graph, &client.dataset.name, "all graphs", account);
        let most = self.timeout(&ProtocolRequest::default(), client);
        let limits = DumpLimits {
            cancel: Arc::clone(&running.task.cancel),
            deadline: most.map(|most| (Instant::now() + most, most)),
            rows: client.user.token.as_ref().and_then(|token| token.rows),
            view: client.view.clone(),
        };
        let account = Arc::clone(account);
        let (head_sender, answer_head) = oneshot::channel();
        let (engine, states) = (Arc::clone(&client.dataset.engine), Arc::clone(&client.dataset.states));
        tokio::task::spawn_blocking(move || {
            run::dump((&engine, &states), (&account, &limits), &wanted, slot, head_sender)
        });
        Ok(begun(answer_head.await.map_err(|_| lost())??, running))
    }

    /// A slot, once it is this request's turn.
    async fn slot(&self, slots: &Slots, what: &'static str, switch: &'static str) -> Result<Slot, Failure> {
        let wait = self.limits.wait;
        let busy = || Why::Busy { what, all: slots.all(), switch, wait };
        slots.take(wait).await.ok_or_else(|| Failure { why: busy(), activity: None })
    }

    /// The service and its data, for those that ask nothing.
    async fn describe(
        &self,
        endpoint: &str,
        client: &Client<'_>,
        headers: &HeaderMap,
        format: Option<&str>,
    ) -> Answered {
        if format.is_none() && negotiate::wants_page(accept(headers).as_deref()) {
            return Ok(page_of(&client.dataset.mount(), endpoint));
        }
        let (format, media_type) = Wanted::of(headers, format).format(Answer::Description)?;
        let format = format.graph().expect("descriptions are graphs");
        let offer = Offer { updates: !self.read_only };
        let describe = || {
            let summary = match client.view {
                None => Some(client.dataset.summary().map_err(|e| internal(&e))?),
                Some(_) => None,
            };
            description::describe(endpoint, offer, summary.as_deref(), format)
                .map(|text| (summary.map(|summary| summary.txn), text))
                .map_err(|e| internal(&e))
        };
        let (txn, text) = tokio::task::block_in_place(describe)?;
        let mut response = response(StatusCode::OK, media_type, AnswerBody::whole(text));
        let states = &client.dataset.states;
        if txn.is_some_and(|txn| {
            states.mark(txn, media_type, &Kept::from_headers(headers), response.headers_mut())
        }) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = AnswerBody::empty();
        }
        Ok(response)
    }

    /// The requests that run.
    fn requests(&self) -> HttpResponse {
        let list: Vec<serde_json::Value> = self.running.tasks().iter().map(|task| task.json()).collect();
        json(&serde_json::json!({ "requests": list }))
    }

    /// One of them, with its plan; DELETE ends it.
    fn request(&self, number: u64, method: &Method) -> Result<HttpResponse, Refusal> {
        let Some(task) = self.running.tasks().into_iter().find(|task| task.number == number) else {
            let message = format!("no request {number} runs: /requests lists those that do");
            return Err((StatusCode::NOT_FOUND, message));
        };
        if method == Method::DELETE {
            task.cancel.store(true, Ordering::Relaxed);
            return Ok(empty(StatusCode::ACCEPTED));
        }
        let mut about = task.json();
        let datasets = self.open_datasets();
        let dataset = datasets.iter().find(|dataset| dataset.name == task.dataset);
        if task.kind == RequestKind::Query
            && let Some(dataset) = dataset
            && let Ok(plan) = dataset.engine.explain(&task.text(), &QueryOptions::default())
        {
            about["plan"] = plan.lines().map(str::to_owned).collect();
        }
        Ok(json(&about))
    }

    /// Whether this server changes data.
    fn may_change(&self, client: &Client<'_>) -> Result<(), Why> {
        if self.read_only {
            let message = "this server is read-only (--read-only)".to_owned();
            return Err(Why::Refused((StatusCode::FORBIDDEN, message)));
        }
        match (client.user.rights >= Rights::Write, &client.user.token) {
            (true, _) => Ok(()),
            (false, None) if self.keeper.has_tokens() => Err(Why::Denied(Denied::Unknown)),
            (false, _) => Err(Why::Denied(Denied::Forbidden(Rights::Write))),
        }
    }

    /// The least of the times that the request, its user and the server allow.
    fn timeout(&self, asked: &ProtocolRequest, client: &Client<'_>) -> Option<Duration> {
        let of_user = client.user.token.as_ref().and_then(|token| token.timeout).map(Duration::from_secs);
        let asked = asked.timeout_ms.map(Duration::from_millis);
        [asked, of_user, self.limits.timeout].into_iter().flatten().min()
    }

    fn threads(&self, asked: &ProtocolRequest) -> usize {
        asked.threads.unwrap_or(usize::MAX).min(self.limits.threads)
    }

    fn options(
        &self,
        query: &ProtocolRequest,
        client: &Client<'_>,
        cancel: &Arc<AtomicBool>,
    ) -> QueryOptions {
        let token = client.user.token.as_ref();
        QueryOptions {
            timeout: self.timeout(query, client),
            memory: token.and_then(|token| token.memory),
            max_rows: token.and_then(|token| token.rows),
            cancel: Some(Arc::clone(cancel)),
            threads: self.threads(query),
            default_graphs: query.default_graphs.clone(),
            named_graphs: query.named_graphs.clone(),
            view: client.view.clone(),
            triples_are_distinct: query.triples_are_distinct,
            ..QueryOptions::default()
        }
    }

    /// Of a dataset, or of the server of several.
    fn stats(&self, of: Option<&Dataset>, parameters: Option<&str>) -> Result<HttpResponse, Refusal> {
        let asked = |name: &str| parameter(parameters, name);
        let (open, connections) = self.connections.json();
        let mut stats = serde_json::json!({
            "uptime_s": self.started.elapsed().as_secs_f64(),
            "answered": self.answered.load(Ordering::Relaxed),
            "refused": self.refused.load(Ordering::Relaxed),
            "tried_at_once": self.tried.load(Ordering::Relaxed),
            "given_up_at_once": self.given_up.load(Ordering::Relaxed),
            "running": self.running.len(),
            "commands": self.commands.len(),
            "turns": self.turns(),
            "open_connections": open,
            "connections": connections,
        });
        let standing = as_json(&self.advice(of))["advice"].take();
        stats["advice"] = if standing.is_null() { serde_json::json!([]) } else { standing };
        let Some(dataset) = of else {
            if let Source::Many(datasets) = &self.datasets {
                stats["datasets"] = serde_json::to_value(datasets.list()).unwrap_or_default();
            }
            return Ok(json(&stats));
        };
        let database = dataset.engine.database().stats().map_err(|e| internal(&e))?;
        let mut samples = dataset.engine.database().report().samples();
        if let Some(column) = asked("sort")
            && !sort_trees(&mut samples, &column)
        {
            let message = format!("trees have no column {column}: sort by {}", TREE_COLUMNS.join(", "));
            return Err((StatusCode::BAD_REQUEST, message));
        }
        if asked("format").is_some_and(|format| format == "table") {
            samples.extend(self.advice(of));
            return Ok(text(StatusCode::OK, format!("{database}\n{}", as_text(&samples))));
        }
        stats["database"] = serde_json::to_value(&database).unwrap_or_default();
        if let (Some(stats), serde_json::Value::Object(meters)) = (stats.as_object_mut(), as_json(&samples)) {
            stats.extend(meters);
        }
        Ok(json(&stats))
    }
}

impl Service {
    /// All meters in the text format of Prometheus.
    fn metrics(&self) -> HttpResponse {
        let mut samples = Samples::default();
        samples.level("uptime_s", "s", self.started.elapsed().as_secs_f64());
        samples.count("requests.answered", "requests", self.answered.load(Ordering::Relaxed));
        samples.count("requests.refused", "requests", self.refused.load(Ordering::Relaxed));
        samples.count("requests.tried_at_once", "requests", self.tried.load(Ordering::Relaxed));
        samples.count("requests.given_up_at_once", "requests", self.given_up.load(Ordering::Relaxed));
        samples.level("requests.running", "requests", self.running.len() as u64);
        samples.level("commands.running", "commands", self.commands.len() as u64);
        samples.level("connections.open", "connections", self.connections.len() as u64);
        for (kind, slots) in [("queries", &self.slots), ("changes", &self.change_slots)] {
            let (waited, time) = slots.waited();
            samples.labelled("kind", kind, |samples| {
                samples.count("turns.*.waited", "requests", waited);
                samples.count("turns.*.waited_s", "s", time.as_secs_f64());
            });
        }
        let mut samples = samples.into_list();
        for dataset in self.open_datasets() {
            let mut of = dataset.engine.database().report().samples();
            if !dataset.name.is_empty() {
                let label = || ("dataset".into(), dataset.name.clone());
                of.iter_mut().for_each(|sample| sample.labels.insert(0, label()));
            }
            samples.extend(of);
        }
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
        let datasets = self.open_datasets();
        let stores = || datasets.iter().map(|dataset| dataset.engine.database().store());
        let failed = stores().find_map(|store| store.poisoned());
        let failed = failed.map(|why| format!("updates fail until the server is started again: {why}"));
        let waits = || stores().find_map(|store| store.unready()).map(|why| format!("updates wait: {why}"));
        match failed.or_else(waits) {
            Some(why) => Err((StatusCode::SERVICE_UNAVAILABLE, why)),
            None => Ok(text(StatusCode::OK, "ready\n")),
        }
    }

    /// Sets meters to zero: all, those of a tree or those of an account.
    fn reset(&self, dataset: &Dataset, head: &Parts) -> Result<HttpResponse, Refusal> {
        let asked = |name: &str| parameter(head.uri.query(), name);
        let scope = match (asked("tree"), asked("account")) {
            (None, None) => MeterScope::All,
            (Some(tree), None) => MeterScope::Tree(tree),
            (None, Some(account)) => MeterScope::Account(account),
            (Some(_), Some(_)) => return Err(bad("one at a time: 'tree' or 'account'")),
        };
        self.reset_meters(dataset, &scope).map_err(|message| (StatusCode::NOT_FOUND, message))?;
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// All meters, and the open connections among the accounts.
    pub fn meters(&self, dataset: &Dataset) -> Report {
        let mut report = dataset.engine.database().report();
        report.accounts.extend(self.connections.accounts());
        let users = self.users.lock().expect("no holder panics");
        report.accounts.extend(users.iter().map(|(name, account)| AccountStats {
            name: format!("user {name}"),
            activity: account.activity(),
        }));
        report
    }

    fn reset_user(&self, name: &str) -> bool {
        let users = self.users.lock().expect("no holder panics");
        let user = name.strip_prefix("user ").and_then(|name| users.get(name));
        user.inspect(|account| account.reset()).is_some()
    }

    /// Has them count anew; why not, if there is none of that name.
    pub fn reset_meters(&self, dataset: &Dataset, scope: &MeterScope) -> Result<(), String> {
        match scope {
            MeterScope::Account(name) if self.connections.reset(name) || self.reset_user(name) => Ok(()),
            _ => dataset.engine.database().store().reset(scope).map_err(|error| error.to_string()),
        }
    }
}

/// The answer that a query has begun.
fn begun(Begun { status, headers, body, activity }: Begun, running: Running) -> HttpResponse {
    let mut response = Response::new(body.while_running(running));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    let (name, value) = match &activity {
        Some(activity) => (ACTIVITY, activity_value(activity)),
        None => (header::TRAILER, header::HeaderValue::from_static("Snowmelt-Activity")),
    };
    response.headers_mut().insert(name, value);
    response
}

/// Whether the client sends nothing after this one on its connection.
fn is_last(request: &Request<Incoming>) -> bool {
    let asked = request.headers().get_all(header::CONNECTION).iter();
    let mut asked = asked.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    asked.any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// How the client reached the server: a proxy in front of it says so.
fn scheme(headers: &HeaderMap, connection: &Connection) -> &'static str {
    let by_proxy = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    if by_proxy || connection.is_encrypted { "https" } else { "http" }
}

/// Takes the activity out of an answer: its header, and the announcement of a trailer.
fn without_activity(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().remove(ACTIVITY);
    response.headers_mut().remove(header::TRAILER);
    response
}

/// A page for people.
fn page_of(mount: &str, endpoint: &str) -> HttpResponse {
    response(StatusCode::OK, "text/html; charset=utf-8", AnswerBody::whole(page::form(mount, endpoint)))
}

const MANY: &str = "\
Snowmelt serves the datasets that /datasets lists: /NAME/sparql, /NAME/update, /NAME/graphs and
/NAME/stats are of each. PUT, DELETE /datasets/NAME make and drop one; POST /datasets/NAME with
?rename=TO, ?backup=COPY or ?compact names it anew, copies it, gives its space back.

";

const INDEX: &str = "\
Snowmelt answers SPARQL queries and runs updates here.

  GET  /sparql?query=...          JSON, XML, CSV, TSV, HTML; graphs as N-Triples, Turtle, RDF/XML,
                                  JSON-LD, N-Quads, TriG, by Accept or &format=; &explain=plan|analyze
  POST /sparql                    a form with 'query', or the query itself as application/sparql-query
  POST /update                    a form with 'update', or the update itself as application/sparql-update
  GET, HEAD, PUT, POST, DELETE /graphs?default, /graphs?graph=IRI   a whole graph
  GET, PUT, POST /graphs          all graphs, as TriG, N-Quads or JSON-LD
  GET  /sparql                    what is here: service description and VoID
  GET  /requests                  what runs now; GET, DELETE /requests/N: its plan, its end
  GET  /stats                     what is stored, what was read
  GET  /metrics                   the same for Prometheus
  GET  /ready                     200 when queries and updates are worth sending
  POST /stats/reset               counts anew: all, ?tree=NAME, ?account=NAME
  GET  /health                    ok
";
