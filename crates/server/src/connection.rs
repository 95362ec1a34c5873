//! Connections: accepted up to a limit, served to their end, and closed so that the client gets
//! the last answer.
//!
//! A connection that is closed while bytes of the client are unread is reset, and the reset may
//! overtake the answer. So after the last answer the sending side is closed, and what still
//! comes is thrown away for a while.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::addresses::{Addresses, TooMany};
use crate::connections::Entered;
use crate::guard::{Ended, Guarded, Link};
use crate::limits::{HEAD_BYTES, MOST_REFUSED};
use crate::service::Service;
use crate::tls::{Stream, Tls};

/// How long bytes of a client are thrown away after the last answer.
const LINGER: Duration = Duration::from_secs(5);
/// Send and receive buffers of a connection in the system: memory of clients that do not read,
/// and the step in which their progress is seen.
const SOCKET_BYTES: u32 = 128 << 10;
/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 1024;

const TOO_LATE: &str = "the head of the request did not come in time (--head-deadline)\n";

/// A listening socket.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Connections inherit these.
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until `shutdown` is ready, then waits for those there are up to the
/// deadline and cancels their requests.
pub async fn accept_until(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    service: Arc<Service>,
    shutdown: impl Future<Output = ()>,
    deadline: Duration,
) {
    let (stop, stopping) = watch::channel(false);
    let (mut served, mut refused) = (JoinSet::new(), JoinSet::new());
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) if served.len() < service.limits().connections => {
                    let counted = match service.addresses().connect(peer) {
                        Ok(counted) => counted,
                        Err(TooMany) => {
                            if refused.len() < MOST_REFUSED && tls.is_none() {
                                refused.spawn(refuse(stream, too_many_of_one(service.addresses())));
                            }
                            continue;
                        }
                    };
                    let entered = service.connections().enter(peer, tls.is_some());
                    let begun = begin(stream, tls.clone(), service.limits().head);
                    let (service, stopping) = (Arc::clone(&service), stopping.clone());
                    served.spawn(async move {
                        let _counted = counted;
                        if let Some(stream) = begun.await {
                            serve(stream, entered, service, stopping).await;
                        }
                    });
                }
                // One that wants TLS would not understand it.
                Ok((stream, _)) if refused.len() < MOST_REFUSED && tls.is_none() => {
                    refused.spawn(refuse(stream, too_many(service.limits().connections)));
                }
                Ok((stream, _)) => drop(stream),
                // Out of descriptors, or a connection reset before it was accepted: pause, go on.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = served.join_next() => {}
            Some(_) = refused.join_next() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    stop.send_replace(true);
    let all = async { while served.join_next().await.is_some() {} };
    if tokio::time::timeout(deadline, all).await.is_err() {
        service.cancel_all();
    }
}

/// The connection, encrypted if the server does that; none: its client did not begin in time, or
/// not with TLS.
async fn begin(stream: TcpStream, tls: Option<Arc<Tls>>, patience: Duration) -> Option<Stream> {
    // Head and body leave in one write; Nagle would hold a second small one for 40 ms.
    let _ = stream.set_nodelay(true);
    match tls {
        None => Some(Stream::Plain(stream)),
        Some(tls) => tokio::time::timeout(patience, tls.accept(stream)).await.ok()?.ok(),
    }
}

/// Serves one connection to its end.
async fn serve(stream: Stream, entered: Entered, service: Arc<Service>, mut stopping: watch::Receiver<bool>) {
    let link = Arc::new(Link::default());
    let io = Guarded::new(stream, Arc::clone(&link), service.limits());
    let is_old = AtomicBool::new(false);
    let handler = hyper::service::service_fn(|request| {
        let (service, link) = (Arc::clone(&service), Arc::clone(&link));
        let connection = Arc::clone(&entered.connection);
        is_old.fetch_or(is_ended_by_close(&request), Ordering::Relaxed);
        async move { service.respond(request, &link, &connection).await }
    });
    let mut http = http1::Builder::new();
    // The guard looks at the time.
    http.half_close(false).header_read_timeout(None).max_buf_size(HEAD_BYTES);
    let mut connection = http.serve_connection(io, handler);
    let stop = async { stopping.wait_for(|stop| *stop).await.map(|_| ()) };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        _ = stop => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    // A broken connection is the client's affair, unless the answer was cut.
    let is_cut = ended.is_err_and(|error| error.is_user());
    let guarded = connection.into_parts().io;
    let is_over = guarded.is_over();
    let (mut stream, gave_up) = guarded.into_stream();
    if is_cut && is_old.load(Ordering::Relaxed) {
        // Nothing but the end of the connection ends the answer, so it must not end as usual.
        return stream.reset();
    }
    match link.ended() {
        Some(Ended::Head) if !gave_up => {
            let answer = canned("408 Request Timeout", "", TOO_LATE);
            let _ = tokio::time::timeout(LINGER, stream.write_all(answer.as_bytes())).await;
        }
        // To close it ends the answer; with TLS there is a word to be said.
        None if is_over && matches!(stream, Stream::Plain(_)) => return,
        None if !gave_up => {}
        _ => return,
    }
    linger(stream).await;
}

/// Whether the length of an answer of unknown length is told by the end of the connection alone.
fn is_ended_by_close<B>(request: &hyper::Request<B>) -> bool {
    request.version() < hyper::Version::HTTP_11
}

fn too_many(most: usize) -> String {
    format!("{most} connections are open, no more are served (--connections): try again\n")
}

fn too_many_of_one(addresses: &Addresses) -> String {
    let most = addresses.most();
    format!("this address has {most} connections, and may have no more (--connections-per-address)\n")
}

/// Tells a client that there are too many.
async fn refuse(mut stream: TcpStream, message: String) {
    let answer = canned("503 Service Unavailable", "Retry-After: 1\r\n", &message);
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        linger(Stream::Plain(stream)).await;
    }
}

fn canned(status: &str, fields: &str, message: &str) -> String {
    let len = message.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n{fields}Connection: close\r\nContent-Length: {len}\r\n\r\n{message}"
    )
}

/// Ends the answer and throws away what the client still sends.
async fn linger(mut stream: Stream) {
    let _ = stream.shutdown().await;
    let mut waste = vec![0; 16 << 10];
    let drain = async { while stream.read(&mut waste).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::time::timeout(LINGER, drain).await;
}
