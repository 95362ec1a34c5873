//! Entry points of the fuzz targets of `/fuzz`: the head and body of a request, on any bytes;
//! and a whole server, which gets bytes as they are.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method};

use snowmelt_graph::load::Contexts;

use crate::framing::Framing;
use crate::{ServerConfig, ServerLimits, graph_store, multipart, negotiate, request, serve};

/// A request: lines for method, path, query, content type and `Accept`, then the body.
pub fn request(data: &[u8]) {
    let mut parts = data.splitn(6, |b| *b == b'\n');
    let mut part = || parts.next().unwrap_or_default();
    let (method, path, query, content_type, accept, body) = (part(), part(), part(), part(), part(), part());
    let Ok(method) = Method::from_bytes(method) else { return };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (path, query) = (text(path), text(query));
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    let _ = request::parse(&method, Some(&query), &headers, body);
    let _ = graph_store::target(&method, &path, Some(&query), "localhost");
    let _ = multipart::boundary(&text(content_type));
    for answer in [negotiate::Answer::Solutions, negotiate::Answer::Graph] {
        let _ = negotiate::negotiate(Some(&text(accept)), answer);
    }
}

/// The bytes of a connection: they are read the same however they are cut. The first byte says
/// how.
pub fn framing(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let read = |piece: usize| {
        let (mut framing, mut requests, mut at) = (Framing::default(), 0, 0);
        while at < stream.len() {
            let taken = framing.advance(&stream[at..(at + piece).min(stream.len())]);
            at += taken;
            let _ = framing.take_verdict();
            if framing.is_complete() {
                requests += 1;
                framing.next();
            } else if taken == 0 {
                break;
            }
        }
        (requests, at, framing.is_doubtful(), framing.is_between())
    };
    assert_eq!(read(1 + *cut as usize), read(stream.len().max(1)));
}

/// A server over a new database in `dir`; it runs as long as the process.
///
/// # Panics
/// When there is no room for a database or no port.
pub fn server(dir: &Path) -> SocketAddr {
    let engine = Arc::new(snowmelt_sparql::fuzz::engine(dir));
    let limits = ServerLimits {
        timeout: Some(Duration::from_millis(500)),
        body_bytes: 100_000,
        ..ServerLimits::default()
    };
    let config = ServerConfig {
        listen: "127.0.0.1:0".parse().expect("an address"),
        limits,
        allow_hosts: Vec::new(),
        trusted_proxies: Vec::new(),
        tls: None,
        cors: crate::Cors::default(),
        keeper: Arc::new(crate::tokens::Keeper::open_to_all()),
        logs: Arc::default(),
        allow_load: Vec::new(),
        remote: None,
        contexts: Contexts::default(),
        style: Default::default(),
        read_only: false,
        shutdown_deadline: Duration::from_secs(1),
        control: None,
    };
    let (sender, address) = mpsc::channel();
    std::thread::spawn(move || {
        let ready = |address| sender.send(address).expect("somebody waits for it");
        serve(engine, config, ready, std::future::pending()).expect("a loopback port");
    });
    address.recv().expect("the server starts")
}

/// Bytes on a connection of their own; whatever the server makes of them, it answers the next
/// request.
///
/// # Panics
/// When it does not.
pub fn http(address: SocketAddr, data: &[u8]) {
    exchange(address, data, Duration::from_millis(4));
    let probe = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let answer = exchange(address, probe.as_bytes(), Duration::from_secs(20));
    assert!(answer.starts_with(b"HTTP/1.1 200"), "after {data:?}: {}", String::from_utf8_lossy(&answer));
}

