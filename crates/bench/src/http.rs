//! A SPARQL endpoint as the target of a run: HTTP/1.1 over plain sockets, a connection per
//! query or one kept per client.
//!
//! The protocol of the benchmark's original driver: GET with the query in the URL, SPARQL XML or
//! RDF/XML wanted, the whole answer read. The server's answer may be framed by length, by
//! chunks or by the end of the connection.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use snowmelt_bsbm::{Query, QueryKind};

use super::target::{Answered, Target};

/// An endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `host:port`.
    authority: String,
    path: String,
    /// Open a connection for each query, as the original driver does.
    connection_per_query: bool,
}

thread_local! {
    /// The connection this client keeps.
    static KEPT: RefCell<Option<BufReader<TcpStream>>> = const { RefCell::new(None) };
}

impl Endpoint {
    /// The endpoint at `http://host[:port]/path`.
    pub fn new(url: &str, connection_per_query: bool) -> Result<Self> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!("{url}: only http:// endpoints are driven")
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let authority =
            if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        Ok(Self { authority, path, connection_per_query })
    }

    fn connect(&self) -> Result<BufReader<TcpStream>> {
        let address = self.authority.to_socket_addrs()?.next().context("the host has no address")?;
        let stream =
            TcpStream::connect(address).with_context(|| format!("cannot connect to {}", self.authority))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(300)))?;
        Ok(BufReader::with_capacity(1 << 16, stream))
    }

    fn request(&self, query: &Query) -> String {
        let accept = match query.kind {
            QueryKind::Describe | QueryKind::Construct => "application/rdf+xml",
            _ => "application/sparql-results+xml",
        };
        let Self { authority, path, .. } = self;
        let connection = if self.connection_per_query { "close" } else { "keep-alive" };
        if query.kind == QueryKind::Update {
            let form = format!("update={}", percent_encode(&query.text));
            return format!(
                "POST {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: {connection}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
                form.len()
            );
        }
        let query = percent_encode(&query.text);
        format!(
            "GET {path}?query={query} HTTP/1.1\r\nHost: {authority}\r\nAccept: {accept}\r\nConnection: {connection}\r\n\r\n"
        )
    }
}

impl Target for Endpoint {
    fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered> {
        let kept = if self.connection_per_query { None } else { KEPT.take() };
        let mut stream = kept.map_or_else(|| self.connect(), Ok)?;
        stream.get_mut().write_all(self.request(query).as_bytes())?;
        let reusable = read_answer(&mut stream, answer).with_context(|| format!("query {}", query.number))?;
        if reusable && !self.connection_per_query {
            KEPT.set(Some(stream));
        }
        Ok(Answered { rows: count_rows(answer, query.kind), ..Answered::default() })
    }
}

/// Asks for a resource on a connection of its own, and reads the answer: its status and its body.
/// `headers` are whole lines. A server that is silent for so long as `patience` has none.
///
/// # Errors
/// The address is not `http://`, there is no server, or its answer is none of HTTP.
pub fn get(url: &str, headers: &str, patience: Duration) -> Result<(u16, Vec<u8>)> {
    let endpoint = Endpoint::new(url, true)?;
    let Endpoint { authority, path, .. } = &endpoint;
    let mut stream = endpoint.connect()?;
    stream.get_ref().set_read_timeout(Some(patience))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{headers}\r\n");
    stream.get_mut().write_all(request.as_bytes())?;
    let mut body = Vec::new();
    let (status, _) = read_any_answer(&mut stream, &mut body).with_context(|| url.to_owned())?;
    Ok((status, body))
}

/// Reads head and body of an answer that must be a good one; true when the connection can be used
/// again.
fn read_answer(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<bool> {
    let (status, is_reusable) = read_any_answer(stream, body)?;
    if status != 200 {
        bail!("status {status}: {}", String::from_utf8_lossy(&body[..body.len().min(500)]));
    }
    Ok(is_reusable)
}

/// Reads head and body; the status, and true when the connection can be used again.
fn read_any_answer(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<(u16, bool)> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status: u16 = line
        .split_whitespace()
        .nth(1)
        .and_then(|s| s.parse().ok())
        .with_context(|| format!("not HTTP: {line:?}"))?;
    let (mut length, mut chunked, mut close) = (None, false, false);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            bail!("the answer ends in its head");
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match (name.to_ascii_lowercase().as_str(), value.trim().to_ascii_lowercase().as_str()) {
            ("content-length", value) => length = Some(value.parse::<u64>()?),
            ("transfer-encoding", "chunked") => chunked = true,
            ("connection", "close") => close = true,
            _ => {}
        }
    }
    match (chunked, length) {
        (true, _) => read_chunks(stream, body)?,
        (false, Some(length)) => {
            let got = stream.take(length).read_to_end(body)? as u64;
            if got < length {
                bail!("the answer ends after {got} of {length} bytes");
            }
        }
        (false, None) => {
            stream.read_to_end(body)?;
            close = true;
        }
    }
    Ok((status, !close))
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let size = line.trim_end().split(';').next().unwrap_or("");
        let size = u64::from_str_radix(size, 16).with_context(|| format!("bad chunk size {line:?}"))?;
        let got = stream.take(size).read_to_end(body)? as u64;
        if got < size {
            bail!("the answer ends within a chunk");
        }
        line.clear();
        stream.read_line(&mut line)?; // the end of the chunk
        if size == 0 {
            return Ok(());
        }
    }
}

fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
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

    fn read(text: &str) -> Result<(Vec<u8>, bool)> {
        let mut body = Vec::new();
        read_answer(&mut text.as_bytes(), &mut body).map(|reusable| (body, reusable))
    }

    #[test]
    fn three_ways_to_frame_an_answer() {
        let hello = |reusable| (b"hello".to_vec(), reusable);
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap(), hello(true));
        assert_eq!(read("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello").unwrap(), hello(false));
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n1;x\r\no\r\n0\r\n\r\n";
        assert_eq!(read(chunked).unwrap(), hello(true));
    }

    #[test]
    fn bad_answers_are_errors() {
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "HTTP/1.1 400 Bad\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhe",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }

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
        let endpoint = Endpoint::new(&url, true).unwrap();
        let query = Query { number: 1, kind: QueryKind::Select, text: "SELECT * { ?s ?p \"a+b\" }".into() };
        let mut answer = Vec::new();
        assert_eq!(endpoint.answer(&query, &mut answer).unwrap().rows, 2);
        let request = server.join().unwrap();
        assert!(
            request.starts_with("GET /sparql?query=SELECT+%2A+%7B+%3Fs+%3Fp+%22a%2Bb%22+%7D HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(request.contains("Accept: application/sparql-results+xml\r\n"));
        assert!(Endpoint::new("https://x", true).is_err());
    }
}
