//! The SPARQL Protocol and the Graph Store Protocol over HTTP. One `hyper` connection per client, one blocking thread per running query;
//! nothing here knows how a query is answered.

#![forbid(unsafe_code)]

mod body;
#[doc(hidden)]
pub mod fuzz;
mod graph_store;
mod multipart;
mod negotiate;
mod request;
mod service;
mod spool;
mod stats;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use snowmelt_sparql::{Engine, LoadPermission};
use tokio::net::TcpListener;

pub use service::Limits;

/// How a server runs.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// where to listen; loopback only
    pub listen: SocketAddr,
    /// bounds on every query
    pub limits: Limits,
    /// where LOAD may read from
    pub allow_load: Vec<LoadPermission>,
    /// queries only
    pub read_only: bool,
    /// how long running queries and updates may go on after a shutdown was asked for
    pub shutdown_deadline: Duration,
}

/// Why a server did not start or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// the address is not loopback
    #[error(
        "{0} is not a loopback address: the server has no access control yet, listen on 127.0.0.1 or [::1]"
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
    /// the runtime could not start
    #[error("cannot start the server's threads: {0}")]
    Runtime(std::io::Error),
}

/// Serves until `shutdown` is ready, then waits for running queries up to the deadline and cancels the rest.
/// `ready` is told the bound address.
pub fn serve(
    engine: Arc<Engine>,
    config: ServerConfig,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServerError> {
    if !config.listen.ip().is_loopback() {
        return Err(ServerError::NotLoopback(config.listen));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(config.limits.queries_at_once + config.limits.changes_at_once + 8)
        .thread_name("http")
        .enable_all()
        .build()
        .map_err(ServerError::Runtime)?;
    let deadline = config.shutdown_deadline;
    let result = runtime.block_on(accept_loop(engine, config, ready, shutdown));
    runtime.shutdown_timeout(deadline);
    result
}

async fn accept_loop(
    engine: Arc<Engine>,
    config: ServerConfig,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServerError> {
    let listen_error = |source| ServerError::Listen { address: config.listen, source };
    let listener = TcpListener::bind(config.listen).await.map_err(listen_error)?;
    ready(listener.local_addr().map_err(listen_error)?);
    let service = Arc::new(service::Service::new(engine, &config));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    // A client that never finishes its head must not hold a connection for ever.
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(60)).half_close(false);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Head and body leave in one write; Nagle would hold a second small one for 40 ms.
                    let _ = stream.set_nodelay(true);
                    let service = Arc::clone(&service);
                    let handler = hyper::service::service_fn(move |request| {
                        let service = Arc::clone(&service);
                        async move { service.respond(request).await }
                    });
                    let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), handler));
                    tokio::spawn(async move {
                        // A broken connection is the client's affair.
                        let _ = connection.await;
                    });
                }
                // Out of descriptors, or a connection reset before it was accepted: pause, go on.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(config.shutdown_deadline, graceful.shutdown()).await.is_err() {
        service.cancel_all();
    }
    Ok(())
}