/// Sends, and reads until nothing comes for so long.
fn exchange(address: SocketAddr, data: &[u8], patience: Duration) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("a place in the queue");
    stream.set_read_timeout(Some(patience)).expect("patience is not zero");
    // A server that has seen enough may close.
    let _ = stream.write_all(data);
    let (mut answer, mut buffer, begun) = (Vec::new(), [0; 4096], Instant::now());
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return answer,
            Ok(n) if answer.len() < 1 << 20 && begun.elapsed() < Duration::from_secs(5) => {
                answer.extend_from_slice(&buffer[..n]);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => {
                let _ = stream.shutdown(Shutdown::Both);
                return answer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    const REQUESTS: [&str; 4] = [
        "GET\n/sparql\nquery=ASK%7B%7D&default-graph-uri=http%3A%2F%2Fe%2F&timeout=1\n\ntext/csv;q=0.5,*/*\n",
        "POST\n/sparql\n\napplication/x-www-form-urlencoded; charset=\"utf-8\"\napplication/json\nupdate=CLEAR+ALL&using-graph-uri=e%3Ag",
        "POST\n/sparql\nquery=x\napplication/sparql-update\n\nINSERT DATA { <e:a> <e:b> '\u{e9}' }",
        "PUT\n/graphs/a b\ngraph=http://e/g&default\nmultipart/form-data; boundary=\"--x y\"\ntext/turtle\n--x",
    ];

    const STREAM: &[u8] = b"\x07GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nhost : a\r\nContent-Length: 5\r\n\r\nGET /\
        POST /x HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: 1\r\n\r\nGET / HTTP/1.0\r\n\r\n";

    const HEADS: [&str; 4] = [
        "GET /sparql?query=ASK%7B%7D&timeout=9 HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv;q=0.5, */*\r\n\r\n",
        "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nASK{}\r\n0\r\n\r\n",
        "PUT /graphs?graph=e:h HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\nContent-Length: 17\r\n\r\n<e:a> <e:p> 1 . #",
        "POST /update HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 17\r\n\r\nupdate=CLEAR+ALL;",
    ];

    /// A draw of numbers below a bound.
    fn draw(mut random: u64) -> impl FnMut(usize) -> usize {
        move |n| (snowmelt_base::random::xorshift_star(&mut random) >> 33) as usize % n
    }

    #[test]
    fn no_bytes_bring_the_server_down() {
        let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300u64);
        let dir = tempfile::tempdir().unwrap();
        let address = super::server(dir.path());
        let mut next = draw(5);
        let pieces: [&[u8]; 12] = [
            b"\r\n",
            b"\n",
            b":",
            b" ",
            b"\0",
            b"Content-Length: 9\r\n",
            b"\r\n\r\n",
            b"%",
            b"ffffffff",
            b"\xff",
            b"HTTP/1.0",
            b",",
        ];
        HEADS.iter().for_each(|head| super::http(address, head.as_bytes()));
        for _ in 0..rounds {
            let mut bytes = HEADS[next(4)].as_bytes().to_vec();
            for _ in 0..1 + next(4) {
                let at = next(bytes.len());
                let over = (at + next(6)).min(bytes.len());
                bytes.splice(at..over, pieces[next(12)].iter().copied());
            }
            super::http(address, &bytes);
        }
    }

    #[test]
    fn no_request_brings_its_reader_down() {
        let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000u64);
        let mut next = draw(3);
        let pieces: [&[u8]; 12] =
            [b"%", b"&", b"=", b";", b"\"", b",", b"q=", b"\n", b"\xc3", b"charset=", b"boundary=", b"+"];
        REQUESTS.iter().for_each(|r| super::request(r.as_bytes()));
        for _ in 0..rounds {
            let mut bytes = REQUESTS[next(4)].as_bytes().to_vec();
            for _ in 0..1 + next(5) {
                let at = next(bytes.len());
                let over = (at + next(4)).min(bytes.len());
                bytes.splice(at..over, pieces[next(12)].iter().copied());
            }
            super::request(&bytes);
            let mut bytes = STREAM.to_vec();
            for _ in 0..1 + next(5) {
                let at = next(bytes.len());
                let over = (at + next(4)).min(bytes.len());
                let pieces: [&[u8]; 8] =
                    [b"\n", b"\r\n", b":", b"1", b"f", b"Content-Length: 3\r\n", b"Host: b\r\n", b" "];
                bytes.splice(at..over, pieces[next(8)].iter().copied());
            }
            super::framing(&bytes);
        }
    }
}
