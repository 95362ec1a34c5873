//! What the fuzz target of `/fuzz` calls: the head and body of a request, on any bytes.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method};

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

#[cfg(test)]
mod tests {
    const REQUESTS: [&str; 4] = [
        "GET\n/sparql\nquery=ASK%7B%7D&default-graph-uri=http%3A%2F%2Fe%2F&timeout=1\n\ntext/csv;q=0.5,*/*\n",
        "POST\n/sparql\n\napplication/x-www-form-urlencoded; charset=\"utf-8\"\napplication/json\nupdate=CLEAR+ALL&using-graph-uri=e%3Ag",
        "POST\n/sparql\nquery=x\napplication/sparql-update\n\nINSERT DATA { <e:a> <e:b> '\u{e9}' }",
        "PUT\n/graphs/a b\ngraph=http://e/g&default\nmultipart/form-data; boundary=\"--x y\"\ntext/turtle\n--x",
    ];

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
        }
    }
}
