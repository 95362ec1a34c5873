//! What the fuzz target of `/fuzz` calls: the head and body of a request, on any bytes.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method};

use crate::framing::Framing;
use crate::{graph_store, multipart, negotiate, request};

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

/// The bytes of a connection: they are read the same however they are cut. The first byte says how.
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

    #[test]
    fn no_request_brings_its_reader_down() {
        let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000u64);
        let mut random = 3u64;
        let mut next = |n: usize| {
            random ^= random >> 12;
            random ^= random << 25;
            random ^= random >> 27;
            (random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
        };
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
