//! Several databases in one server.

mod support;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use snowmelt_database::{Database, OpenOptions};
use snowmelt_graph::GraphDatabase;
use snowmelt_server::tokens::{Keeper, Rights, Token, TokenFile};
use snowmelt_server::{Folder, Opener, ServerConfig};
use snowmelt_sparql::QueryEngine;
use support::{Running, config};

const MIB: u64 = 1 << 20;

fn open(path: &Path, memory_bytes: u64, make: bool) -> Result<Arc<QueryEngine>, String> {
    let options = OpenOptions { memory_bytes, direct: false, extent_pages: 8, ..OpenOptions::default() };
    let database = match make {
        true => GraphDatabase::create(path, &[], &options),
        false => GraphDatabase::open(path, &options),
    };
    Ok(Arc::new(QueryEngine::new(database.map_err(|error| error.to_string())?)))
}

/// The memory is enough for two of the least.
fn folder(dir: &Path, idle: Duration) -> Folder {
    Folder {
        dir: dir.join("data"),
        memory: 64 * MIB,
        floor: 32 * MIB,
        idle,
        backups: Some(dir.join("backups")),
        open: Arc::new(open),
    }
}

fn start(idle: Duration, config: ServerConfig) -> Running {
    let dir = tempfile::tempdir().unwrap();
    for sub in ["data", "backups"] {
        std::fs::create_dir(dir.path().join(sub)).unwrap();
    }
    let folder = folder(dir.path(), idle);
    Running::of_folder(folder, dir, config)
}

fn status(answer: &(String, String)) -> &str {
    &answer.0[9..12]
}

fn send(server: &Running, method: &str, path: &str) -> (String, String) {
    server.send(method, path, "", "")
}

fn insert(server: &Running, name: &str, value: u32) {
    let text = format!("INSERT DATA {{ <urn:{name}> <urn:p> {value} }}");
    let headers = "Content-Type: application/sparql-update\r\n";
    let done = server.send("POST", &format!("/{name}/update"), headers, &text);
    assert_eq!(status(&done), "200", "{done:?}");
}

fn subjects(server: &Running, name: &str) -> String {
    let query = "SELECT%20%3Fs%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D";
    let (head, body) =
        server.send("GET", &format!("/{name}/query?query={query}"), "Accept: text/csv\r\n", "");
    assert!(head.starts_with("HTTP/1.1 200"), "{name}: {head}{body}");
    body.replace("\r\n", " ")
}

