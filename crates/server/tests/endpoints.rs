//! Requests that wait for endpoints elsewhere: others have their slots meanwhile.

mod support;

use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oxrdf::{Literal, Term};
use snowmelt_server::{ServerConfig, ServerLimits};
use snowmelt_sparql::{
    RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemotePart, RemoteQuestion, RemoteTotals,
    RemoteUse,
};

use support::{Running, config, read_answer};

/// Longer than any of these tests should take.
const LONG: Duration = Duration::from_secs(600);
/// The longest that a client waits for an answer which is not held up.
const SOON: Duration = Duration::from_secs(20);

/// An endpoint that answers once it is opened: a row, or a document of one triple.
#[derive(Clone, Debug, Default)]
struct Gate {
    is_open: Arc<AtomicBool>,
    /// the depths of requests that asked it
    asked: Arc<Mutex<Vec<u32>>>,
    depth: u32,
}

struct GateAnswer {
    gate: Gate,
    is_over: bool,
}

impl Gate {
    fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }
}

impl RemoteAnswer for GateAnswer {
    fn next(&mut self, wait: Duration) -> Result<RemotePart, RemoteFault> {
        if !self.gate.is_open() {
            std::thread::sleep(wait);
            return Ok(RemotePart::Waiting);
        }
        Ok(match std::mem::replace(&mut self.is_over, true) {
            false => RemotePart::Rows(vec![vec![Some(Term::Literal(Literal::from("of the endpoint")))]]),
            true => RemotePart::End(RemoteUse::default()),
        })
    }
}

/// The end of a document, which comes once the gate is open.
struct GateEnd {
    gate: Gate,
    go_on: Box<dyn Fn() -> bool + Send>,
}

