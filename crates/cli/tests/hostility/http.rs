//! Heads that are wrong, and clients that are slow or many.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::case::{Attack, Case, Right, Scale};
use crate::client::{Reply, percent_encode, read_reply};
use crate::probe::probe;
use crate::target::Target;

fn raw(
    name: &'static str,
    right: &'static [u16],
    bytes: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> Case {
    Case::new(name, Attack::Raw(Box::new(bytes)), Right::Status(right))
}

/// A request whose head is a text with the authority in it.
fn head(
    name: &'static str,
    right: &'static [u16],
    text: impl Fn(&str) -> String + Send + Sync + 'static,
) -> Case {
    raw(name, right, move |host| text(host).into_bytes())
}

const ASK: &str = "GET /sparql?query=ASK%7B%7D HTTP/1.1\r\n";

pub fn cases() -> Vec<Case> {
    let mut all = framing();
    all.extend(large());
    all.extend(origins());
    all.extend(contents());
    all.extend(clients());
    all
}

fn framing() -> Vec<Case> {
    vec![
        head("HTTP/1.1 without Host", &[400], |_| format!("{ASK}\r\n")).must(),
        head("two Hosts", &[400], |host| format!("{ASK}Host: {host}\r\nHost: other\r\n\r\n")).must(),
        head("Content-Length with Transfer-Encoding", &[400], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nASK{{}}\r\n0\r\n\r\n")
        }).must(),
        head("Transfer-Encoding with Content-Length", &[400], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nASK{{}}\r\n0\r\n\r\n")
        }).must(),
        head("two Content-Lengths", &[400], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nASK{{}}x")
        }).must(),
        head("a negative Content-Length", &[400], |host| format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n")).must(),
        head("a Content-Length beyond numbers", &[400, 413], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nContent-Length: 99999999999999999999999\r\n\r\n")
        }).must(),
        head("the largest Content-Length", &[400, 413, 431], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nContent-Length: 18446744073709551614\r\n\r\nASK")
        }).or_closed(),
        head("an unknown Transfer-Encoding", &[400, 501], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: gzip\r\n\r\nASK{{}}")
        }).must(),
        head("chunks without a size", &[400], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nASK{{}}\r\n0\r\n\r\n")
        }).or_closed(),
        head("a chunk beyond numbers", &[400, 413], |host| {
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nASK{{}}\r\n0\r\n\r\n")
        }).or_closed(),
        head("a flood of chunk extensions", &[200, 400, 413], |host| {
            let flood = "x".repeat(1 << 20);
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n\r\n5;{flood}\r\nASK{{}}\r\n0\r\n\r\n")
        }).or_closed(),
        head("a flood of trailers", &[200, 400, 413, 431], |host| {
            let flood = "x: y\r\n".repeat(20_000);
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nASK{{}}\r\n0\r\n{flood}\r\n")
        }).or_closed(),
        head("a space before the colon", &[400], |host| format!("{ASK}Host : {host}\r\n\r\n")).must(),
        head("a folded header", &[200, 400], |host| format!("{ASK}Host: {host}\r\nX: a\r\n b\r\n\r\n")).must(),
        raw("zero bytes in the head", &[400], |host| format!("{ASK}Host: {host}\r\nX: a\0b\r\n\r\n").into_bytes()).must(),
        raw("a TLS hello", &[400], |_| [b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".as_slice(), &[7; 512]].concat()).or_closed(),
        head("the preface of HTTP/2", &[400, 505], |_| "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into()).or_closed(),
        head("an unknown version", &[400, 505], |host| format!("GET / HTTP/9.9\r\nHost: {host}\r\n\r\n")).or_closed(),
        head("CONNECT", &[400, 404, 405], |host| format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n")).must(),
        head("OPTIONS of everything", &[200, 204, 400, 404, 405], |host| format!("OPTIONS * HTTP/1.1\r\nHost: {host}\r\n\r\n")).must(),
        head("an unknown method", &[400, 405], |host| format!("BREW /sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: {host}\r\n\r\n")).must(),
    ]
}

fn large() -> Vec<Case> {
    vec![
        head("a header of a megabyte", &[400, 413, 431], |host| format!("{ASK}Host: {host}\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))).or_closed(),
        head("10,000 headers", &[400, 413, 431], |host| format!("{ASK}Host: {host}\r\n{}\r\n", "X: y\r\n".repeat(10_000))).or_closed(),
        head("a target of a megabyte", &[400, 414, 431], |host| {
            format!("GET /sparql?query={} HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(1 << 20))
        }).or_closed(),
        head("an update of 17 MiB", &[200, 413], |host| {
            let text = "INSERT DATA { GRAPH <urn:large> { <urn:large> <urn:is> \"".to_owned() + &"x".repeat(64) + "\" } } #" + &"x".repeat(17 << 20);
            format!("POST /update HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-update\r\nContent-Length: {}\r\n\r\n{text}", text.len())
        }).must(),
        head("a query of 17 MiB", &[200, 413], |host| {
            let text = "ASK {} #".to_owned() + &"x".repeat(17 << 20);
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\nContent-Length: {}\r\n\r\n{text}", text.len())
        }).must(),
        head("10,000 graphs to ask", &[200, 400, 414, 431], |host| {
            let graphs = "&default-graph-uri=urn:g".repeat(10_000);
            let form = format!("query=ASK%7B%7D{graphs}");
            format!("POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}", form.len())
        }).must(),
        head("an Accept of many ranges", &[200, 400, 406, 431], |host| {
            format!("{ASK}Host: {host}\r\nAccept: {}text/csv\r\n\r\n", "a/b;q=0.1,".repeat(3_000))
        }).must(),
        head("a graph with a long name", &[200, 404, 414, 431], |host| {
            format!("GET /graphs?graph=urn:{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(60_000))
        }).must(),
        head("HEAD of a long answer", &[200], |host| {
            let query = percent_encode("SELECT * { ?a ?b ?c . ?d ?e ?f } LIMIT 100000");
            format!("HEAD /sparql?query={query} HTTP/1.1\r\nHost: {host}\r\n\r\n")
        }).head_only(),
        head("HEAD of a refusal", &[400], |host| {
            format!("HEAD /sparql?query=no+query HTTP/1.1\r\nHost: {host}\r\n\r\n")
        }).head_only().must(),
    ]
}

/// Web pages of others that ask a server on this machine.
fn origins() -> Vec<Case> {
    vec![
        head("a query for a foreign Host", &[400, 403, 421], |_| format!("{ASK}Host: attacker.example\r\n\r\n")).must(),
        head("a foreign Host in the target", &[400, 403, 421], |host| {
            format!("GET http://attacker.example/sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: {host}\r\n\r\n")
        }).must(),
        head("statistics for a foreign Host", &[400, 403, 421], |_| "GET /stats HTTP/1.1\r\nHost: attacker.example\r\n\r\n".into()).must(),
        head("a graph for a foreign Host", &[400, 403, 421], |_| "GET /graphs?default HTTP/1.1\r\nHost: attacker.example\r\n\r\n".into()).must(),
        head("an update for a foreign Host", &[400, 403, 421], |_| {
            "POST /update HTTP/1.1\r\nHost: attacker.example\r\nContent-Type: application/sparql-update\r\nContent-Length: 11\r\n\r\nCLEAR ALL  ".into()
        }).must(),
        head("an update of a foreign page", &[400, 403], |host| {
            format!("POST /update HTTP/1.1\r\nHost: {host}\r\nOrigin: https://attacker.example\r\nContent-Type: application/sparql-update\r\nContent-Length: 9\r\n\r\nCLEAR ALL")
        }).must(),
        head("a form of a sandboxed page", &[400, 403], |host| {
            format!("POST /update HTTP/1.1\r\nHost: {host}\r\nOrigin: null\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 16\r\n\r\nupdate=CLEAR+ALL")
        }).must(),
        head("an update by GET", &[400, 405], |host| {
            format!("GET /update?update=CLEAR+ALL HTTP/1.1\r\nHost: {host}\r\n\r\n")
        }).must(),
    ]
}

fn contents() -> Vec<Case> {
    let post = |body: &[u8], host: &str, more: &str| {
        let head = format!(
            "POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\n{more}Content-Length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    vec![
        raw("a query that is not UTF-8", &[400], move |host| post(b"ASK { <urn:\xff\xfe> ?p \"\xc3\" }", host, "")).must(),
        head("broken percent signs", &[200, 400], |host| format!("GET /sparql?query=ASK%7B%7D%&x=%zz&%00=%c3 HTTP/1.1\r\nHost: {host}\r\n\r\n")).must(),
        head("a timeout of nothing", &[200, 400, 503, 504], |host| {
            format!("GET /sparql?query=ASK%7B%7D&timeout=0 HTTP/1.1\r\nHost: {host}\r\n\r\n")
        }).must(),
        head("a timeout beyond numbers", &[200, 400], |host| {
            format!("GET /sparql?query=ASK%7B%7D&timeout=99999999999999999999999 HTTP/1.1\r\nHost: {host}\r\n\r\n")
        }).must(),
        head("the longest timeout", &[200, 400], |host| {
            format!("GET /sparql?query=ASK%7B%7D&timeout=18446744073709551615 HTTP/1.1\r\nHost: {host}\r\n\r\n")
        }).must(),
        head("an expectation nobody meets", &[200, 400, 417], |host| {
            format!("{ASK}Host: {host}\r\nExpect: 200-ok\r\n\r\n")
        }).must(),
        raw("a compressed query", &[400, 415], move |host| post(b"\x1f\x8b\x08\0\0\0\0\0\0\x03", host, "Content-Encoding: gzip\r\n")).must(),
        Case::new("XML with a control character", Attack::Raw(Box::new(move |host| {
            post(b"SELECT (\"a\\u0001b\\u0008\" AS ?x) (\"\\uFFFF\" AS ?y) {}", host, "Accept: application/sparql-results+xml\r\n")
        })), Right::Status(&[200, 400, 406, 422, 500])).must(),
        Case::new("a control character of which XML has no notation", Attack::Raw(Box::new(move |host| {
            post(b"SELECT (\"a\\u0001b\" AS ?x) {}", host, "Accept: application/sparql-results+xml, text/csv;q=0.1\r\n")
        })), Right::Status(&[406])).must(),
        Case::new("well-formed XML of markup and blanks", Attack::Raw(Box::new(move |host| {
            post(b"SELECT (\"<a>&]]>\\t\\r\\n\\u0085\\uFFFD</a>\" AS ?x) {}", host, "Accept: application/sparql-results+xml\r\n")
        })), Right::Body(well_formed)).must(),
        Case::new("a broken multipart body", Attack::Raw(Box::new(|host| {
            let body = "--b\r\n".repeat(50_000);
            format!("POST /graphs?graph=urn:multi HTTP/1.1\r\nHost: {host}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        })), Right::Status(&[200, 201, 204, 400])).must(),
    ]
}

/// No character that XML 1.0 forbids, written in any way.
fn well_formed(body: &str) -> Result<(), String> {
    let bad =
        |c: char| matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    if body.contains(bad) || ["&#1;", "&#x1;", "&#8;", "&#x8;"].iter().any(|r| body.contains(r)) {
        return Err("the XML is not well-formed".into());
    }
    Ok(())
}

fn clients() -> Vec<Case> {
    let scenario = |name, run: fn(&Target, &Scale) -> Result<(), String>| {
        Case::new(name, Attack::Scenario(run), Right::Never)
    };
    vec![
        scenario("70 clients that do not read", |target, scale| {
            let query = percent_encode("SELECT * { ?a ?b ?c . ?d <urn:next> ?e }");
            let request = format!("GET /sparql?query={query} HTTP/1.1\r\nHost: {}\r\n\r\n", target.address);
            while_open(target, scale, 70, &request)
        }),
        scenario("70 half heads", |target, scale| {
            while_open(target, scale, 70, "GET /sparql?query=ASK HTTP/1.1\r\nHo")
        }),
        scenario("70 half bodies of queries", |target, scale| {
            let head = format!(
                "POST /query HTTP/1.1\r\nHost: {}\r\nContent-Type: application/sparql-query\r\nContent-Length: 5\r\n\r\nAS",
                target.address
            );
            while_open(target, scale, 70, &head)
        }),
        scenario("70 half bodies of updates", |target, scale| {
            let head = format!(
                "POST /update HTTP/1.1\r\nHost: {}\r\nContent-Type: application/sparql-update\r\nContent-Length: 50\r\n\r\nINSERT",
                target.address
            );
            while_open(target, scale, 70, &head)
        }),
        scenario("70 half graphs", |target, scale| {
            let head = format!(
                "PUT /graphs?graph=urn:half HTTP/1.1\r\nHost: {}\r\nContent-Type: text/turtle\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n<urn:a> <urn:b> ",
                target.address
            );
            while_open(target, scale, 70, &head)
        }),
        scenario("1,000 connections that say nothing", |target, scale| flood(target, scale, 1_000)),
        scenario("500 requests at once on a connection", |target, _| pipeline(target, 500)),
        scenario("clients that leave", leave),
    ]
}

fn connect(target: &Target, request: &str) -> Result<TcpStream, String> {
    let told = |e: std::io::Error| format!("cannot connect: {e}");
    let mut stream = TcpStream::connect_timeout(&target.address, Duration::from_secs(5)).map_err(told)?;
    // A server that has enough of us may close; that is its right.
    let _ = stream.write_all(request.as_bytes());
    Ok(stream)
}

/// Others are answered while so many connections hang at the end of `request`.
fn while_open(target: &Target, scale: &Scale, n: usize, request: &str) -> Result<(), String> {
    let open = (0..n).map(|_| connect(target, request)).collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..3 {
        probe(target, scale, Duration::from_secs(10))?;
    }
    drop(open);
    Ok(())
}

/// While so many connections are open the server may say that there are too many, or just
/// close; afterwards it answers.
fn flood(target: &Target, scale: &Scale, n: usize) -> Result<(), String> {
    let open: Vec<_> = (0..n).map_while(|_| connect(target, "").ok()).collect();
    match probe(target, scale, Duration::from_secs(10)) {
        Ok(()) => {}
        Err(error) if error.contains("503") || error.contains("closed") => {}
        Err(error) => return Err(format!("with {} connections: {error}", open.len())),
    }
    drop(open);
    let begun = Instant::now();
    loop {
        match probe(target, scale, Duration::from_secs(10)) {
            Ok(()) => return Ok(()),
            Err(error) if begun.elapsed() > Duration::from_secs(10) => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn pipeline(target: &Target, n: usize) -> Result<(), String> {
    let request = format!("{ASK}Host: {}\r\nAccept: text/csv\r\n\r\n", target.address).repeat(n);
    let stream = connect(target, &request)?;
    let end = Instant::now() + Duration::from_secs(20);
    let mut reader = BufReader::new(&stream);
    for i in 0..n {
        match read_reply(&mut reader, &stream, end, true) {
            Reply::Answer(answer) if answer.status == 200 => {}
            other => return Err(format!("answer {i}: {}", other.tell())),
        }
    }
    Ok(())
}

/// Queries end when their client has gone.
fn leave(target: &Target, _: &Scale) -> Result<(), String> {
    let query = percent_encode("SELECT (COUNT(DISTINCT *) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }");
    let request = format!("GET /sparql?query={query} HTTP/1.1\r\nHost: {}\r\n\r\n", target.address);
    for _ in 0..8 {
        let stream = connect(target, &request)?;
        std::thread::sleep(Duration::from_millis(20));
        drop(stream);
    }
    let begun = Instant::now();
    loop {
        let running = running(target)?;
        if running == 0 {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_millis(2_000) {
            return Err(format!("{running} queries run on though their clients have left"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Queries under way.
fn running(target: &Target) -> Result<u64, String> {
    let mut stream = connect(
        target,
        &format!("GET /stats HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", target.address),
    )?;
    let mut said = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(|e| e.to_string())?;
    stream.read_to_string(&mut said).map_err(|e| format!("/stats: {e}"))?;
    let number =
        said.split("\"running\":").nth(1).and_then(|rest| rest.split([',', '}']).next()?.trim().parse().ok());
    number.ok_or_else(|| format!("/stats says {said}"))
}
