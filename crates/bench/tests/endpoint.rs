//! The driver against an endpoint of the test's own: counts, failures, and an open loop.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use snowmelt_bench::content;
use snowmelt_bench::http::{Endpoint, Protocol};
use snowmelt_bench::measure::{Measured, Measurement, Streams};
use snowmelt_bench::summary::{Setup, Summary};
use snowmelt_bsbm::{DEFAULT_SEED, UseCase};
use snowmelt_sparql::PlanCosts;
use snowmelt_workload::bench::ClientLoad;
use snowmelt_workload::drive::Rules;

const SOLUTIONS: &str = "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"a\"/></head>\
     <results><result><binding name=\"a\"><literal>x</literal></binding></result><result/></results></sparql>";
const TRIPLES: &str = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:p=\"urn:p#\">\
     <rdf:Description rdf:about=\"urn:s\"><p:a>1</p:a></rdf:Description></rdf:RDF>";

/// Answers a request: its head line, and the number of requests before.
type Answer = dyn Fn(&str, usize) -> String + Send + Sync;

/// An endpoint on loopback; its threads end with their connections.
struct Stub {
    url: String,
    connections: Arc<AtomicUsize>,
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn right(line: &str) -> String {
    ok(if line.contains("DESCRIBE") || line.contains("CONSTRUCT") { TRIPLES } else { SOLUTIONS })
}

impl Stub {
    /// `stays`: connections take more than one request.
    fn start(stays: bool, answer: impl Fn(&str, usize) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sparql", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let (answer, requests): (Arc<Answer>, _) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        let counter = connections.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                counter.fetch_add(1, Ordering::Relaxed);
                let (answer, requests) = (answer.clone(), requests.clone());
                thread::spawn(move || serve(stream.unwrap(), stays, &*answer, &requests));
            }
        });
        Self { url, connections }
    }
}

fn serve(stream: TcpStream, stays: bool, answer: &Answer, requests: &AtomicUsize) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim_end().is_empty() {
                break;
            }
            lines.push(line);
        }
        let text = answer(&lines[0], requests.fetch_add(1, Ordering::Relaxed));
        if stream.get_mut().write_all(text.as_bytes()).is_err() || !stays {
            return;
        }
    }
}

fn load(clients: usize) -> ClientLoad {
    let (use_case, costs) = (UseCase::Explore, PlanCosts::default());
    ClientLoad { products: 100, seed: DEFAULT_SEED, use_case, clients, threads: 0, costs }
}

fn rules(rate: Option<f64>, keeps_going: bool) -> Rules {
    Rules { rate, reading: content::terms, keeps_going }
}

fn drive(url: &str, clients: usize, rules: Rules, protocol: Protocol) -> Result<Measured> {
    let target = Endpoint::new(url, protocol)?;
    let stop = AtomicBool::new(false);
    let measurement =
        Measurement { target: &target, clients, rules, warmup: 1, mixes: 4, kept: None, stop: &stop };
    measurement.run(Streams::new(&load(clients), None)?)
}

fn summary(measured: &Measured, clients: usize, rate: Option<f64>) -> Summary {
    let setup = Setup {
        target: "stub".into(),
        use_case: UseCase::Explore.to_string(),
        products: 100,
        seed: DEFAULT_SEED,
        clients,
        warmup: 1,
        mixes: 4,
        repeats: 1,
        rate,
        timeout_ms: None,
        connection_per_query: false,
        in_process: false,
    };
    Summary::new(setup, &load(clients), std::slice::from_ref(measured))
}

#[test]
fn counts_are_right_and_xml_says_what_json_says() {
    let stub = Stub::start(true, |line, _| right(line));
    for clients in [1, 3] {
        let measured = drive(&stub.url, clients, rules(None, false), Protocol::default()).unwrap();
        let summary = summary(&measured, clients, None);
        assert_eq!(
            (summary.executions(), summary.mix.mixes, summary.failures.example.as_ref()),
            (100, 4, None)
        );
        let json: serde_json::Value = serde_json::to_value(&summary).unwrap();
        let xml = summary.xml();
        assert_eq!(element(&xml, "querymixruns"), json["mix"]["mixes"].to_string());
        assert_eq!(element(&xml, "qmph"), format!("{:.2}", json["qmph"].as_f64().unwrap()));
        assert_eq!(xml.contains("<nrthreads>3</nrthreads>"), clients == 3);
        for query in json["queries"].as_array().unwrap() {
            let number = query["query"].as_u64().unwrap();
            let of_query = xml.split(&format!("<query nr=\"{number}\">")).nth(1).unwrap();
            assert_eq!(element(of_query, "executecount"), query["count"].to_string());
            assert_eq!(element(of_query, "aqet"), format!("{:.6}", query["aqet"].as_f64().unwrap()));
            let is_graph = [9, 12].contains(&number);
            assert_eq!(query["rows"], if is_graph { 1.0 } else { 2.0 });
            let results = if is_graph { TRIPLES.len() } else { 2 };
            assert_eq!(element(of_query, "maxresults"), results.to_string());
        }
        assert_eq!(element(xml.split("<query nr=\"6\">").nth(1).unwrap(), "executecount"), "0");
        assert!(summary.page(&measured.run).html().contains("Queries per second"));
    }
}

