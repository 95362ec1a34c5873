//! Changes from their first byte to their answer: listed with their phase, ended in each of them,
//! and in no other request's way before it is their turn.

mod support;

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use snowmelt_graph::load::Contexts;
use snowmelt_server::logs::{Log, Logs};
use snowmelt_server::{ServerConfig, ServerLimits};
use snowmelt_sparql::LoadPermission;
use support::{Running, config, read_answer};

fn status(answer: &(String, String)) -> &str {
    &answer.0[9..12]
}

/// The entries of `/requests`.
fn listed(server: &Running) -> Vec<serde_json::Value> {
    let (_, body) = server.ask("GET /requests HTTP/1.1\r\nHost: localhost\r\n\r\n");
    serde_json::from_str::<serde_json::Value>(&body).unwrap()["requests"].as_array().unwrap().clone()
}

/// The number of the change that is in a phase, once there is one.
fn in_phase(server: &Running, phase: &str) -> u64 {
    let begun = Instant::now();
    loop {
        let found = listed(server).into_iter().find(|entry| entry["phase"] == phase);
        if let Some(entry) = found {
            return entry["request"].as_u64().unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing is {phase}: {:?}", listed(server));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn end(server: &Running, number: u64) {
    let request = format!("DELETE /requests/{number} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(server.ask(&request).0.starts_with("HTTP/1.1 202"));
}

fn answer_of(stream: TcpStream) -> (String, String) {
    read_answer(&mut BufReader::new(stream), false)
}

/// Sends a request without waiting for its answer; of its body only a part.
fn send_part(server: &Running, head: &str, len: usize, part: &str) -> TcpStream {
    let mut stream = server.connect();
    write!(stream, "{head} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n").unwrap();
    let kind = if head.contains("/update") { "application/sparql-update" } else { "text/turtle" };
    write!(stream, "Content-Type: {kind}\r\n\r\n{part}").unwrap();
    stream
}

/// A pipe with a name, in the folder of the server, open at both ends.
fn pipe(server_dir: &std::path::Path) -> (std::path::PathBuf, std::fs::File) {
    let path = server_dir.join("slow.nt");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    (path, file)
}

const BODIES: [(&str, &str); 2] = [
    ("PUT /graphs?graph=urn:g", "<urn:a> <urn:p> 1 ."),
    ("POST /update", "INSERT DATA { <urn:a> <urn:p> 1 }"),
];

#[test]
fn what_comes_in_is_listed_and_can_be_ended() {
    let server = Running::start("", config());
    for (head, body) in BODIES {
        let stream = send_part(&server, head, body.len() + 100, body);
        let number = in_phase(&server, "reading");
        assert_eq!(status(&server.update("INSERT DATA { <urn:small> <urn:p> 1 }")), "200", "in nobody's way");
        end(&server, number);
        let answer = answer_of(stream);
        assert_eq!(status(&answer), "503", "{answer:?}");
        server.wait_until_idle();
    }
    assert!(
        server.get("ASK { { <urn:a> ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", "*/*").1.contains("false")
    );
}

#[test]
fn what_waits_for_its_turn_is_listed_and_can_be_ended() {
    let server = Running::start("", config());
    let turn = server.engine().graph().begin().unwrap();
    for (head, body) in BODIES {
        let stream = send_part(&server, head, body.len(), body);
        let number = in_phase(&server, "waiting for its turn");
        end(&server, number);
        assert_eq!(status(&answer_of(stream)), "503");
        server.wait_until_idle();
    }
    drop(turn);
    assert_eq!(status(&server.update("INSERT DATA { <urn:small> <urn:p> 1 }")), "200");
    assert!(server.get("ASK { <urn:a> ?p ?o }", "*/*").1.contains("false"));
}

#[test]
fn what_waits_for_its_turn_ends_at_the_time_limit() {
    let limits = ServerLimits { timeout: Some(Duration::from_millis(200)), ..config().limits };
    let server = Running::start("", ServerConfig { limits, ..config() });
    let _turn = server.engine().graph().begin().unwrap();
    for (head, body) in BODIES {
        let answer = answer_of(send_part(&server, head, body.len(), body));
        assert_eq!(status(&answer), "503", "{answer:?}");
        assert!(answer.1.contains("--timeout"), "{answer:?}");
    }
}

#[test]
fn a_document_that_is_loaded_slowly_delays_no_other_change() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut writer) = pipe(dir.path());
    let allow_load = vec![LoadPermission::new(dir.path().to_str().unwrap()).unwrap()];
    let server = Running::start("", ServerConfig { allow_load, ..config() });
    let load = format!(
        "INSERT DATA {{ <urn:before> <urn:p> 1 }} ; LOAD <file://{}> ; INSERT DATA {{ <urn:after> <urn:p> 1 }}",
        path.display()
    );
    for ends in [false, true] {
        let stream = send_part(&server, "POST /update", load.len(), &load);
        let number = in_phase(&server, "parsing");
        writer.write_all(b"<urn:loaded> <urn:p> \"1\" .\n").unwrap();
        for small in 0..3 {
            let update = format!("INSERT DATA {{ <urn:small{small}> <urn:p> {ends} }}");
            assert_eq!(status(&server.update(&update)), "200", "the load has the turn while it is parsed");
        }
        if !ends {
            end(&server, number);
            assert_eq!(status(&answer_of(stream)), "503");
            server.wait_until_idle();
            assert!(server.get("ASK { <urn:before> ?p ?o }", "*/*").1.contains("false"));
            continue;
        }
        // The end of the text is that of its last writer.
        writer = std::fs::File::open("/dev/null").unwrap();
        let answer = answer_of(stream);
        assert_eq!(status(&answer), "200", "{answer:?}");
        let (_, csv) = server.get("SELECT ?s { ?s <urn:p> 1 }", "text/csv");
        assert!(["urn:before", "urn:after"].iter().all(|name| csv.contains(name)), "{csv}");
    }
}

#[test]
fn the_end_of_the_server_ends_changes_in_all_phases() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _writer) = pipe(dir.path());
    let allow_load = vec![LoadPermission::new(dir.path().to_str().unwrap()).unwrap()];
    let deadline = Duration::from_millis(300);
    let server = Running::start("", ServerConfig { allow_load, shutdown_deadline: deadline, ..config() });
    let (head, body) = BODIES[0];
    let mut streams = vec![send_part(&server, head, body.len() + 100, body)];
    in_phase(&server, "reading");
    let load = format!("LOAD <file://{}>", path.display());
    streams.push(send_part(&server, "POST /update", load.len(), &load));
    in_phase(&server, "parsing");
    let turn = server.engine().graph().begin().unwrap();
    streams.push(send_part(&server, head, body.len(), body));
    in_phase(&server, "waiting for its turn");
    // It is dropped, and with it all threads have ended; only a hang would keep it.
    let engine = Arc::clone(server.engine());
    drop(server);
    drop(turn);
    for mut stream in streams {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert_eq!(engine.graph().state().unwrap().quads(), 0);
}

