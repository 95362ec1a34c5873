//! Clients that are slow, silent, many, ambiguous or gone, over plain sockets. Deadlines are
//! short here; what is looked at is how a connection ends, never when.

mod support;

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use snowmelt_server::{MOST_REFUSED, ServerConfig, ServerLimits};
use snowmelt_sparql::{
    RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemotePart, RemoteQuestion, RemoteTotals,
};

use support::{Running, config, read_answer};

const SHORT: Duration = Duration::from_millis(300);
/// Longer than any of these tests should take.
const LONG: Duration = Duration::from_secs(600);

/// A server of 2,000 triples with these limits.
fn running(limits: ServerLimits) -> Running {
    let mut data = String::new();
    for i in 0..2000 {
        writeln!(data, "<urn:s{i}> <urn:p> \"value {i}\" .").unwrap();
    }
    Running::start(&data, ServerConfig { limits, ..config() })
}

/// Limits under which nothing here ends by itself.
fn patient() -> ServerLimits {
    ServerLimits {
        head: LONG,
        idle: LONG,
        stall: LONG,
        wait: LONG,
        timeout: Some(LONG),
        ..ServerLimits::default()
    }
}

/// 4 million rows, about 200 MB.
const LARGE: &str = "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d }";
/// 8 thousand million rows are counted.
const ENDLESS: &str =
    "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f FILTER(?b < ?d && ?d < ?f) }";

fn get(query: &str) -> String {
    let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    format!("GET /sparql?query={query} HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\n\r\n")
}

fn status(answer: &(String, String)) -> &str {
    &answer.0[9..12]
}