fn list(server: &Running) -> Vec<(String, bool)> {
    let (_, body) = send(server, "GET", "/datasets");
    let list: Value = serde_json::from_str(&body).unwrap();
    let line = |one: &Value| (one["name"].as_str().unwrap().to_owned(), one["open"].as_bool().unwrap());
    list["datasets"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn datasets_are_made_served_renamed_copied_and_dropped() {
    let server = start(Duration::from_secs(300), config());
    assert_eq!(list(&server), []);
    assert_eq!(status(&send(&server, "GET", "/sparql?query=ASK%7B%7D")), "404", "which one?");
    for name in ["birds", "trees"] {
        assert_eq!(status(&send(&server, "PUT", &format!("/datasets/{name}"))), "201");
        insert(&server, name, 1);
    }
    assert_eq!(status(&send(&server, "PUT", "/datasets/birds")), "409");
    for wrong in ["..", "sparql", "a%2Fb", ".x", ""] {
        let refused = send(&server, "PUT", &format!("/datasets/{wrong}"));
        assert_eq!(status(&refused), "400", "{wrong}: {refused:?}");
    }
    assert_eq!(
        (subjects(&server, "birds"), subjects(&server, "trees")),
        ("s urn:birds ".into(), "s urn:trees ".into())
    );
    assert_eq!(status(&send(&server, "GET", "/fish/sparql?query=ASK%7B%7D")), "404");
    // A graph's address is below its dataset, and readable.
    let posted = server.send("POST", "/birds/graphs", "Content-Type: text/turtle\r\n", "<urn:x> <urn:p> 1 .");
    let location = posted.0.lines().find_map(|line| line.strip_prefix("location: http://")).unwrap();
    let location = &location[location.find('/').unwrap()..];
    assert!(location.starts_with("/birds/graphs/"), "{location}");
    assert!(send(&server, "GET", location).1.contains("urn:x"));
    // Meters of each, and of all with the name.
    assert!(send(&server, "GET", "/trees/stats").1.contains("\"quads\""));
    let (_, metrics) = send(&server, "GET", "/metrics");
    assert!(
        metrics.contains("{dataset=\"birds\"}") && metrics.contains("dataset=\"trees\",tree=\"psog\""),
        "{metrics}"
    );
    let types = |line: &&str| line.starts_with("# TYPE snowmelt_pool_frames ");
    assert_eq!(metrics.lines().filter(types).count(), 1, "a metric has one type");
    // A copy is a database of its own.
    let copied = send(&server, "POST", "/datasets/birds?backup=birds-1");
    assert_eq!(status(&copied), "200", "{copied:?}");
    assert!(Database::is_at(&server.dir().join("backups/birds-1")));
    for part in ["\"0001-whole\"", "null"] {
        let added = send(&server, "POST", "/datasets/birds?backup=set&incremental");
        assert!(status(&added) == "200" && added.1.contains(&format!("\"part\": {part}")), "{added:?}");
    }
    for wrong in ["..%2Fx", "%2Ftmp%2Fx", ".."] {
        assert_eq!(
            status(&send(&server, "POST", &format!("/datasets/birds?backup={wrong}"))),
            "400",
            "{wrong}"
        );
    }
    let compacted = send(&server, "POST", "/datasets/birds?compact");
    assert!(status(&compacted) == "200" && compacted.1.contains("bytes_after"), "{compacted:?}");
    assert_eq!(status(&send(&server, "POST", "/datasets/birds")), "400");
    assert_eq!(status(&send(&server, "POST", "/datasets/birds?rename=trees")), "409");
    assert_eq!(status(&send(&server, "POST", "/datasets/birds?rename=fowl")), "204");
    assert_eq!(status(&send(&server, "GET", "/birds/sparql?query=ASK%7B%7D")), "404");
    assert_eq!(subjects(&server, "fowl"), "s urn:birds ");
    assert_eq!(status(&send(&server, "DELETE", "/datasets/fowl")), "204");
    assert_eq!(list(&server), [("trees".into(), true)]);
    let left: Vec<_> =
        std::fs::read_dir(server.dir().join("data")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["trees"]);
}

#[test]
fn idle_ones_are_closed_for_others_and_opened_again() {
    let server = start(Duration::from_secs(300), config());
    for (at, name) in ["a", "b", "c", "d"].iter().enumerate() {
        assert_eq!(status(&send(&server, "PUT", &format!("/datasets/{name}"))), "201");
        insert(&server, name, at as u32);
    }
    let open = list(&server).into_iter().filter(|(_, open)| *open).count();
    assert!((1..=2).contains(&open), "{open}: there is memory for two");
    for _ in 0..3 {
        for name in ["a", "b", "c", "d"] {
            assert_eq!(subjects(&server, name), format!("s urn:{name} "));
        }
    }
}

#[test]
fn a_dataset_in_use_is_not_closed() {
    let server = start(Duration::from_millis(100), config());
    assert_eq!(status(&send(&server, "PUT", "/datasets/busy")), "201");
    let rows: String = (0..300).map(|i| format!("<urn:{i}> <urn:p> {i} . ")).collect();
    assert_eq!(
        status(&server.send("PUT", "/busy/graphs?default", "Content-Type: text/turtle\r\n", &rows)),
        "204"
    );
    // An answer of 27 M rows that its client does not read.
    let all = "SELECT%20*%20%7B%20%3Fa%20%3Fp%20%3Fb%20.%20%3Fc%20%3Fq%20%3Fd%20.%20%3Fe%20%3Fr%20%3Ff%20%7D";
    let mut stream = server.connect();
    std::io::Write::write_all(
        &mut stream,
        format!("GET /busy/sparql?query={all} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes(),
    )
    .unwrap();
    std::io::Read::read(&mut stream, &mut [0; 1024]).unwrap();
    for (method, path) in [("DELETE", "/datasets/busy"), ("POST", "/datasets/busy?rename=x")] {
        assert_eq!(status(&send(&server, method, path)), "409", "{method}");
    }
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(list(&server), [("busy".into(), true)]);
    drop(stream);
    let until = Instant::now() + Duration::from_secs(20);
    while list(&server) != [("busy".into(), false)] {
        assert!(Instant::now() < until, "it is closed when it is idle");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(status(&send(&server, "DELETE", "/datasets/busy")), "204");
}

#[test]
fn a_token_is_for_its_datasets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    let add = |token| TokenFile::change(&path, |file| file.add(token));
    let datasets = Some(vec!["a".to_owned()]);
    let some = add(Token { datasets, ..Token::new("some", Rights::Admin) }).unwrap();
    let all = add(Token::new("all", Rights::Admin)).unwrap();
    let keeper = Arc::new(Keeper::of_file(&path, false).unwrap());
    let server = start(Duration::from_secs(300), ServerConfig { keeper, ..config() });
    let by = |secret: &str, method: &str, path: &str| {
        server.send(method, path, &format!("Authorization: Bearer {secret}\r\n"), "")
    };
    for name in ["a", "b"] {
        assert_eq!(status(&by(&all, "PUT", &format!("/datasets/{name}"))), "201");
    }
    for (method, path, expected) in [
        ("GET", "/a/sparql?query=ASK%7B%7D", "200"),
        ("GET", "/a/stats", "200"),
        ("GET", "/b/sparql?query=ASK%7B%7D", "403"),
        ("GET", "/b/stats", "403"),
        ("GET", "/none/sparql?query=ASK%7B%7D", "403"),
        ("DELETE", "/datasets/b", "403"),
        ("PUT", "/datasets/c", "403"),
        ("POST", "/datasets/a?rename=c", "403"),
        ("GET", "/metrics", "403"),
        ("GET", "/requests", "403"),
        ("GET", "/stats", "403"),
    ] {
        assert_eq!(status(&by(&some, method, path)), expected, "{method} {path}");
        let without = send(&server, method, path);
        assert_eq!(status(&without), "401", "{method} {path}: {without:?}");
    }
    let (_, body) = by(&some, "GET", "/datasets");
    assert!(body.contains("\"a\"") && !body.contains("\"b\""), "{body}");
}

/// A client that does not wait until a database is open leaves one that opens, and no error to the
/// next; one that leaves while it renames leaves no name behind.
#[test]
fn clients_that_leave_do_not_stop_what_opens_or_is_renamed() {
    let dir = tempfile::tempdir().unwrap();
    for sub in ["data", "backups"] {
        std::fs::create_dir(dir.path().join(sub)).unwrap();
    }
    let opened = Arc::new(AtomicUsize::new(0));
    let slowly: Opener = {
        let opened = Arc::clone(&opened);
        Arc::new(move |path: &Path, memory, make| {
            opened.fetch_add(1, Ordering::SeqCst);
            let engine = open(path, memory, make);
            std::thread::sleep(Duration::from_millis(300));
            engine
        })
    };
    let folder = Folder { open: slowly, ..folder(dir.path(), Duration::from_millis(1)) };
    let server = Running::of_folder(folder, dir, config());
    assert_eq!(status(&server.send("PUT", "/datasets/wiki", "", "")), "201");
    // It is idle, and closed.
    let begun = Instant::now();
    while server.ask("GET /datasets HTTP/1.1\r\nHost: localhost\r\n\r\n").1.contains("\"open\": true") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it stays open");
        std::thread::sleep(Duration::from_millis(50));
    }
    opened.store(0, Ordering::SeqCst);
    let ask = "GET /wiki/sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for _ in 0..3 {
        let mut stream = server.connect();
        stream.write_all(ask.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    let answer = server.ask(ask);
    assert_eq!(status(&answer), "200", "{answer:?}");
    assert_eq!(opened.load(Ordering::SeqCst), 1, "all waited for one opening");
    let mut stream = server.connect();
    stream
        .write_all(
            b"POST /datasets/wiki?rename=other HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        )
        .unwrap();
    drop(stream);
    let is_settled = || {
        let [old, new] = ["wiki", "other"].map(|name| {
            server.ask(&format!("GET /{name}/sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        });
        (status(&old).to_owned(), status(&new).to_owned())
    };
    let begun = Instant::now();
    loop {
        let (old, new) = is_settled();
        // Renamed, or left as it was: one of the two.
        if (&*old, &*new) == ("404", "200") || (&*old, &*new) == ("200", "404") {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{old} and {new}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Clients learn no paths of the server.
#[test]
fn a_dataset_that_cannot_be_had_is_told_without_a_path() {
    let server = start(Duration::from_secs(60), config());
    let path = server.dir().join("data").join("busy");
    let _elsewhere = open(&path, 32 * MIB, true).unwrap();
    let answer = server.ask("GET /busy/sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status(&answer), "500", "{answer:?}");
    assert!(!answer.1.contains('/'), "{answer:?}");
}