/// Some kilobytes that turn into gigabytes, in each place that decompresses.
#[test]
fn what_is_decompressed_obeys_the_time_limit() {
    let limits = ServerLimits { timeout: Some(Duration::from_millis(300)), ..config().limits };
    let server = Running::start("", ServerConfig { limits, ..config() });
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let blanks = vec![b' '; 1 << 20];
    (0..512).for_each(|_| encoder.write_all(&blanks).unwrap());
    // Many members: half a gigabyte each.
    let bomb = encoder.finish().unwrap().repeat(24);
    for coding in ["Content-Encoding: gzip\r\n", ""] {
        let mut stream = server.connect();
        let len = bomb.len();
        write!(
            stream,
            "PUT /graphs?graph=urn:g HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n{coding}Content-Length: {len}\r\n\r\n"
        )
        .unwrap();
        let _ = stream.write_all(&bomb);
        let answer = answer_of(stream);
        assert_eq!(status(&answer), "503", "{coding:?}: {answer:?}");
        assert!(answer.1.contains("time limit"), "{answer:?}");
        server.wait_until_idle();
    }
}

/// The texts of updates that wait count in the budget, however many wait.
#[test]
fn texts_that_wait_for_their_turn_are_charged() {
    const BYTES: usize = 3 << 20;
    let limits = ServerLimits { body_bytes: 16 << 20, changes: 1, ..config().limits };
    let server = Running::start("", ServerConfig { limits, ..config() });
    let memory = server.engine().graph().database().memory().clone();
    let turn = server.engine().graph().begin().unwrap();
    // It has the only slot, and waits for the turn.
    let (head, body) = BODIES[1];
    let first = send_part(&server, head, body.len(), body);
    in_phase(&server, "waiting for its turn");
    let before = memory.used();
    let long = format!("INSERT DATA {{ <urn:a> <urn:p> \"{}\" }}", "x".repeat(BYTES));
    let streams: Vec<TcpStream> = (0..4).map(|_| send_part(&server, head, long.len(), &long)).collect();
    let begun = Instant::now();
    let all_wait = || {
        let waiting = |entry: &&serde_json::Value| entry["phase"] == "waiting for its turn";
        listed(&server).iter().filter(waiting).count() == 1 + streams.len()
    };
    while !all_wait() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", listed(&server));
        std::thread::sleep(Duration::from_millis(5));
    }
    let held = memory.used() - before;
    assert!(held >= (streams.len() * BYTES) as u64, "{held} bytes");
    listed(&server).iter().for_each(|entry| end(&server, entry["request"].as_u64().unwrap()));
    drop((first, streams, turn));
    server.wait_until_idle();
}