impl Read for GateEnd {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        while !self.gate.is_open() {
            if !(self.go_on)() {
                return Err(io::Error::other("it is wanted no more"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(0)
    }
}

impl RemoteEndpoints for Gate {
    fn select(&self, _: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        self.asked.lock().unwrap().push(self.depth);
        Ok(Box::new(GateAnswer { gate: self.clone(), is_over: false }))
    }

    fn document(&self, _: &str, go_on: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        let media_type = Some("application/n-triples".to_owned());
        let begin = "<urn:loaded> <urn:p> \"1\" .\n".as_bytes();
        let read = Box::new(begin.chain(GateEnd { gate: self.clone(), go_on }));
        Ok(RemoteDocument { media_type, moved_to: None, read })
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        Arc::new(self.clone())
    }

    fn at_depth(&self, depth: u32) -> Option<Arc<dyn RemoteEndpoints>> {
        Some(Arc::new(Self { depth, ..self.clone() }))
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        Vec::new()
    }
}

/// A server with one slot for queries and one for changes, and its endpoint.
fn running() -> (Running, Gate) {
    let mut data = String::new();
    for i in 0..2000 {
        writeln!(data, "<urn:s{i}> <urn:p> \"value {i}\" .").unwrap();
    }
    let limits =
        ServerLimits { queries: 1, changes: 1, wait: LONG, timeout: Some(LONG), ..ServerLimits::default() };
    let gate = Gate::default();
    let config = ServerConfig { limits, remote: Some(Arc::new(gate.clone())), ..config() };
    (Running::start(&data, config), gate)
}

const ASKS: &str = "SELECT ?o { SERVICE <http://e/> { ?s <urn:q> ?o } }";
const ENDLESS: &str =
    "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f FILTER(?b < ?d && ?d < ?f) }";

fn sent(server: &Running, target: &str, query: &str) -> TcpStream {
    let mut stream = server.connect();
    let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    write!(stream, "GET {target}query={query} HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\n\r\n")
        .unwrap();
    stream
}

/// A query within so many others.
fn deeper(server: &Running, depth: &str, query: &str) -> TcpStream {
    let mut stream = server.connect();
    let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    write!(
        stream,
        "GET /sparql?query={query} HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\n\
         Snowmelt-Service-Depth: {depth}\r\n\r\n"
    )
    .unwrap();
    stream
}

fn update_sent(server: &Running, update: &str) -> TcpStream {
    let mut stream = server.connect();
    let len = update.len();
    write!(
        stream,
        "POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-update\r\n\
         Content-Length: {len}\r\n\r\n{update}"
    )
    .unwrap();
    stream
}

fn answer_of(stream: TcpStream) -> (String, String) {
    read_answer(&mut BufReader::new(stream), false)
}

fn status(answer: &(String, String)) -> &str {
    &answer.0[9..12]
}

/// The requests that run, and what each waits for.
fn listed(server: &Running) -> Vec<serde_json::Value> {
    let (_, body) = server.ask("GET /requests HTTP/1.1\r\nHost: localhost\r\n\r\n");
    serde_json::from_str::<serde_json::Value>(&body).unwrap()["requests"].as_array().unwrap().clone()
}

/// Waits until so many requests wait for `what`.
fn wait_for(server: &Running, count: usize, what: &str) {
    let begun = Instant::now();
    while listed(server).iter().filter(|entry| entry["waiting_for"] == what).count() != count {
        assert!(begun.elapsed() < SOON, "not {count} for {what}: {:?}", listed(server));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_query_that_waits_for_an_endpoint_lends_its_slot() {
    let (server, gate) = running();
    let waits = || server.engine().graph().database().report().endpoint_waits;
    for target in ["/sparql?", "/sparql?explain=analyze&"] {
        gate.is_open.store(false, Ordering::Relaxed);
        let before = waits().count;
        let asking: Vec<TcpStream> = (0..3).map(|_| sent(&server, target, ASKS)).collect();
        wait_for(&server, 3, "an endpoint");
        assert_eq!(waits().now, 3);
        assert!(server.get("ASK {}", "*/*").1.contains("true"));
        gate.open();
        for stream in asking {
            let answer = answer_of(stream);
            assert_eq!(status(&answer), "200", "{answer:?}");
            let row = if target.contains("explain") { "service <http://e/> once" } else { "of the endpoint" };
            assert!(answer.1.contains(row), "{answer:?}");
        }
        assert_eq!((waits().now, waits().count), (0, before + 3));
    }
}

/// The one that has the slot meanwhile keeps it: those that come back wait.
#[test]
fn a_slot_is_taken_again_when_it_is_free() {
    let (server, gate) = running();
    let asking: Vec<TcpStream> = (0..2).map(|_| sent(&server, "/sparql?", ASKS)).collect();
    wait_for(&server, 2, "an endpoint");
    let endless = sent(&server, "/sparql?", ENDLESS);
    while listed(&server).len() < 3 {}
    gate.open();
    wait_for(&server, 2, "a slot");
    // one of them gives up
    let mut asking = asking.into_iter();
    drop(asking.next());
    wait_for(&server, 1, "a slot");
    drop(endless);
    let answer = answer_of(asking.next().unwrap());
    assert!(status(&answer) == "200" && answer.1.contains("of the endpoint"), "{answer:?}");
    server.wait_until_idle();
    assert!(server.get("ASK {}", "*/*").1.contains("true"));
}

#[test]
fn a_load_lends_its_slot_until_its_document_comes() {
    let (server, gate) = running();
    let load = update_sent(&server, "LOAD <http://e/document>");
    wait_for(&server, 1, "an endpoint");
    let inserted = server.update("INSERT DATA { <urn:a> <urn:p> 1 }");
    assert_eq!(status(&inserted), "200", "{inserted:?}");
    gate.open();
    assert_eq!(status(&answer_of(load)), "200");
    assert!(server.get("ASK { <urn:loaded> ?p ?o }", "*/*").1.contains("true"));
}

/// A document that drips: others have the slot of its update, and the one turn to parse.
#[test]
fn a_document_comes_whole_before_it_is_parsed() {
    let (server, gate) = running();
    let load = update_sent(&server, "LOAD <http://e/document>");
    wait_for(&server, 1, "an endpoint");
    let document = "<urn:put> <urn:p> 1 .";
    let len = document.len();
    let put = server.ask(&format!(
        "PUT /graphs?graph=urn:g HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n\
         Content-Length: {len}\r\n\r\n{document}"
    ));
    assert_eq!(status(&put), "201", "{put:?}");
    let entry = &listed(&server)[0];
    assert_eq!(
        (entry["waiting_for"].as_str(), entry["phase"].as_str()),
        (Some("an endpoint"), Some("reading"))
    );
    gate.open();
    assert_eq!(status(&answer_of(load)), "200");
    // one that is ended while its document comes
    gate.is_open.store(false, Ordering::Relaxed);
    let left = update_sent(&server, "LOAD <http://e/document>");
    wait_for(&server, 1, "an endpoint");
    drop(left);
    server.wait_until_idle();
    assert!(server.get("ASK { <urn:loaded> ?p ?o }", "*/*").1.contains("true"));
}

/// They hold little meanwhile, and only so many begin. One slot serves them all.
#[test]
fn many_queries_that_wait_for_an_endpoint_leave_memory_to_others() {
    let (server, gate) = running();
    let most = server.engine().most_waiting();
    let budget = server.engine().graph().database().memory().clone();
    let rest = budget.free();
    let asking: Vec<TcpStream> = (0..4 * most).map(|_| sent(&server, "/sparql?", ASKS)).collect();
    wait_for(&server, most, "an endpoint");
    let plain = server.get("SELECT (1 AS ?x) {}", "text/csv");
    assert_eq!(status(&plain), "200", "{plain:?}");
    assert_eq!(listed(&server).len(), most, "the others have not begun");
    // an answer that one of them may wait for
    let within = deeper(&server, "1", ASKS);
    wait_for(&server, most + 1, "an endpoint");
    assert!(budget.free() > rest / 2, "{} of {rest} bytes are free", budget.free());
    gate.open();
    for stream in asking.into_iter().chain([within]) {
        let answer = answer_of(stream);
        assert!(status(&answer) == "200" && answer.1.contains("of the endpoint"), "{answer:?}");
    }
}

/// Of servers that ask each other in a circle, one refuses.
#[test]
fn requests_within_many_others_are_refused() {
    let (server, gate) = running();
    gate.open();
    for (depth, expected) in
        [("0", "200"), ("8", "200"), ("9", "508"), ("99999999999999999999", "508"), ("x", "400")]
    {
        let answer = answer_of(deeper(&server, depth, ASKS));
        assert_eq!(status(&answer), expected, "{depth}: {answer:?}");
    }
    assert_eq!(gate.asked.lock().unwrap().as_slice(), [0, 8], "endpoints are told the depth of the request");
}

/// However much the update has before the LOAD: it has not the turn of the writers yet.
#[test]
fn a_load_of_a_long_update_lends_its_slot() {
    let (server, gate) = running();
    let mut update = "INSERT DATA {".to_owned();
    for i in 0..40_000 {
        writeln!(update, "<urn:long{i}> <urn:p> {i} .").unwrap();
    }
    update.push_str("} ; LOAD <http://e/document>");
    let long = update_sent(&server, &update);
    wait_for(&server, 1, "an endpoint");
    assert_eq!(status(&server.update("INSERT DATA { <urn:a> <urn:p> 1 }")), "200");
    gate.open();
    assert_eq!(status(&answer_of(long)), "200");
}