/// Everything until the server closes.
fn to_the_end(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the server closes, and resets nothing");
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn a_request_that_two_readers_may_understand_differently_is_refused() {
    let server = running(patient());
    let query = "Content-Type: application/sparql-query\r\n";
    let body = "ASK { ?s ?p ?o }";
    let len = body.len();
    for (method, fields, body) in [
        ("GET", String::new(), String::new()),
        ("GET", "Host: localhost\r\nHost: localhost\r\n".into(), String::new()),
        (
            "POST",
            format!("Host: localhost\r\n{query}Content-Length: {len}\r\nContent-Length: {len}\r\n"),
            body.into(),
        ),
        (
            "POST",
            format!("Host: localhost\r\n{query}Content-Length: {len}\r\nTransfer-Encoding: chunked\r\n"),
            format!("{len:x}\r\n{body}\r\n0\r\n\r\n"),
        ),
        (
            "POST",
            format!("Host: localhost\r\n{query}Transfer-Encoding: chunked\r\nContent-Length: {len}\r\n"),
            format!("{len:x}\r\n{body}\r\n0\r\n\r\n"),
        ),
    ] {
        let mut stream = server.connect();
        let request = format!("{method} /sparql?query=ASK%7B%7D HTTP/1.1\r\n{fields}\r\n{body}");
        let request = if method == "POST" { request.replacen("?query=ASK%7B%7D", "", 1) } else { request };
        // Requests that follow are not answered.
        write!(stream, "{request}{}", get("ASK {}")).unwrap();
        let answer = to_the_end(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 400"), "{request:?}: {answer}");
        assert_eq!(answer.matches("\r\n\r\n").count(), 1, "one answer to {request:?}: {answer}");
    }
    // An old client names no host, and one request after the other is well.
    let mut stream = server.connect();
    write!(stream, "GET /health HTTP/1.0\r\n\r\n").unwrap();
    assert!(to_the_end(&mut stream).starts_with("HTTP/1.0 200"));
    let mut stream = server.connect();
    write!(stream, "{}{}{}", get("ASK {}"), get("ASK {}"), get("ASK {}")).unwrap();
    let mut answers = BufReader::new(stream);
    for _ in 0..3 {
        assert_eq!(status(&read_answer(&mut answers, false)), "200");
    }
}

#[test]
fn only_requests_for_this_server_are_answered() {
    let server = Running::start(
        "<urn:a> <urn:p> <urn:b> .",
        ServerConfig { allow_hosts: vec!["data.example.org".into()], ..config() },
    );
    let ask = |target: &str, fields: &str| server.ask(&format!("GET {target} HTTP/1.1\r\n{fields}\r\n"));
    let query = "/sparql?query=ASK%7B%7D";
    for target in [query, "/graphs?default", "/stats", "/"] {
        let refused = ask(target, "Host: attacker.example\r\n");
        assert_eq!(status(&refused), "403", "{target}: {refused:?}");
        assert!(refused.1.contains("--allow-host"), "{refused:?}");
    }
    assert_eq!(status(&ask("http://attacker.example/sparql?query=ASK%7B%7D", "Host: localhost\r\n")), "403");
    for fields in [
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: localhost\r\nOrigin: http://attacker.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
    ] {
        assert_eq!(status(&ask(query, fields)), "403", "{fields:?}");
    }
    for fields in [
        "Host: LOCALHOST:7878\r\n",
        "Host: [::1]:7878\r\n",
        "Host: data.example.org\r\n",
        "Host: localhost:80\r\nOrigin: http://localhost:80\r\nSec-Fetch-Site: same-origin\r\n",
        "Host: localhost\r\nSec-Fetch-Site: none\r\n",
    ] {
        assert_eq!(status(&ask(query, fields)), "200", "{fields:?}");
    }
}

#[test]
fn a_head_that_does_not_come_is_not_waited_for() {
    let server = running(ServerLimits { head: SHORT, ..patient() });
    let mut silent = server.connect();
    let mut half = server.connect();
    write!(half, "GET /health HTTP/1.1\r\nHost: loc").unwrap();
    let answer = to_the_end(&mut half);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("--head-deadline"), "{answer}");
    assert_eq!(to_the_end(&mut silent), "");
    // A byte now and then does not help.
    let mut drip = server.connect();
    let head = "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ".to_owned() + &"x".repeat(100_000);
    let mut sent = 0;
    for byte in head.as_bytes() {
        if drip.write_all(&[*byte]).is_err() {
            break;
        }
        sent += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(sent < head.len());
}

#[test]
fn an_idle_connection_is_closed() {
    let server = running(ServerLimits { idle: SHORT, ..patient() });
    let mut stream = server.connect();
    write!(stream, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let answer = to_the_end(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
}

#[test]
fn a_body_that_does_not_come_on_is_not_waited_for() {
    let server = running(ServerLimits { stall: SHORT, ..patient() });
    for head in [
        "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nContent-Length: 1000\r\n\r\nASK {",
        "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nASK {\r\n",
        "PUT /graphs?default HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\nContent-Length: 100000000\r\n\r\n<a> <b> <c> .",
    ] {
        let mut half = server.connect();
        half.write_all(head.as_bytes()).unwrap();
        let answer = to_the_end(&mut half);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("--stall-deadline"), "{answer}");
    }
}

/// Clients that ask for much and never read.
fn mute(server: &Running, clients: usize) -> Vec<TcpStream> {
    let ask = |_| {
        let mut stream = server.connect();
        stream.write_all(get(LARGE).as_bytes()).unwrap();
        stream
    };
    (0..clients).map(ask).collect()
}

#[test]
fn clients_that_never_read_keep_nobody_out() {
    let server = running(ServerLimits { queries: 4, ..patient() });
    // More than there are turns, and more than memory would admit if they kept what they do not
    // use.
    const MUTE: usize = 45;
    let mute = mute(&server, MUTE);
    for _ in 0..10 {
        assert!(server.get("ASK {}", "*/*").1.contains("true"));
    }
    assert_eq!(server.stat("running"), MUTE as u64, "they wait");
    drop(mute);
    server.wait_until_idle();
}

#[test]
fn clients_that_never_read_are_closed_where_memory_is_short() {
    let server = running(ServerLimits { queries: 4, ..patient() });
    // More than memory admits with what they do use.
    const MUTE: usize = 120;
    let mute = mute(&server, MUTE);
    while server.stat("running") == MUTE as u64 {}
    for _ in 0..10 {
        let (head, body) = server.get("ASK {}", "*/*");
        assert!(body.contains("true"), "{head} {body}");
    }
    drop(mute);
    server.wait_until_idle();
}

#[test]
fn a_client_that_never_reads_is_closed() {
    let server = running(ServerLimits { stall: SHORT, ..patient() });
    let mut mute = server.connect();
    mute.write_all(get(LARGE).as_bytes()).unwrap();
    while server.stat("running") == 0 {}
    server.wait_until_idle();
    let mut rest = Vec::new();
    // Bytes in the buffers may come; the end of the answer does not.
    let _ = mute.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"));
}

/// Over HTTP/1.0 nothing but the end of the connection ends an answer.
#[test]
fn a_cut_answer_to_an_old_client_ends_in_a_reset() {
    let server = running(ServerLimits { timeout: Some(SHORT), ..patient() });
    let mut old = server.connect();
    let request = get(LARGE).replace("HTTP/1.1", "HTTP/1.0");
    old.write_all(request.as_bytes()).unwrap();
    // The query runs out of its time while nothing is read.
    std::thread::sleep(2 * SHORT);
    let mut rest = Vec::new();
    let error = old.read_to_end(&mut rest).expect_err("the rows are not all there");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_client_that_pauses_gets_all() {
    let server = running(ServerLimits { queries: 1, ..patient() });
    let mut stream = server.connect();
    stream.write_all(get(&format!("{LARGE} LIMIT 400000")).as_bytes()).unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
    // The one slot is free meanwhile.
    for _ in 0..3 {
        assert!(server.get("ASK {}", "*/*").1.contains("true"));
    }
    let mut answer = BufReader::new(std::io::Read::chain(&b"H"[..], stream));
    assert_eq!(read_answer(&mut answer, false).1.lines().count(), 400_001);
}

#[test]
fn a_query_ends_with_its_client() {
    // The next query gets the only slot when the one before has really ended.
    let server = running(ServerLimits { queries: 1, ..patient() });
    for more in ["", "GET /health HTTP/1.1\r\n"] {
        let mut stream = server.connect();
        write!(stream, "{}{more}", get(ENDLESS)).unwrap();
        while server.stat("running") == 0 {}
        drop(stream);
        assert_eq!(status(&server.ask(&get("ASK {}"))), "200", "{more:?}");
    }
    // Rows have left already, and it counts on without more of them.
    let mut stream = server.connect();
    let late = format!(
        "SELECT * {{ {{ {} }} UNION {{ ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f FILTER(?b < ?d && ?d < ?f && ?f < ?b) }} }}",
        "?a <urn:p> ?b . ?c <urn:q> ?d } UNION { ?a <urn:p> ?b . ?c <urn:p> ?d"
    );
    stream.write_all(get(&late).as_bytes()).unwrap();
    stream.read_exact(&mut [0; 100_000]).unwrap();
    drop(stream);
    assert_eq!(status(&server.ask(&get("ASK {}"))), "200");
}

/// An endpoint that never sends a row.
#[derive(Debug)]
struct Mute;

impl RemoteAnswer for Mute {
    fn next(&mut self, wait: Duration) -> Result<RemotePart, RemoteFault> {
        std::thread::sleep(wait);
        Ok(RemotePart::Waiting)
    }
}

impl RemoteEndpoints for Mute {
    fn select(&self, _: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        Ok(Box::new(Self))
    }

    fn document(&self, _: &str, _: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        unreachable!("nothing is loaded")
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        Arc::new(Self)
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        Vec::new()
    }
}

/// Others wait for an update that waits for an endpoint: not for long.
#[test]
fn an_update_waits_for_endpoints_for_so_long() {
    assert!(ServerLimits::default().remote_wait.is_some());
    let limits = ServerLimits { remote_wait: Some(SHORT), timeout: Some(LONG), ..patient() };
    let config = ServerConfig { limits, remote: Some(Arc::new(Mute)), ..config() };
    let server = Running::start("<urn:a> <urn:b> <urn:c> .", config);
    let insert = |silent: &str| {
        format!(
            "INSERT {{ <urn:a> <urn:b> ?o }} WHERE {{ SERVICE {silent} <http://e/> {{ ?s <urn:p> ?o }} }}"
        )
    };
    let ended = server.update(&insert(""));
    assert_eq!(status(&ended), "504", "{ended:?}");
    assert!(ended.1.contains("the update has waited for endpoints for 300ms"), "{ended:?}");
    assert!(ended.1.contains("--service-wait") && !ended.1.contains("--service-timeout"), "{ended:?}");
    assert_eq!(status(&server.update(&insert("SILENT"))), "200");
}

#[test]
fn there_is_a_time_limit() {
    assert!(ServerLimits::default().timeout.is_some());
    let server = running(ServerLimits { timeout: Some(SHORT), ..patient() });
    let ended = server.ask(&get(ENDLESS));
    assert_eq!(status(&ended), "503", "{ended:?}");
    assert!(ended.1.contains("--timeout"), "{ended:?}");
}

#[test]
fn a_query_waits_for_its_turn_but_not_for_ever() {
    let server = running(ServerLimits { queries: 1, wait: SHORT, ..patient() });
    let mut first = server.connect();
    first.write_all(get(ENDLESS).as_bytes()).unwrap();
    while server.stat("running") == 0 {}
    let busy = server.ask(&get("ASK {}"));
    assert_eq!(status(&busy), "503", "{busy:?}");
    assert!(busy.0.to_ascii_lowercase().contains("retry-after") && busy.1.contains("--queries"), "{busy:?}");
    drop(first);
    server.wait_until_idle();
    assert_eq!(status(&server.ask(&get("ASK {}"))), "200");
}

#[test]
fn there_are_so_many_connections_and_no_more() {
    let server = running(ServerLimits { connections: 3, ..patient() });
    let mut served: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
    for stream in &mut served {
        write!(stream, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        read_answer(&mut BufReader::new(stream), false);
    }
    let mut refused: Vec<BufReader<TcpStream>> = Vec::new();
    for _ in 0..MOST_REFUSED {
        let mut stream = BufReader::new(server.connect());
        let answer = read_answer(&mut stream, false);
        assert_eq!(status(&answer), "503", "{answer:?}");
        assert!(answer.0.contains("Retry-After") && answer.1.contains("--connections"), "{answer:?}");
        refused.push(stream);
    }
    let mut beyond = server.connect();
    assert!(!matches!(beyond.read(&mut [0; 100]), Ok(n) if n > 0), "closed without a word");
    drop((refused, served));
    // The server notices that they have gone.
    let answered = |_| {
        std::thread::sleep(Duration::from_millis(20));
        let mut stream = server.connect();
        let mut answer = String::new();
        let sent = write!(stream, "GET /health HTTP/1.0\r\n\r\n");
        sent.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.contains(" 200 ")
    };
    assert!((0..500).any(answered));
}

#[test]
fn a_client_sees_that_its_body_is_too_large() {
    let limits = ServerLimits { body_bytes: 1 << 20, document_bytes: 1 << 20, ..patient() };
    let server = running(limits);
    let body = "x".repeat(12 << 20);
    let kind = "Content-Type: application/sparql-update\r\n";
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let rdf = "Content-Type: text/turtle\r\n";
    for (target, kind, switch) in [
        ("POST /update", form, "--max-update"),
        ("POST /update", kind, "--max-document"),
        ("PUT /graphs?default", rdf, "--max-document"),
    ] {
        let counted = format!("{kind}Content-Length: {}\r\n\r\n{body}", body.len());
        let chunked =
            format!("{kind}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        for rest in [counted, chunked] {
            let mut stream = server.connect();
            write!(stream, "{target} HTTP/1.1\r\nHost: localhost\r\n").unwrap();
            // All is sent before anything is read, as simple clients do.
            stream.write_all(rest.as_bytes()).expect("the server takes what it will not use");
            let answer = to_the_end(&mut stream);
            assert!(answer.starts_with("HTTP/1.1 413") && answer.contains(switch), "{answer}");
        }
    }
    let fits = server.update(&format!("INSERT DATA {{ <urn:a> <urn:long> \"{}\" }}", "x".repeat(900_000)));
    assert_eq!(status(&fits), "200", "{fits:?}");
}

#[test]
fn a_long_update_passes_through_a_file() {
    let limits = ServerLimits { body_bytes: 1 << 20, document_bytes: 64 << 20, ..patient() };
    let server = running(limits);
    let data: String = (0..200_000).map(|n| format!("<urn:s{n}> <urn:long> _:b{} .\n", n % 7)).collect();
    let done = server.update(&format!("INSERT DATA {{ {data} }}"));
    assert_eq!(status(&done), "200", "{done:?}");
    assert!(done.1.contains("\"inserted\":200000"), "{done:?}");
    let nodes = server.get("SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s <urn:long> ?o }", "text/csv");
    assert_eq!(nodes.1, "n\r\n7\r\n");
    let ones = ",1".repeat(4 << 20);
    let one = server.update(&format!("INSERT DATA {{ <urn:a> <urn:p> 1{ones} }}"));
    assert_eq!(status(&one), "200", "{one:?}");
    assert!(one.1.contains("\"inserted\":1,"), "{one:?}");
    let values = format!(", \"{}\"", "x".repeat(100_000)).repeat(20);
    let one = server.update(&format!("DELETE WHERE {{ ?s <urn:p> 1{values} }}"));
    assert_eq!(status(&one), "413", "{one:?}");
    assert!(one.1.contains("--max-update"), "{one:?}");
    let cut = server.update(&format!("INSERT DATA {{ {data} <urn:s> "));
    assert_eq!(status(&cut), "400", "{cut:?}");
    assert!(cut.1.contains("line 200001"), "{cut:?}");
}
