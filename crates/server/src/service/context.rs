//! State that all requests of a server share, and the sender of one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use snowmelt_base::service_depth;
use snowmelt_database::{Account, Priority};
use snowmelt_graph::{GraphView, Namespaces};
use snowmelt_sparql::RemoteEndpoints;

use super::admission::Admission;
use super::answers::Failure;
use crate::audience::check_origin;
use crate::connections::Connection;
use crate::cors::{Cors, Wish};
use crate::dataset::Dataset;
use crate::dataset::catalog::Catalog;
use crate::limits::ServerLimits;
use crate::logs::Logs;
use crate::refusal::Refusal;
use crate::request::ProtocolRequest;
use crate::running::Register;
use crate::tokens::{Keeper, Rights, User};
use crate::{QueryStyle, ServerConfig};

/// State that all requests share.
pub struct Context {
    pub catalog: Catalog,
    pub limits: ServerLimits,
    pub admission: Admission,
    /// the requests that run
    pub running: Arc<Register>,
    pub logs: Arc<Logs>,
    pub cors: Cors,
    pub keeper: Arc<Keeper>,
    pub style: QueryStyle,
    pub is_read_only: bool,
    /// endpoints that may be asked
    pub remote: Option<Arc<dyn RemoteEndpoints>>,
}

/// The sender of a request, and how it reached the server.
pub struct Client<'a> {
    pub connection: &'a Connection,
    /// its own address, also where a proxy passed the request on
    pub peer: SocketAddr,
    pub user: User,
    /// the authority that it asked
    pub host: String,
    pub scheme: &'static str,
}

/// A request to a dataset, with its sender.
pub struct DatasetRequest<'a> {
    pub client: Client<'a>,
    pub dataset: Arc<Dataset>,
    /// the user's, if it has a name
    pub account: Option<Arc<Account>>,
    /// graphs that are there for the user; none: all
    pub view: Option<Arc<GraphView>>,
    /// requests of other servers that it is within
    pub depth: u32,
}

impl Context {
    pub fn new(catalog: Catalog, config: &ServerConfig) -> Self {
        Self {
            catalog,
            limits: config.limits.clone(),
            admission: Admission::new(&config.limits),
            running: Arc::default(),
            logs: Arc::clone(&config.logs),
            cors: config.cors.clone(),
            keeper: Arc::clone(&config.keeper),
            style: config.style,
            is_read_only: config.read_only,
            remote: config.remote.clone(),
        }
    }

    /// Refuses what a page of another site asks for, unless it may.
    pub fn check_origin(&self, head: &Parts, client: &Client<'_>, wish: Wish) -> Result<(), Refusal> {
        check_origin(&head.headers, &client.host, &self.cors, wish)
    }

    /// Refuses changes on a read-only server, and those of users without the right.
    pub fn check_may_change(&self, user: &User) -> Result<(), Failure> {
        if self.is_read_only {
            return Err(read_only().into());
        }
        Ok(self.keeper.check(user, Rights::Write)?)
    }

    /// The least of the times that the request, its user and the server allow.
    pub fn timeout(&self, asked: &ProtocolRequest, user: &User) -> Option<Duration> {
        let of_user = user.token.as_ref().and_then(|token| token.timeout).map(Duration::from_secs);
        let asked = asked.timeout_ms.map(Duration::from_millis);
        [asked, of_user, self.limits.timeout].into_iter().flatten().min()
    }

    /// The endpoints that a request may ask.
    pub fn endpoints(&self, request: &DatasetRequest<'_>) -> Option<Arc<dyn RemoteEndpoints>> {
        let remote = self.remote.as_ref()?;
        let services = request.client.user.token.as_ref().and_then(|token| token.services.as_ref());
        let remote = services.map_or_else(|| Arc::clone(remote), |services| remote.narrowed(services));
        Some(remote.at_depth(request.depth).unwrap_or(remote))
    }

    /// The threads that the request wants, as far as the server allows.
    pub fn threads(&self, asked: &ProtocolRequest) -> usize {
        asked.threads.unwrap_or(usize::MAX).min(self.limits.threads)
    }
}

/// The depth of a request within others, refused where it is too deep.
pub fn depth_of(headers: &HeaderMap) -> Result<u32, Refusal> {
    let Some(value) = headers.get(service_depth::HEADER) else { return Ok(0) };
    let digits = value.to_str().ok().filter(|text| !text.is_empty());
    let digits = digits
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "Snowmelt-Service-Depth is not a number"))?;
    match digits.parse() {
        Ok(depth) if depth <= service_depth::MOST => Ok(depth),
        _ => {
            let message = format!(
                "the request is within more than {} others of SERVICE or LOAD \
                 (Snowmelt-Service-Depth): endpoints ask each other in a circle",
                service_depth::MOST
            );
            Err(Refusal::new(StatusCode::LOOP_DETECTED, message))
        }
    }
}

/// The refusal of a change by a read-only server.
pub fn read_only() -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, "this server is read-only (--read-only)")
}

impl Client<'_> {
    /// The name of the user, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.user.token.as_ref().map(|token| token.name.as_str())
    }

    /// The address of a path of the server, as the client names it.
    pub fn address(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.host)
    }
}

impl DatasetRequest<'_> {
    /// The prefixes that are kept with the dataset; none for a user of some graphs, whom they would
    /// tell of others.
    pub fn prefixes(&self) -> Namespaces {
        match self.view {
            None => self.dataset.engine.graph().namespaces(),
            Some(_) => Namespaces::default(),
        }
    }

    /// The address of the dataset, as the client names it.
    pub fn root(&self) -> String {
        self.client.address(&self.dataset.mount())
    }

    /// A new account for one query, within those of all queries, of the connection and of the user.
    pub fn query_account(&self, priority: Priority) -> Arc<Account> {
        Account::prioritized(&self.dataset.query_account, &self.accounts(), priority, None)
    }

    /// A new account for one change, within those of all changes, of the connection and of the
    /// user.
    pub fn update_account(&self, priority: Priority) -> Arc<Account> {
        Account::prioritized(&self.dataset.update_account, &self.accounts(), priority, None)
    }

    fn accounts(&self) -> Vec<Arc<Account>> {
        [Some(&self.client.connection.account), self.account.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}