fn element<'a>(xml: &'a str, name: &str) -> &'a str {
    xml.split(&format!("<{name}>")).nth(1).unwrap().split('<').next().unwrap()
}

#[test]
fn connections_are_kept_or_not() {
    let stub = Stub::start(true, |line, _| right(line));
    drive(&stub.url, 1, rules(None, false), Protocol::default()).unwrap();
    assert_eq!(stub.connections.load(Ordering::Relaxed), 2, "one for the warm-up, one for the run");
    let each = Protocol { connection_per_query: true, ..Protocol::default() };
    let measured = drive(&stub.url, 1, rules(None, false), each).unwrap();
    assert_eq!(stub.connections.load(Ordering::Relaxed), 2 + 125);
    assert_eq!(summary(&measured, 1, None).driver.connections, 100);
}

#[test]
fn a_connection_that_its_server_closes_unsaid_is_made_again() {
    let stub = Stub::start(false, |line, _| right(line));
    let measured = drive(&stub.url, 1, rules(None, false), Protocol::default()).unwrap();
    assert_eq!(summary(&measured, 1, None).failures.broken, 0);
}

#[test]
fn late_answers_are_timeouts_of_their_queries() {
    let stub = Stub::start(true, |line, _| {
        if line.contains("DESCRIBE") {
            thread::sleep(Duration::from_millis(400));
        }
        right(line)
    });
    let protocol = Protocol { timeout: Some(Duration::from_millis(150)), ..Protocol::default() };
    let measured = drive(&stub.url, 2, rules(None, false), protocol).unwrap();
    let summary = summary(&measured, 2, None);
    assert_eq!((summary.failures.timeouts, summary.failures.broken), (16, 0));
    let late = summary.queries.iter().find(|query| query.query == 9).unwrap();
    assert!(late.timeouts == 16 && late.min >= 0.15 && late.max_rows == 0, "{late:?}");
    assert!(summary.xml().contains("<timeoutcount>16</timeoutcount>"));
    assert!(summary.doubts()[0].contains("16 of 100"), "{:?}", summary.doubts());
}

#[test]
fn broken_answers_end_a_run_or_are_counted() {
    type Broken = fn() -> String;
    let answers: [(&str, Broken); 5] = [
        ("status 500", || "HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nbusy".into()),
        ("not HTTP", || "SSH-2.0\r\n".into()),
        ("malformed answer", || ok("<html/>")),
        ("malformed answer", || ok(&SOLUTIONS[..SOLUTIONS.len() - 12])),
        ("ends after 9 of 99", || "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n<results>".into()),
    ];
    for (says, broken) in answers {
        // Each tenth request; the connection ends after each, so that cut answers are seen.
        let answer = move |line: &str, n| if n % 10 == 9 { broken() } else { right(line) };
        let stub = Stub::start(false, answer);
        let each = || Protocol { connection_per_query: true, ..Protocol::default() };
        let error = drive(&stub.url, 1, rules(None, false), each()).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        let stub = Stub::start(false, answer);
        let measured = drive(&stub.url, 1, rules(None, true), each()).unwrap();
        let failures = summary(&measured, 1, None).failures;
        assert!((10..=11).contains(&failures.broken), "{says}: {failures:?}");
        assert!(failures.example.unwrap().contains(says));
    }
}

#[test]
fn an_endpoint_that_is_down_ends_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = drive(&url, 1, rules(None, true), Protocol::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot connect to 127.0.0.1:"), "{error}");
    for url in ["https://127.0.0.1/", "ftp://x", "http://no.such.host.invalid/"] {
        assert!(Endpoint::new(url, Protocol::default()).is_err(), "{url}");
    }
}

#[test]
fn the_times_of_an_open_loop_count_from_when_queries_were_due() {
    let stub = Stub::start(true, |line, _| {
        thread::sleep(Duration::from_millis(2));
        right(line)
    });
    let measured = drive(&stub.url, 1, rules(Some(2000.0), false), Protocol::default()).unwrap();
    let records = &measured.run.records;
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record.due_ns, measured.run.from_ns + i as u64 * 500_000);
        assert!(record.seconds() >= (record.end_ns - record.start_ns) as f64 / 1e9);
    }
    // A query that waits for the one before it is late by all of the delay so far.
    for pair in records.windows(2) {
        assert!(pair[1].start_ns >= pair[0].end_ns);
    }
    let summary = summary(&measured, 1, Some(2000.0));
    let late = summary.driver.lateness.unwrap();
    let most = records.iter().map(|record| record.late_ns()).max().unwrap();
    assert!(late.count == 100 && late.max_ns.abs_diff(most) <= most / 500, "{late:?}, {most}");
    assert!(most >= 99 * 1_500_000, "each query takes 2 ms, and one is due each 0.5 ms: {most}");
    assert!(summary.doubts().iter().any(|doubt| doubt.contains("sent late")), "{:?}", summary.doubts());
}
