//! The SPARQL Protocol against a running server: forms, formats, errors, updates, whole graphs,
//! keep-alive, a cut client.

mod support;

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};

use snowmelt_server::ServerConfig;

use support::{Running, config, read_answer};

fn running() -> Running {
    let mut data = String::new();
    for i in 0..5000 {
        writeln!(data, "<urn:s{i}> <urn:p> \"value {i}\" .").unwrap();
    }
    Running::start(&data, config())
}

fn status(answer: &(String, String)) -> &str {
    &answer.0[9..12]
}

#[test]
fn forms_formats_and_refusals() {
    let server = running();
    let one = "SELECT ?o { <urn:s7> <urn:p> ?o }";
    let (head, body) = server.get(one, "application/sparql-results+xml");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/sparql-results+xml"), "{head}");
    assert!(
        body.contains("<result><binding name=\"o\"><literal>value 7</literal></binding></result>"),
        "{body}"
    );
    let (head, body) = server.get(one, "text/csv");
    assert!(head.contains("text/csv") && body.contains("value 7"), "{head}{body}");
    let (head, body) = server.get("CONSTRUCT WHERE { <urn:s7> ?p ?o }", "application/rdf+xml");
    assert!(head.contains("application/rdf+xml") && body.contains("rdf:RDF"), "{head}{body}");

    let form = "query=ASK%20%7B%20%3Furn%20%3Fp%20%3Fo%20%7D";
    let (head, body) = server.ask(&format!(
        "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("true"), "{head}{body}");
    let (head, _) = server.ask(&format!(
        "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nContent-Length: {}\r\n\r\n{one}",
        one.len()
    ));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");

    // "é" in Latin-1, in a body and in each kind of address
    for asked in ["/sparql?query=ASK%7B%7D&using-graph-uri=%E9", "/stats?format=%E9", "/graphs?graph=u:%E9"] {
        let (head, body) = server.ask(&format!("GET {asked} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 400") && body.contains("UTF-8"), "{asked}: {head}{body}");
    }
    let form = "update=INSERT+DATA+%7B+%3Curn:a%3E+%3Curn:b%3E+%22caf%E9%22+%7D";
    let (head, body) = server.ask(&format!(
        "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    assert!(head.starts_with("HTTP/1.1 400") && body.contains("caf"), "{head}{body}");

    let (head, body) = server.get("SELECT nonsense", "*/*");
    assert!(head.starts_with("HTTP/1.1 400") && body.contains("line 1"), "{head}{body}");
    assert!(server.get(one, "image/png").0.starts_with("HTTP/1.1 406"));
    assert!(server.ask("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n").0.starts_with("HTTP/1.1 404"));
    let large = "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nContent-Length: 20000\r\n\r\n";
    assert!(server.ask(&(large.to_owned() + &" ".repeat(20000))).0.starts_with("HTTP/1.1 413"));
    let (head, body) = server.ask("GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("\"quads\": 5000"), "{head}{body}");
}

#[test]
fn one_connection_carries_many_queries_and_long_answers_stream() {
    let server = running();
    let mut stream = server.connect();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3 {
        let query = "SELECT%20*%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D";
        write!(stream, "GET /sparql?query={query} HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\n\r\n")
            .unwrap();
        let (head, body) = read_answer(&mut answers, false);
        assert!(head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
        assert_eq!(body.lines().count(), 5001);
    }
}

#[test]
fn a_client_that_leaves_ends_its_query() {
    let server = running();
    let mut stream = server.connect();
    // 25 million rows: it only ends early because the server notices.
    let query = "SELECT%20*%20%7B%20%3Fa%20%3Fp%20%3Fb%20.%20%3Fc%20%3Fp%20%3Fd%20%7D";
    write!(stream, "GET /sparql?query={query} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 100]).unwrap();
    drop(stream);
    assert!(server.get("ASK {}", "*/*").1.contains("true"));
}

#[test]
fn updates_are_answered_when_they_are_durable() {
    let server = running();
    let answer = server.update("INSERT DATA { <urn:new> <urn:p> 1, 2 } ; DELETE WHERE { <urn:s1> ?p ?o }");
    assert_eq!(status(&answer), "200", "{answer:?}");
    assert!(answer.1.contains("\"inserted\":2") && answer.1.contains("\"deleted\":1"), "{answer:?}");
    assert_eq!(server.get("SELECT ?o { <urn:new> ?p ?o }", "text/csv").1.lines().count(), 3);
    // The shape is in the cache by now, and the constant becomes known.
    assert!(server.get("ASK { ?s <urn:q> ?o }", "*/*").1.contains("false"));
    let form = server.send(
        "POST",
        "/sparql",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "update=INSERT+DATA+%7B+%3Curn%3Aa%3E+%3Curn%3Aq%3E+%3Curn%3Ab%3E+%7D",
    );
    assert_eq!(status(&form), "200", "{form:?}");
    assert!(server.get("ASK { ?s <urn:q> ?o }", "*/*").1.contains("true"));
    let wrong =
        server.update("INSERT DATA { <urn:x> <urn:p> 1 } ; CREATE GRAPH <urn:g> ; LOAD <file:///etc/passwd>");
    assert_eq!(status(&wrong), "403", "{wrong:?}");
    assert!(wrong.1.contains("--allow-load"), "{wrong:?}");
    assert!(server.get("ASK { <urn:x> ?p ?o }", "*/*").1.contains("false"), "all or nothing");
    assert_eq!(status(&server.update("INSERT nonsense")), "400");
    assert_eq!(
        status(&server.send("POST", "/query", "Content-Type: application/sparql-update\r\n", "CLEAR ALL")),
        "400"
    );
}

#[test]
fn changes_come_from_this_machine_and_no_foreign_page() {
    let server = running();
    let update = |headers: &str| {
        let body = "INSERT DATA { <urn:x> <urn:p> 1 }";
        let len = body.len();
        let request = format!(
            "POST /update HTTP/1.1\r\n{headers}Content-Type: application/sparql-update\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        status(&server.ask(&request)).to_owned()
    };
    assert_eq!(update("Host: example.org\r\n"), "403", "a name that was made to lead here");
    assert_eq!(
        update("Host: 127.0.0.1:80\r\nOrigin: http://example.org\r\n"),
        "403",
        "a page of somebody else"
    );
    assert_eq!(update("Host: localhost:80\r\nOrigin: http://localhost:80\r\n"), "200");
    let read_only = Running::start("", ServerConfig { read_only: true, ..config() });
    assert_eq!(status(&read_only.update("CLEAR ALL")), "403");
}

#[test]
fn whole_graphs_come_and_go() {
    let server = running();
    let turtle = "Content-Type: text/turtle\r\n";
    let graph = "/graphs?graph=urn:g";
    assert_eq!(status(&server.send("GET", graph, "", "")), "404");
    assert_eq!(status(&server.send("PUT", graph, turtle, "<a> <urn:p> 1, 2 .")), "201");
    assert_eq!(status(&server.send("PUT", graph, turtle, "<urn:a> <urn:p> 3 .")), "204");
    assert_eq!(status(&server.send("POST", graph, turtle, "<urn:a> <urn:p> 4 .")), "204");
    let got = server.send("GET", graph, "Accept: application/n-triples\r\n", "");
    assert_eq!((status(&got), got.1.lines().count()), ("200", 2), "{got:?}");
    // Half a document changes nothing.
    let broken = server.send("PUT", graph, turtle, "<urn:a> <urn:p> 5 . <urn:a> <urn:p");
    assert_eq!(status(&broken), "400", "{broken:?}");
    assert!(broken.1.contains(":1:"), "the place: {broken:?}");
    assert_eq!(server.send("GET", graph, "", "").1.lines().count(), 2);
    assert_eq!(status(&server.send("PUT", graph, "Content-Type: image/png\r\n", "x")), "415");
    assert_eq!(status(&server.send("DELETE", graph, "", "")), "204");
    assert_eq!(status(&server.send("DELETE", graph, "", "")), "404");
    assert_eq!(server.send("GET", "/graphs?default", "", "").1.lines().count(), 5000);
}

#[test]
fn a_large_graph_passes_through_a_file() {
    let server = running();
    let mut data = String::new();
    for i in 0..60_000 {
        writeln!(
            data,
            "<urn:subject-with-a-long-name-{i}> <urn:predicate> \"an object of some length, number {i}\" ."
        )
        .unwrap();
    }
    assert!(data.len() > 4 << 20);
    let put = server.send("PUT", "/graphs?graph=urn:large", "Content-Type: application/n-triples\r\n", &data);
    assert_eq!(status(&put), "201", "{put:?}");
    let count = server.get("SELECT (COUNT(*) AS ?n) { GRAPH <urn:large> { ?s ?p ?o } }", "text/csv");
    assert!(count.1.contains("60000"), "{count:?}");
    assert_eq!(status(&server.send("DELETE", "/graphs?graph=urn:large", "", "")), "204");
    assert!(server.get("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "text/csv").1.contains("5000"));
    assert!(server.engine().graph().check(&mut |_| {}).unwrap().is_sound());
}
