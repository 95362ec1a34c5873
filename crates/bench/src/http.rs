//! A SPARQL endpoint as the target of a run: HTTP/1.1 over plain sockets, a connection per
//! query or one kept per client.
//!
//! The protocol of the benchmark's original driver: GET with the query in the URL, SPARQL XML or
//! RDF/XML wanted, updates by POST of a form, the whole answer read. As there, a query's time
//! begins when its connection is made. An endpoint that cannot be connected to is an error of the
//! run; an answer that is late, refused or cut is a failure of its query.
//!
//! It is a client of its own, not ureq. A query's time has two parts, the connection and the
//! answer, and its limit begins with the second; ureq tells neither moment. And a driver must do
//! little besides: a request takes 16,000 instructions on a kept connection, 57,000 by ureq; with a
//! connection of its own 82,000, 322,000 by ureq.

mod response;

use std::cell::RefCell;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use snowmelt_bsbm::{Query, QueryKind};

use snowmelt_workload::target::{Answered, Failure, Target};

/// A server that is silent for this long has failed, even where queries have no time limit.
const SILENCE: Duration = Duration::from_secs(300);

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(30);

/// Options of the protocol with an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Protocol {
    /// Open a connection for each query, as the original driver does.
    pub connection_per_query: bool,
    /// From the sending of a query to the last byte of its answer.
    pub timeout: Option<Duration>,
    /// Sent as `default-graph-uri`.
    pub default_graph: Option<String>,
    /// Where updates go, if elsewhere.
    pub update_url: Option<String>,
    /// Name of the form field that holds an update; `update` unless set.
    pub update_field: Option<String>,
}

/// An endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    queries: Address,
    updates: Address,
    protocol: Protocol,
}

/// A URL, taken apart.
#[derive(Clone, Debug)]
struct Address {
    /// `host:port`.
    authority: String,
    path: String,
    sockets: Vec<SocketAddr>,
}

/// An open connection, and whose it is.
struct Connection {
    authority: String,
    stream: BufReader<Patient>,
}

/// A socket whose reads fail after a moment.
struct Patient {
    socket: TcpStream,
    until: Option<Instant>,
}

thread_local! {
    /// The connection this client keeps.
    static KEPT: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.set_read_timeout(Some(left))?;
        }
        self.socket.read(into)
    }
}

impl Address {
    fn new(url: &str) -> Result<Self> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!("{url}: only http:// endpoints are driven")
        };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let has_port = host.rsplit(']').next().is_some_and(|port| port.contains(':'));
        let authority = if has_port { host.to_owned() } else { format!("{host}:80") };
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        let sockets = authority.to_socket_addrs().with_context(|| format!("{url}: no such host"))?;
        Ok(Self { sockets: sockets.collect(), authority, path })
    }

    fn connect(&self, silence: Duration) -> Result<Connection> {
        let mut result = Err(io::Error::other("the host has no address"));
        for socket in &self.sockets {
            result = TcpStream::connect_timeout(socket, CONNECT);
            if result.is_ok() {
                break;
            }
        }
        let socket = result.with_context(|| format!("cannot connect to {}", self.authority))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(silence))?;
        socket.set_write_timeout(Some(silence))?;
        let stream = BufReader::with_capacity(1 << 16, Patient { socket, until: None });
        Ok(Connection { authority: self.authority.clone(), stream })
    }
}

impl Endpoint {
    /// The endpoint at `http://host[:port]/path`.
    ///
    /// # Errors
    /// The address is not `http://`, or its host has none.
    pub fn new(url: &str, protocol: Protocol) -> Result<Self> {
        let queries = Address::new(url)?;
        let updates = protocol.update_url.as_deref().map_or(Ok(queries.clone()), Address::new)?;
        Ok(Self { queries, updates, protocol })
    }

    fn address(&self, query: &Query) -> &Address {
        if query.kind == QueryKind::Update { &self.updates } else { &self.queries }
    }

    fn request(&self, query: &Query) -> String {
        let Protocol { connection_per_query, default_graph, update_field, .. } = &self.protocol;
        let Address { authority, path, .. } = self.address(query);
        let connection = if *connection_per_query { "close" } else { "keep-alive" };
        if query.kind == QueryKind::Update {
            let mut form = format!("{}=", update_field.as_deref().unwrap_or("update"));
            percent_encode(&query.text, &mut form);
            return format!(
                "POST {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: {connection}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
                form.len()
            );
        }
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut request = format!("GET {path}{joint}query=");
        percent_encode(&query.text, &mut request);
        if let Some(graph) = default_graph {
            request.push_str("&default-graph-uri=");
            percent_encode(graph, &mut request);
        }
        let accept = accepted(query.kind);
        request += &format!(
            " HTTP/1.1\r\nHost: {authority}\r\nAccept: {accept}\r\nConnection: {connection}\r\n\r\n"
        );
        request
    }

