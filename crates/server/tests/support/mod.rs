//! A server in this process on a database of its own, and as much of HTTP as a client needs.

#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead, BufReader, Write};

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_graph::load::{Contexts, LoadOptions, Source, load};
use snowmelt_server::tokens::Keeper;
use snowmelt_server::{Cors, Folder, Served, ServerConfig, ServerError, ServerLimits, serve};
use snowmelt_sparql::QueryEngine;
use tempfile::TempDir;

pub struct Running {
    pub address: SocketAddr,
    engine: Option<Arc<QueryEngine>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
    dir: TempDir,
}

/// Settings of the servers under test.
pub fn config() -> ServerConfig {
    ServerConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        limits: ServerLimits { body_bytes: 10_000, ..ServerLimits::default() },
        allow_hosts: Vec::new(),
        trusted_proxies: Vec::new(),
        tls: None,
        cors: Cors::default(),
        keeper: Arc::new(Keeper::open_to_all()),
        logs: Arc::default(),
        allow_load: Vec::new(),
        remote: None,
        contexts: Contexts::default(),
        style: Default::default(),
        read_only: false,
        control: None,
        shutdown_deadline: Duration::from_secs(5),
    }
}

impl Running {
    /// A server of these N-Quads.
    pub fn start(data: &str, config: ServerConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data.nq");
        std::fs::write(&file, data).unwrap();
        let db = dir.path().join("db");
        let source = Source::from_arg(file.to_str().unwrap());
        let options = OpenOptions { memory_bytes: 128 << 20, direct: false, ..OpenOptions::default() };
        let load_options = LoadOptions { store: options.clone(), ..LoadOptions::default() };
        load(&db, vec![source], &load_options, &(), &AtomicBool::new(false)).unwrap();
        Self::with_database(GraphDatabase::open(&db, &options).unwrap(), dir, config)
    }

    /// A server of an open database.
    pub fn with_database(db: Arc<GraphDatabase>, dir: TempDir, config: ServerConfig) -> Self {
        let engine = Arc::new(QueryEngine::new(db));
        Self::serving(engine.clone(), Some(engine), dir, config)
    }

    /// A server of a folder of databases.
    pub fn of_folder(folder: Folder, dir: TempDir, config: ServerConfig) -> Self {
        Self::serving(Served::Many(folder), None, dir, config)
    }

    fn serving(
        served: impl Into<Served>,
        engine: Option<Arc<QueryEngine>>,
        dir: TempDir,
        config: ServerConfig,
    ) -> Self {
        let served = served.into();
        let (address_sender, address) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            serve(served, config, |a| address_sender.send(a).unwrap(), async {
                let _ = stopped.await;
            })
        });
        Self { address: address.recv().unwrap(), engine, stop: Some(stop), thread: Some(thread), dir }
    }

    /// The engine of its one database.
    pub fn engine(&self) -> &Arc<QueryEngine> {
        self.engine.as_ref().expect("it serves one database")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The value of `/stats` under a name of the first level.
    pub fn stat(&self, name: &str) -> serde_json::Value {
        let (_, body) = self.ask("GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
        serde_json::from_str::<serde_json::Value>(&body).unwrap()[name].clone()
    }

    /// Waits until no query and no change runs any more.
    pub fn wait_until_idle(&self) {
        let begun = std::time::Instant::now();
        while self.stat("running") != 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "something runs on and on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// One request on its own connection: the head, and the body with its chunks joined.
    pub fn ask(&self, request: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let is_head = request.starts_with("HEAD");
        read_answer(&mut BufReader::new(stream), is_head)
    }

    /// One request that may be no text, on its own connection: the head, and the body with its
    /// chunks joined.
    pub fn ask_bytes(&self, request: &[u8]) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        read_answer(&mut BufReader::new(stream), false)
    }

    /// A request with a body; `headers` end in line ends.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
        let (address, len) = (self.address, body.len());
        self.ask(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {len}\r\n\r\n{body}"
        ))
    }

    /// Runs an update.
    pub fn update(&self, update: &str) -> (String, String) {
        self.send("POST", "/update", "Content-Type: application/sparql-update\r\n", update)
    }

    pub fn get(&self, query: &str, accept: &str) -> (String, String) {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        self.ask(&format!(
            "GET /sparql?query={query} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"
        ))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().unwrap().join().unwrap();
        assert!(ended.is_ok());
    }
}

/// Head and body of an answer.
pub fn read_answer(stream: &mut impl BufRead, is_head: bool) -> (String, String) {
    let (head, body) = read_bytes_of(stream, is_head);
    (head, String::from_utf8(body).unwrap())
}

/// Head and body of an answer whose body may be no text.
pub fn read_bytes(stream: &mut impl BufRead) -> (String, Vec<u8>) {
    read_bytes_of(stream, false)
}

fn read_bytes_of(stream: &mut impl BufRead, is_head: bool) -> (String, Vec<u8>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "connection closed in {head:?}");
    }
    let lower = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if is_head || lower.starts_with("http/1.1 204") || lower.starts_with("http/1.1 304") {
        return (head, body);
    }
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
    (head, body)
}
