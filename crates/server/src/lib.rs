//! The SPARQL Protocol and the Graph Store Protocol over HTTP. One `hyper` connection per
//! client, one blocking thread per running query; nothing here knows how a query is answered.

#![forbid(unsafe_code)]

mod addresses;
pub mod advice;
mod audience;
mod body;
mod browser;
mod coding;
mod connection;
mod connections;
pub mod control;
mod cors;
mod dataset;
mod description;
mod durations;
mod framing;
mod freshness;
#[doc(hidden)]
pub mod fuzz;
mod graph_store;
mod guard;
mod intake;
mod limits;
pub mod logs;
mod multipart;
mod negotiate;
mod page;
mod refusal;
mod request;
mod resource;
mod running;
mod service;
mod slots;
mod spool;
pub mod tls;
pub mod tokens;
mod users;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use snowmelt_graph::load::Contexts;
use snowmelt_sparql::{DescribeForm, LoadPermission, RemoteEndpoints};
use tokio::sync::{oneshot, watch};

use dataset::catalog::Catalog;
use dataset::folder::AnswerCommands;
use logs::Logs;
use service::{Admin, Service};
use tls::Tls;
use tokens::Keeper;

pub use cors::{Cors, NotAnOrigin};
pub use dataset::folder::RESERVED as RESOURCES;
pub use dataset::{Folder, Opener, Served};
pub use limits::{LEAST_BODY_BYTES, MOST_REFUSED, ServerLimits};

/// How often idle databases are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// How queries are read and answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryStyle {
    /// the triples by which DESCRIBE describes a resource
    pub describe: DescribeForm,
    /// queries may use the prefixes that are kept with a database without declaring them
    pub assume_prefixes: bool,
}

/// How a server runs.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// where to listen; an address that others reach needs a keeper that does not let all in
    pub listen: SocketAddr,
    /// bounds on every query
    pub limits: ServerLimits,
    /// names the server answers to besides localhost and the loopback addresses
    pub allow_hosts: Vec<String>,
    /// proxies that say whose requests they pass on
    pub trusted_proxies: Vec<IpAddr>,
    /// its certificate; none: connections are not encrypted
    pub tls: Option<Arc<Tls>>,
    /// sites whose pages may ask
    pub cors: Cors,
    /// which users may do what
    pub keeper: Arc<Keeper>,
    /// logs that are kept
    pub logs: Arc<Logs>,
    /// where LOAD may read from
    pub allow_load: Vec<LoadPermission>,
    /// endpoints that SERVICE may ask, and places that LOAD may; none: none
    pub remote: Option<Arc<dyn RemoteEndpoints>>,
    /// contexts that documents of JSON-LD may name; others are not fetched
    pub contexts: Contexts,
    /// how queries are read and answered
    pub style: QueryStyle,
    /// queries only
    pub read_only: bool,
    /// where commands beside the server reach it; none: they do not
    pub control: Option<PathBuf>,
    /// how long running queries and updates may go on after a shutdown was asked for
    pub shutdown_deadline: Duration,
}

/// Why a server did not start or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// the address is not loopback, and everything is allowed to all
    #[error(
        "{0} is not a loopback address, and others may reach it: name those who may with --tokens FILE \
         (snowmelt token add), or let all read with --public-read"
    )]
    NotLoopback(SocketAddr),
    /// the address cannot be had
    #[error("cannot listen on {address}: {source}; choose another with --listen")]
    Listen {
        /// what was asked for
        address: SocketAddr,
        /// the system's answer
        source: std::io::Error,
    },
    /// the folder of databases cannot be read
    #[error("cannot read the folder {path}: {source}")]
    Folder {
        /// the folder
        path: PathBuf,
        /// the system's answer
        source: std::io::Error,
    },
    /// the socket for commands cannot be made
    #[error("cannot make the socket {path} for commands: {source}")]
    Control {
        /// the socket
        path: PathBuf,
        /// the system's answer
        source: std::io::Error,
    },
    /// the runtime could not start
    #[error("cannot start the server's threads: {0}")]
    Runtime(std::io::Error),
}

/// The socket for commands in a directory.
fn control_in(dir: &Path) -> Result<control::ControlSocket, ServerError> {
    let path = dir.join(control::FILE_NAME);
    control::ControlSocket::bind(dir).map_err(|source| ServerError::Control { path, source })
}

/// Answers the commands beside the server for each database of a folder.
fn commands_of_each(admin: &Arc<Admin>, stopping: watch::Receiver<bool>) -> AnswerCommands {
    let admin = Arc::downgrade(admin);
    Box::new(move |dataset, dir| {
        let socket = control::ControlSocket::bind(dir).ok()?;
        let (admin, dataset) = (admin.upgrade()?, Arc::downgrade(dataset));
        let answering = control::answer_until(socket, admin, dataset, stopping.clone());
        Some(tokio::spawn(answering).abort_handle())
    })
}

/// The catalog of what is served.
fn catalog(served: Served) -> Result<Catalog, ServerError> {
    let path = match &served {
        Served::One(_) => PathBuf::new(),
        Served::Many(folder) => folder.dir.clone(),
    };
    Catalog::new(served).map_err(|source| ServerError::Folder { path, source })
}

/// Serves until `shutdown` is ready, then waits for running queries up to the deadline and
/// cancels the rest. `ready` is told the bound address.
pub fn serve(
    served: impl Into<Served>,
    config: ServerConfig,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServerError> {
    if !config.listen.ip().is_loopback() && config.keeper.is_open_to_all() {
        return Err(ServerError::NotLoopback(config.listen));
    }
    // A thread for each connection: a query that waits for its client keeps one without a slot.
    let threads = config.limits.connections + config.limits.queries + config.limits.changes;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).max(2))
        .max_blocking_threads(threads + 8)
        .thread_name("http")
        .enable_all()
        .build()
        .map_err(ServerError::Runtime)?;
    let deadline = config.shutdown_deadline;
    let result = runtime.block_on(async {
        let listen_error = |source| ServerError::Listen { address: config.listen, source };
        let listener = connection::listen(config.listen).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let socket = config.control.as_deref().map(control_in).transpose()?;
        let catalog = catalog(served.into())?;
        let only = catalog.only().map(Arc::downgrade);
        let service = Arc::new(Service::new(catalog, &config));
        let (stop, stopping) = watch::channel(false);
        let commands = socket.zip(only).map(|(socket, dataset)| {
            let admin = Arc::clone(service.admin());
            tokio::spawn(control::answer_until(socket, admin, dataset, stopping.clone()))
        });
        service.answer_commands(commands_of_each(service.admin(), stopping));
        let idle = Arc::clone(&service);
        let closing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                idle.close_idle().await;
            }
        });
        tokio::spawn(service::advise(Arc::downgrade(service.admin())));
        ready(address);
        let shutdown = async {
            shutdown.await;
            stop.send_replace(true);
        };
        // On the threads of connections: a new one is served where it was accepted.
        let (stop_accepting, accepting) = oneshot::channel::<()>();
        let accepting = async { drop(accepting.await) };
        let accepted = connection::accept_until(listener, config.tls.clone(), service, accepting, deadline);
        let accepted = tokio::spawn(accepted);
        shutdown.await;
        drop(stop_accepting);
        let _ = accepted.await;
        closing.abort();
        if let Some(commands) = commands {
            let _ = tokio::time::timeout(deadline, commands).await;
        }
        Ok(())
    });
    runtime.shutdown_timeout(deadline);
    result
}