    /// The connection of this client to an address, and how long it took to make it.
    fn connection(&self, address: &Address) -> Result<(Connection, Option<Duration>)> {
        let kept = KEPT.take().filter(|kept| kept.authority == address.authority);
        match kept {
            Some(kept) if !self.protocol.connection_per_query => Ok((kept, None)),
            _ => {
                let begun = Instant::now();
                let silence = self.protocol.timeout.unwrap_or(SILENCE);
                Ok((address.connect(silence)?, Some(begun.elapsed())))
            }
        }
    }

    /// Sends a request and reads its answer; the connection is kept if it can be.
    fn exchange(&self, mut connection: Connection, request: &str, answer: &mut Vec<u8>) -> io::Result<()> {
        let patient = connection.stream.get_mut();
        patient.until = self.protocol.timeout.map(|timeout| Instant::now() + timeout);
        patient.socket.write_all(request.as_bytes())?;
        let response = response::read(&mut connection.stream, answer)?;
        if !(200..300).contains(&response.status) {
            let text = String::from_utf8_lossy(&answer[..answer.len().min(500)]);
            return Err(io::Error::other(format!("status {}: {}", response.status, text.trim())));
        }
        if response.is_reusable && !self.protocol.connection_per_query {
            KEPT.set(Some(connection));
        }
        Ok(())
    }
}

impl Target for Endpoint {
    fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered> {
        let address = self.address(query);
        let request = self.request(query);
        let (connection, mut connected) = self.connection(address)?;
        let mut result = self.exchange(connection, &request, answer);
        // A server may close a kept connection at any moment; a query, not an update, goes twice.
        let is_stale = |error: &io::Error| connected.is_none() && response::is_before_answer(error);
        if query.kind != QueryKind::Update && result.as_ref().is_err_and(is_stale) {
            answer.clear();
            let (connection, took) = self.connection(address)?;
            connected = took;
            result = self.exchange(connection, &request, answer);
        }
        let failed = result.err().map(|error| self.failure(&error));
        let rows = if failed.is_none() { count_rows(answer, query.kind) } else { 0 };
        let connect_ns = connected.unwrap_or_default().as_nanos() as u64;
        Ok(Answered { rows, connect_ns, failed, ..Answered::default() })
    }
}

impl Endpoint {
    fn failure(&self, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                let limit = self.protocol.timeout.unwrap_or(SILENCE);
                Failure::Timeout(format!("no answer in {} ms", limit.as_millis()))
            }
            _ => Failure::Broken(error.to_string()),
        }
    }
}

fn accepted(kind: QueryKind) -> &'static str {
    match kind {
        QueryKind::Describe | QueryKind::Construct => "application/rdf+xml",
        _ => "application/sparql-results+xml",
    }
}

/// Appends `text` as the value of a form's field.
fn percent_encode(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                out.push(DIGITS[usize::from(byte >> 4)] as char);
                out.push(DIGITS[usize::from(byte & 15)] as char);
            }
        }
    }
}

/// Solutions, or properties of described subjects (about the triples of a graph).
fn count_rows(answer: &[u8], kind: QueryKind) -> u64 {
    let text = String::from_utf8_lossy(answer);
    match kind {
        QueryKind::Describe | QueryKind::Construct => {
            let ends = text.matches("</").count() + text.matches("/>").count();
            let not_triples = text.matches("</rdf:Description").count() + text.matches("</rdf:RDF").count();
            ends.saturating_sub(not_triples) as u64
        }
        _ => text.matches("<result>").count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn asks_as_the_original_driver_does() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sparql", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; 4096];
            let n = stream.read(&mut request).unwrap();
            let body = "<results><result>1</result><result>2</result></results>";
            stream
                .write_all(
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes(),
                )
                .unwrap();
            String::from_utf8_lossy(&request[..n]).into_owned()
        });
        let endpoint =
            Endpoint::new(&url, Protocol { connection_per_query: true, ..Protocol::default() }).unwrap();
        let query = Query { number: 1, kind: QueryKind::Select, text: "SELECT * { ?s ?p \"a+b\" }".into() };
        let mut answer = Vec::new();
        assert_eq!(endpoint.answer(&query, &mut answer).unwrap().rows, 2);
        let request = server.join().unwrap();
        assert!(
            request.starts_with("GET /sparql?query=SELECT+%2A+%7B+%3Fs+%3Fp+%22a%2Bb%22+%7D HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(request.contains("Accept: application/sparql-results+xml\r\n"));
        assert!(Endpoint::new("https://x", Protocol::default()).is_err());
    }
}