/// A client that leaves as soon as it has asked hides nothing from the audit log.
#[test]
fn changes_of_clients_that_have_left_are_in_the_audit_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let logs = Logs { audit: Some(Log::open(&path).unwrap()), ..Logs::default() };
    let server = Running::start("", ServerConfig { logs: Arc::new(logs), ..config() });
    for n in 0..200 {
        let update = format!("INSERT DATA {{ <urn:s> <urn:p> {n} }}");
        let stream = send_part(&server, "POST /update", update.len(), &update);
        // Some leave before it is done, some while it is, some after.
        std::thread::sleep(Duration::from_micros(50 * (n % 40)));
        drop(stream);
    }
    server.wait_until_idle();
    let made = server.engine().graph().state().unwrap().quads();
    assert!(made > 0, "some were quick enough");
    let lines = || std::fs::read_to_string(&path).unwrap().lines().count() as u64;
    let begun = Instant::now();
    while lines() != made && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(lines(), made);
}

/// Contexts come from the files that the server names, for uploads and for LOAD, and from nowhere
/// else.
#[test]
fn json_ld_may_name_the_contexts_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (context, document) = (dir.path().join("context.json"), dir.path().join("doc.jsonld"));
    std::fs::write(&context, "{\"@context\": {\"name\": \"urn:name\"}}").unwrap();
    let text =
        |context: &str| format!("{{\"@context\": \"{context}\", \"@id\": \"urn:s\", \"name\": \"Ann\"}}");
    let named = "https://example.org/context";
    std::fs::write(&document, text(named)).unwrap();
    let contexts = Contexts::from_args(&[format!("{named}={}", context.display())]).unwrap();
    let allow_load = vec![LoadPermission::new(dir.path().to_str().unwrap()).unwrap()];
    let server = Running::start("", ServerConfig { contexts, allow_load, ..config() });
    let put = |context: &str| {
        let headers = "Content-Type: application/ld+json\r\n";
        server.send("PUT", "/graphs?graph=urn:g", headers, &text(context))
    };
    assert_eq!(status(&put(named)), "201");
    let unknown = put("https://example.org/other");
    assert_eq!(status(&unknown), "400", "{unknown:?}");
    assert!(!unknown.1.contains(dir.path().to_str().unwrap()), "{unknown:?}");
    let load = server.update(&format!("LOAD <file://{}>", document.display()));
    assert_eq!(status(&load), "200", "{load:?}");
    let (_, csv) =
        server.get("SELECT ?o { { ?s <urn:name> ?o } UNION { GRAPH ?g { ?s <urn:name> ?o } } }", "text/csv");
    assert_eq!(csv.matches("Ann").count(), 2, "{csv}");
}

/// The documents that wait until others are parsed are listed, can be ended, and are counted.
#[test]
fn what_waits_to_be_parsed_is_listed_metered_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let allow_load = vec![LoadPermission::new(dir.path().to_str().unwrap()).unwrap()];
    let server = Running::start("", ServerConfig { allow_load, ..config() });
    // Documents that never end, as many as are parsed at once.
    let waits = || server.engine().graph().database().report().parsing_waits;
    let (mut slow, mut pipes) = (Vec::new(), Vec::new());
    while waits().now == 0 {
        assert!(slow.len() <= 8, "{:?}", listed(&server));
        let place = dir.path().join(slow.len().to_string());
        std::fs::create_dir(&place).unwrap();
        let (path, mut writer) = pipe(&place);
        let load = format!("LOAD <file://{}>", path.display());
        slow.push(send_part(&server, "POST /update", load.len(), &load));
        // Its format is looked for before its turn to be parsed.
        writer.write_all("<urn:loaded> <urn:p> \"1\" .\n".repeat(3000).as_bytes()).unwrap();
        pipes.push(writer);
        let begun = Instant::now();
        let parsing = || listed(&server).iter().filter(|entry| entry["phase"] == "parsing").count();
        while parsing() < slow.len() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", listed(&server));
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let waiting = listed(&server);
    let waiting: Vec<_> = waiting.iter().filter(|e| e["waiting_for"] == "a turn to parse").collect();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    end(&server, waiting[0]["request"].as_u64().unwrap());
    assert_eq!(status(&answer_of(slow.pop().unwrap())), "503");
    assert_eq!((waits().now, waits().count), (0, 1));
    listed(&server).iter().for_each(|entry| end(&server, entry["request"].as_u64().unwrap()));
    server.wait_until_idle();
}
