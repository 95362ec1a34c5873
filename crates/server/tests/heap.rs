//! The heap that a server really uses while many clients ask for more than there is memory: it
//! stays within what the budget leaves beside the pool, and a little for each connection.
//!
//! The budget counts what its users say they hold. This test counts what was allocated, so that
//! a part that says nothing is seen.

mod support;

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_server::{ServerConfig, ServerLimits};
use support::{Running, config};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MEMORY: usize = 64 << 20;
const CLIENTS: usize = 48;
/// The clients of this test and the server's connections, each with its buffers and its answer.
const EACH: usize = 128 << 10;
/// Memory of the server besides: its tables of meters, counts, caches of plans.
const BESIDE: usize = 5 << 20;

/// Questions that gather, sort, group or build much, by their kind.
const QUESTIONS: [(&str, &str); 10] = [
    ("count by predicate", "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n)"),
    ("count by object", "SELECT ?o (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY ?o ORDER BY DESC(?n) LIMIT 10"),
    ("sort", "SELECT ?s ?o { ?s <urn:label> ?o } ORDER BY ?o LIMIT 100000"),
    ("sort, limited", "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY DESC(?o) LIMIT 1000"),
    ("construct", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 300000"),
    ("distinct", "SELECT DISTINCT ?o { ?s <urn:comment> ?o } LIMIT 100000"),
    ("group_concat", "SELECT ?s (GROUP_CONCAT(?o) AS ?c) { ?s ?p ?o } GROUP BY ?s LIMIT 1000"),
    ("join", "SELECT ?a ?b { ?a a ?t . ?b a ?t } LIMIT 200000"),
    (
        "sort of what is computed",
        "SELECT (SHA256(CONCAT(STR(?o), STR(?s))) AS ?h) { ?s ?p ?o } ORDER BY ?h LIMIT 50000",
    ),
    ("describe", "DESCRIBE ?s { ?s a ?t } LIMIT 20000"),
];

/// Things with a type, a label, a number and a comment of some hundred bytes.
fn database(dir: &std::path::Path) -> std::path::PathBuf {
    let mut text = String::new();
    for i in 0..30_000 {
        let words = ["snow", "melts", "slowly", "in", "the", "upper", "valley"];
        let comment: Vec<&str> = (0..40).map(|w| words[(i * 31 + w * w) % words.len()]).collect();
        let comment = comment.join(" ");
        text.push_str(&format!(
            "<urn:thing/{i}> a <urn:type/{}>; <urn:label> \"a label of thing {i} that is of some length\"; \
             <urn:number> {}; <urn:comment> \"{i} {comment}\" .\n",
            i % 50,
            i * 7 % 1000
        ));
    }
    let file = dir.join("data.ttl");
    std::fs::write(&file, text).expect("there is room for a file");
    let db = dir.join("db");
    let options = OpenOptions { memory_bytes: 128 << 20, direct: false, ..OpenOptions::default() };
    let load_options = LoadOptions { store: options, ..LoadOptions::default() };
    let source = Source::from_arg(file.to_str().expect("a plain path"));
    load(&db, vec![source], &load_options, &(), &AtomicBool::new(false)).expect("the text is right");
    db
}

/// A request of a client, and how long it waits before it reads the answer.
struct Request {
    bytes: Vec<u8>,
    pause: Duration,
}

impl Request {
    fn query(text: &str) -> Self {
        let text: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: close";
        Self { bytes: format!("GET /sparql?query={text} {head}\r\n\r\n").into_bytes(), pause: Duration::ZERO }
    }

    fn post(path: &str, media_type: &str, body: &str) -> Self {
        let head = format!("Content-Type: {media_type}\r\nContent-Length: {}", body.len());
        let request = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}");
        Self { bytes: format!("{request}\r\n\r\n{body}").into_bytes(), pause: Duration::ZERO }
    }

    /// Sends it and throws the answer away: this process must not hold it. Whether one came.
    fn run(&self, server: &Running) -> bool {
        let mut stream = server.connect();
        // a refusal may come before all is sent
        let _ = stream.write_all(&self.bytes);
        std::thread::sleep(self.pause);
        std::io::copy(&mut stream, &mut std::io::sink()).is_ok_and(|bytes| bytes > 0)
    }
}

/// All kinds of requests, by name.
fn kinds() -> Vec<(&'static str, Vec<Request>)> {
    let questions = || QUESTIONS.iter().map(|(_, text)| Request::query(text));
    let slow = |request| Request { pause: Duration::from_millis(700), ..request };
    let mut kinds: Vec<_> =
        QUESTIONS.iter().map(|(name, text)| (*name, vec![Request::query(text)])).collect();
    kinds.push(("all of them", questions().collect()));
    kinds.push(("all of them, by clients that do not read for a while", questions().map(slow).collect()));
    let triples: String =
        (0..3000).map(|i| format!("<urn:new/{i}> <urn:p> \"{}\" .\n", "x".repeat(i % 200))).collect();
    let moved = "DELETE { ?s <urn:p> ?o } INSERT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }";
    let changes = [
        Request::post("/graphs?default", "application/n-triples", &triples),
        Request::post("/update", "application/sparql-update", &format!("INSERT DATA {{ {triples} }}")),
        Request::post("/update", "application/sparql-update", moved),
    ];
    kinds.push(("changes", changes.into()));
    kinds
}

/// Most bytes of heap beyond those at the beginning while clients send requests for a time, and
/// how many answers came.
fn most_heap(server: &Running, requests: &[Request], time: Duration) -> (usize, usize) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let answers = AtomicUsize::new(0);
    let end = Instant::now() + time;
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let answers = &answers;
            scope.spawn(move || {
                let mut n = client;
                while Instant::now() < end {
                    let is_answered = requests[n % requests.len()].run(server);
                    answers.fetch_add(usize::from(is_answered), Ordering::Relaxed);
                    n = (n * 31 + 7) % 1009;
                }
            });
        }
    });
    server.wait_until_idle();
    (HEAP.peak_usage().saturating_sub(before), answers.into_inner())
}

#[test]
fn the_heap_is_what_the_budget_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path());
    let options = OpenOptions { memory_bytes: MEMORY as u64, direct: false, ..OpenOptions::default() };
    let db = GraphDatabase::open(&db, &options).expect("it was just made");
    let pool = db.database().memory().used() as usize;
    let limits = ServerLimits { body_bytes: 1 << 20, ..ServerLimits::default() };
    let server = Running::with_database(db, dir, ServerConfig { limits, ..config() });
    let most = MEMORY - pool + CLIENTS * EACH + BESIDE;
    println!(
        "{} MiB beside the pool of {} MiB; most allowed: {}",
        (MEMORY - pool) >> 20,
        pool >> 20,
        most >> 20
    );
    let mut beyond = Vec::new();
    for (name, requests) in kinds() {
        let (heap, answers) = most_heap(&server, &requests, Duration::from_secs(2));
        println!("{name}: {:.1} MiB, {answers} answers", heap as f64 / f64::from(1 << 20));
        assert!(answers > 0, "{name}");
        if heap > most {
            beyond.push(format!("{name}: {} MiB", heap >> 20));
        }
    }
    assert!(beyond.is_empty(), "more than {} MiB: {beyond:?}", most >> 20);
}
