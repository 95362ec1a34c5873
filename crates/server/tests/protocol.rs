//! The SPARQL Protocol against a running server: forms, formats, errors, keep-alive, a cut client, shutdown.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_graph::{Database, OpenOptions};
use snowmelt_server::{Limits, ServerConfig, ServerError, serve};
use snowmelt_sparql::Engine;
use tempfile::TempDir;

struct Running {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
    _dir: TempDir,
}

impl Running {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data.nt");
        let mut data = String::new();
        for i in 0..5000 {
            data += &format!("<urn:s{i}> <urn:p> \"value {i}\" .\n");
        }
        std::fs::write(&file, data).unwrap();
        let db = dir.path().join("db");
        let source = Source::from_arg(file.to_str().unwrap());
        load(&db, vec![source], &LoadOptions::default(), &(), &AtomicBool::new(false)).unwrap();
        let engine = Arc::new(Engine::new(Database::open(&db, &OpenOptions::default()).unwrap()));
        let config = ServerConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            limits: Limits { body_bytes: 10_000, ..Limits::default() },
            shutdown_deadline: Duration::from_secs(5),
        };
        let (address_sender, address) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            serve(engine, config, |a| address_sender.send(a).unwrap(), async {
                let _ = stopped.await;
            })
        });
        Self { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread), _dir: dir }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// One request on its own connection: the head, and the body with its chunks joined.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut BufReader::new(stream))
    }

    fn get(&self, query: &str, accept: &str) -> (String, String) {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        self.ask(&format!("GET /sparql?query={query} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().unwrap().join().unwrap();
        assert!(ended.is_ok());
    }
}

fn read_answer(stream: &mut impl BufRead) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "connection closed in {head:?}");
    }
    let lower = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if let Some(rest) = lower.split("content-length: ").nth(1) {
        body.resize(rest.lines().next().unwrap().parse().unwrap(), 0);
        stream.read_exact(&mut body).unwrap();
    } else {
        assert!(lower.contains("transfer-encoding: chunked"), "{head}");
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).unwrap();
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    }
    (head, String::from_utf8(body).unwrap())
}

#[test]
fn forms_formats_and_refusals() {
    let server = Running::start();
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
        "POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("true"), "{head}{body}");
    let (head, _) = server.ask(&format!(
        "POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\nContent-Length: {}\r\n\r\n{one}",
        one.len()
    ));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");

    let (head, body) = server.get("SELECT nonsense", "*/*");
    assert!(head.starts_with("HTTP/1.1 400") && body.contains("line 1"), "{head}{body}");
    assert!(server.get(one, "image/png").0.starts_with("HTTP/1.1 406"));
    assert!(server.ask("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n").0.starts_with("HTTP/1.1 404"));
    let large = "POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\nContent-Length: 20000\r\n\r\n";
    assert!(server.ask(&(large.to_owned() + &" ".repeat(20000))).0.starts_with("HTTP/1.1 413"));
    let (head, body) = server.ask("GET /stats HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("\"quads\": 5000"), "{head}{body}");
}

#[test]
fn one_connection_carries_many_queries_and_long_answers_stream() {
    let server = Running::start();
    let mut stream = server.connect();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3 {
        let query = "SELECT%20*%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D";
        write!(stream, "GET /sparql?query={query} HTTP/1.1\r\nHost: x\r\nAccept: text/csv\r\n\r\n").unwrap();
        let (head, body) = read_answer(&mut answers);
        assert!(head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
        assert_eq!(body.lines().count(), 5001);
    }
}

#[test]
fn a_client_that_leaves_ends_its_query() {
    let server = Running::start();
    let mut stream = server.connect();
    // 25 million rows: it only ends early because somebody notices.
    let query = "SELECT%20*%20%7B%20%3Fa%20%3Fp%20%3Fb%20.%20%3Fc%20%3Fp%20%3Fd%20%7D";
    write!(stream, "GET /sparql?query={query} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 100]).unwrap();
    drop(stream);
    assert!(server.get("ASK {}", "*/*").1.contains("true"));
}
