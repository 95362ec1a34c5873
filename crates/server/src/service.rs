//! One HTTP request: counted, routed, answered by the part that its resource belongs to, logged.
//!
//! | part        | resources                                                                |
//! |-------------|--------------------------------------------------------------------------|
//! | `router`    | which one is asked for, and may the user                                 |
//! | `protocol`  | `/sparql`, `/query`, `/update`: a query, an update, the description      |
//! | `graphs`    | `/graphs`                                                                |
//! | `admin`     | datasets, running requests, meters, the index                            |
//!
//! Queries, and reading of graphs, go through `query`; updates, and writing of graphs, through
//! `change`. All parts share a `context`.

mod admin;
mod admission;
mod answers;
mod attempt;
mod change;
mod context;
mod dump;
mod graphs;
mod protocol;
mod query;
mod router;
mod update;
mod wanted;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, StatusCode, header};

use self::answers::{Answered, Failure, HttpResponse, Why, accept, allow, bad, empty, without_activity};
use self::change::Changes;
use self::context::{Context, DatasetRequest};
use self::graphs::Graphs;
use self::protocol::Protocol;
use self::query::Queries;
use self::router::{Route, Router};
use self::update::Updates;

use crate::ServerConfig;
use crate::addresses::{Addresses, NoClient};
use crate::body::AnswerBody;
use crate::browser;
use crate::coding::CODINGS;
use crate::connections::{Connection, Connections};
use crate::dataset::catalog::Catalog;
use crate::dataset::folder::AnswerCommands;
use crate::guard::Link;
use crate::limits::ServerLimits;
use crate::logs::RequestLine;
use crate::negotiate;
use crate::resource::Resource;
use crate::users::Users;

pub use self::admin::Admin;
pub use self::admin::advised::advise;

/// Answers the requests of all connections.
pub struct Service {
    context: Arc<Context>,
    connections: Arc<Connections>,
    addresses: Arc<Addresses>,
    router: Router,
    protocol: Protocol,
    graphs: Graphs,
    admin: Arc<Admin>,
}

impl Service {
    pub fn new(catalog: Catalog, config: &ServerConfig) -> Self {
        let context = Arc::new(Context::new(catalog, config));
        let shared = || Arc::clone(&context);
        let (users, connections) = (Arc::<Users>::default(), Arc::<Connections>::default());
        let queries = Arc::new(Queries::new(shared()));
        let changes = Arc::new(Changes::new(shared(), config.contexts.clone()));
        let updates = Updates::new(shared(), Arc::clone(&changes), config.allow_load.clone());
        Self {
            addresses: Addresses::new(config.limits.per_address, &config.trusted_proxies),
            router: Router::new(shared(), Arc::clone(&users), config),
            protocol: Protocol::new(shared(), Arc::clone(&queries), updates),
            graphs: Graphs::new(shared(), Arc::clone(&queries), changes),
            admin: Arc::new(Admin::new(shared(), Arc::clone(&connections), users, queries)),
            connections,
            context,
        }
    }

    pub fn limits(&self) -> &ServerLimits {
        &self.context.limits
    }

    /// The open connections.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// The addresses of clients.
    pub fn addresses(&self) -> &Arc<Addresses> {
        &self.addresses
    }

    /// The part that commands beside the server need.
    pub fn admin(&self) -> &Arc<Admin> {
        &self.admin
    }

    /// Has `answer` begin for each database of a folder that is opened for writing.
    pub fn answer_commands(&self, answer: AnswerCommands) {
        // Commands are answered by the process that may write.
        if !self.context.is_read_only {
            self.context.catalog.answer_commands(answer);
        }
    }

    /// Closes datasets that are idle for long.
    pub async fn close_idle(&self) {
        self.context.catalog.close_idle().await;
    }

    /// Asks every running request to stop.
    pub fn cancel_all(&self) {
        self.context.running.cancel_all();
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
        let problem = negotiate::problem_type(accept(request.headers()).as_deref());
        let (peer, counted) = match self.addresses.client(connection.peer(), request.headers()) {
            Ok((peer, counted)) => (peer, Ok(counted)),
            Err(why) => (connection.peer(), Err(why)),
        };
        let logs = &self.context.logs;
        let line = logs.access.is_some().then(|| RequestLine::new(&request, peer.to_string()));
        let mut user = None;
        let answered = match (link.take_verdict(), &counted) {
            (Ok(()), Ok(_)) => self.answer(request, connection, peer, &mut user).await,
            (Ok(()), Err(NoClient::TooMany)) => Err(Why::TooMany(self.addresses.most()).into()),
            (Ok(()), Err(NoClient::TwoNames)) => {
                let message = "Forwarded and X-Forwarded-For name different clients: have the proxy write one of them and remove the other";
                Err(bad(message).into())
            }
            (Err(doubt), _) => Err(bad(doubt).into()),
        };
        self.admin.count(answered.is_ok());
        let mut response = answered.unwrap_or_else(|failure| failure.response(problem));
        self.context.cors.mark(origin.as_ref(), response.headers_mut());
        browser::bound(response.headers_mut());
        let response_of = |body: AnswerBody| body.counted(counted.ok().flatten());
        if !link.is_complete() {
            // Its body is not wanted any more.
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
        }
        let response = response.map(response_of);
        let Some(line) = line else { return Ok(response.map(|body| body.on(link))) };
        let (logs, line) = (Arc::clone(logs), line.by(user.as_deref()));
        let (status, headers) = (response.status(), response.headers().clone());
        let log = move |bytes| logs.request(&line, status, bytes, begun.elapsed(), &headers);
        Ok(response.map(|body| body.on(link).when_over(log)))
    }

    /// Routes a request and answers it; `user_name` becomes its user's, once that is known.
    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
        peer: SocketAddr,
        user_name: &mut Option<String>,
    ) -> Answered {
        let (head, body) = request.into_parts();
        match self.router.route(&head, connection, peer, user_name).await? {
            Route::Options(resource) => Ok(self.options(resource, &head.headers)),
            Route::Server(resource, client) => self.admin.answer(resource, &head, &client).await,
            Route::Dataset(resource, request) => {
                let answered = self.answer_dataset(resource, head, body, &request).await;
                if request.view.is_none() {
                    return answered;
                }
                // It would tell of graphs that are not there for the user.
                answered.map(without_activity).map_err(|failure| Failure { activity: None, ..failure })
            }
        }
    }

    /// A resource of a dataset.
    async fn answer_dataset(
        &self,
        resource: Resource,
        head: Parts,
        body: Incoming,
        request: &DatasetRequest<'_>,
    ) -> Answered {
        match resource {
            Resource::Graphs => self.graphs.answer(head, body, request).await,
            Resource::Stats => self.admin.answer_meters(&head, request),
            Resource::StatsReset => self.admin.answer_reset(&head, request),
            _ => self.protocol.answer(resource, head, body, request).await,
        }
    }

    /// The methods of a resource, and what a browser asks before a page's request.
    fn options(&self, resource: Resource, asked: &HeaderMap) -> HttpResponse {
        let mut response = empty(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        headers.insert(header::ALLOW, allow(resource));
        headers.insert(header::ACCEPT_ENCODING, header::HeaderValue::from_static(CODINGS));
        self.context.cors.preflight(asked, resource, headers);
        response
    }
}

/// Whether the client sends nothing after this one on its connection.
fn is_last(request: &Request<Incoming>) -> bool {
    let asked = request.headers().get_all(header::CONNECTION).iter();
    let mut asked = asked.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    asked.any(|option| option.trim().eq_ignore_ascii_case("close"))
}
