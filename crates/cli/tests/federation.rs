//! SERVICE between two servers on loopback, and LOAD from one into the other.

mod support;

use std::fmt::Write as _;

use support::Server;
use support::bench::Bench;

/// Subjects of the one that is asked.
const THERE: usize = 5000;

/// A server with many subjects, and a database with some of their names.
fn two() -> (Bench, Server, Bench) {
    let there = Bench::new();
    let mut lines = String::new();
    for n in 0..THERE {
        writeln!(lines, "<urn:s{n}> <urn:value> {n} . <urn:s{n}> <urn:label> \"label {n}\"@en .").unwrap();
    }
    there.write("data.ttl", &lines);
    there.ok(&["load", "db", "data.ttl"]);
    let here = Bench::new();
    let names: String =
        (0..1000).map(|n| format!("<urn:here{n}> <urn:knows> <urn:s{}> .\n", 5 * n)).collect();
    here.write("data.nt", &names);
    here.ok(&["load", "db", "data.nt"]);
    let server = Server::start(&there.path("db"), &[]);
    (there, server, here)
}

fn query(address: &str) -> String {
    format!("SELECT ?h ?v {{ ?h <urn:knows> ?s SERVICE <http://{address}/sparql> {{ ?s <urn:value> ?v }} }}")
}

#[test]
fn a_query_asks_another_server() {
    let (_there, server, here) = two();
    let address = server.address.to_string();
    let allow = format!("http://{address}/");
    let query = query(&address);
    let refused = here.run(&["query", "db", &query]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "it is off unless it is allowed");
    let told =
        format!("SERVICE <http://{address}/sparql>: no endpoint may be asked; allow it with --allow-service");
    assert!(said.contains(&told), "{said}");
    let answer = here.ok(&["query", "db", &query, "--allow-service", &allow, "--format", "csv"]);
    let mut rows: Vec<&str> = answer.lines().skip(1).map(str::trim).collect();
    rows.sort_unstable();
    let mut expected: Vec<String> = (0..1000).map(|n| format!("urn:here{n},{}", 5 * n)).collect();
    expected.sort_unstable();
    assert_eq!(rows, expected);
    let plan = here.ok(&["query", "db", &query, "--allow-service", &allow, "--analyze"]);
    let line = plan.lines().find(|line| line.trim_start().starts_with("service")).unwrap();
    assert!(line.contains("for ?s → ?v") && line.contains(" requests 1000 rows "), "{line}");
    let other = here.run(&["query", "db", &query, "--allow-service", &format!("http://{address}/else")]);
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(said.contains("it is none of those that may be asked; allow it with --allow-service"), "{said}");
}

#[test]
fn a_server_asks_another_server() {
    let (_there, there, here) = two();
    let address = there.address.to_string();
    let closed = Server::start(&here.path("db"), &[]);
    let (status, said) =
        closed.client().post("/query", "application/sparql-query", &query(&address)).unwrap();
    assert!(
        status == 403 && said.contains("the server allows endpoints with --allow-service"),
        "{status} {said}"
    );
    let described = |server: &Server, token: &str| {
        let (status, text) = ask(server, token.trim(), "/sparql?format=nt", "");
        assert!(status == 200 && text.contains("service-description#Service"), "{status} {text}");
        text.contains("service-description#BasicFederatedQuery")
    };
    assert!(!described(&closed, "none"));
    drop(closed);
    let tokens = here.path("tokens.toml");
    let tokens = tokens.to_str().unwrap();
    let none = ["--service", "http://example.org/"];
    for wrong in ["garbage", "file:///etc/", "http://e/?query"] {
        let refused = here.run(&["token", "add", tokens, "wrong", "--service", wrong]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(wrong), "{wrong}: {said}");
    }
    let narrow = here.ok(&[&["token", "add", tokens, "narrow"][..], &none].concat());
    let wide = here.ok(&["token", "add", tokens, "wide", "--rights", "admin"]);
    let allow = format!("http://{address}/");
    let server = Server::start(&here.path("db"), &["--allow-service", &allow, "--tokens", tokens]);
    assert!(described(&server, &wide));
    let ask = |token: &str, path: &str, text: &str| ask(&server, token.trim(), path, text);
    let (status, rows) = ask(&wide, "/query", &query(&address));
    assert_eq!((status, rows.lines().count()), (200, 1001), "{rows}");
    let (status, said) = ask(&narrow, "/query", &query(&address));
    assert!(status == 403 && said.contains("it is none of those that may be asked"), "{status} {said}");
    let (status, stats) = ask(&wide, "/stats", "");
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    let endpoint = &stats["endpoints"][0];
    assert_eq!((status, &endpoint["rows"]), (200, &serde_json::json!(1000)), "{endpoint}");
    assert_eq!(endpoint["endpoint"], format!("http://{address}"));
    let (_, metrics) = ask(&wide, "/metrics", "");
    let metric = format!("snowmelt_endpoints_rows_total{{endpoint=\"http://{address}\"}} 1000");
    assert!(metrics.contains(&metric), "{metrics}");
    let load = format!("LOAD <http://{address}/graphs?default> INTO GRAPH <urn:copy>");
    let (status, said) = ask(&wide, "/update", &load);
    assert!(status == 200 && said.contains(&format!("\"inserted\":{}", 2 * THERE)), "{status} {said}");
    let (status, said) = ask(&wide, "/update", "LOAD <http://127.0.0.1:1/data>");
    assert!(status == 403 && said.contains("LOAD <http://127.0.0.1:1/data>: it is none of those"), "{said}");
}

/// A request with a token.
fn ask(server: &Server, token: &str, path: &str, text: &str) -> (u16, String) {
    use std::io::{Read, Write};
    let kind = if path == "/update" { "application/sparql-update" } else { "application/sparql-query" };
    let (method, len) = (if text.is_empty() { "GET" } else { "POST" }, text.len());
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Accept: text/csv, */*;q=0.1\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n{text}",
        server.address
    );
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    // a chunked body has its sizes between its lines
    let body = match answer.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_owned(),
    };
    (status, body)
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}
