//! Databases that cannot be written: `query`, `check`, `dump`, `stats`, `backup` and `serve
//! --read-only` on files and folders without that right, with commits that only the journal
//! has.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::SystemTime;

use support::Server;
use support::bench::Bench;

/// A user without rights, whose identity root can take.
const OTHER: u32 = 65_534;

/// A database that cannot be written, and a command that others may run.
struct Frozen {
    bench: Bench,
    binary: PathBuf,
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Names, bytes and times of the files of a directory.
fn contents(dir: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let modified = entry.metadata().unwrap().modified().unwrap();
        (entry.file_name().into_string().unwrap(), (std::fs::read(entry.path()).unwrap(), modified))
    };
    std::fs::read_dir(dir).unwrap().map(entry).collect()
}

impl Frozen {
    /// A database of 2,000 loaded triples and 3,000 more in the journal of a server that was
    /// killed. Nothing in it can be written.
    fn new() -> Self {
        let bench = Bench::with_triples(2000, "value");
        let server = Server::start(&bench.path("db"), &["--checkpoint", "held"]);
        for i in 0..30 {
            let more: String = (0..100).map(|j| format!("<urn:new{i}-{j}> <urn:q> {j} . ")).collect();
            assert_eq!(server.client().update(&format!("INSERT DATA {{ {more} }}")).unwrap().0, 200);
        }
        server.kill();
        // Files that reading does not need.
        for name in ["lock", "server", "control", "warm", "reserve"] {
            let _ = std::fs::remove_file(bench.path("db").join(name));
        }
        let binary = bench.copy_of_the_command();
        for entry in std::fs::read_dir(bench.path("db")).unwrap() {
            set_mode(&entry.unwrap().path(), 0o444);
        }
        set_mode(&bench.path("db"), 0o555);
        set_mode(&binary, 0o755);
        set_mode(bench.dir(), 0o777);
        Frozen { bench, binary }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bench.path(name)
    }

    /// The command, as a user who cannot write to the database.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).args(["--memory", "256MiB"]).current_dir(self.bench.dir());
        if rustix::process::geteuid().is_root() {
            command.uid(OTHER).gid(OTHER);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        set_mode(&self.path("db"), 0o755);
    }
}

const COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";

#[test]
fn what_cannot_be_written_can_be_read() {
    let bench = Frozen::new();
    let before = contents(&bench.path("db"));
    // The test means something: there is no right to write.
    let refused = bench.run(&["update", "db", "CLEAR ALL"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(bench.ok(&["query", "db", COUNT, "--format", "csv"]).contains("5000"));
    assert!(bench.ok(&["check", "db"]).contains("sound"));
    assert_eq!(bench.ok(&["dump", "db"]).lines().count(), 5000);
    assert!(bench.ok(&["stats", "db"]).contains("psog"));
    assert!(bench.ok(&["backup", "db", "copy"]).contains("verified"));
    assert_eq!(bench.ok(&["dump", "copy"]).lines().count(), 5000);
    let server = ReadOnlyServer::start(&bench);
    assert!(server.ask(COUNT).contains("5000"));
    // Others may read beside it.
    assert!(bench.ok(&["query", "db", COUNT, "--format", "csv"]).contains("5000"));
    drop(server);
    assert_eq!(contents(&bench.path("db")), before);
}

#[test]
fn reading_writes_nothing_where_it_could() {
    let bench = Frozen::new();
    set_mode(&bench.path("db"), 0o777);
    for entry in std::fs::read_dir(bench.path("db")).unwrap() {
        set_mode(&entry.unwrap().path(), 0o666);
    }
    let before = contents(&bench.path("db"));
    assert!(bench.ok(&["query", "db", COUNT, "--format", "csv"]).contains("5000"));
    assert!(bench.ok(&["check", "db"]).contains("sound"));
    assert_eq!(bench.ok(&["dump", "db"]).lines().count(), 5000);
    drop(ReadOnlyServer::start(&bench));
    assert_eq!(contents(&bench.path("db")), before);
    // Recovered and written back by who may.
    assert!(bench.run(&["update", "db", "INSERT DATA { <urn:a> <urn:b> <urn:c> }"]).status.success());
    assert!(bench.ok(&["query", "db", COUNT, "--format", "csv"]).contains("5001"));
}

/// `serve --read-only`, which leaves no file with its address; it prints the address.
struct ReadOnlyServer {
    child: Child,
    address: String,
}

impl ReadOnlyServer {
    fn start(bench: &Frozen) -> Self {
        let mut command = bench.command(&["serve", "db", "--read-only", "--listen", "127.0.0.1:0"]);
        // From here on it is ended whatever happens.
        let mut server =
            Self { child: command.stderr(Stdio::piped()).spawn().unwrap(), address: String::new() };
        let mut said = String::new();
        for line in BufReader::new(server.child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some((_, rest)) = line.split_once("at http://") {
                server.address = rest.split('/').next().unwrap().to_owned();
                return server;
            }
            said += &line;
        }
        panic!("the server does not start: {said}");
    }

    fn ask(&self, query: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let query = query.replace(' ', "%20");
        write!(stream, "GET /sparql?query={query} HTTP/1.0\r\nAccept: text/csv\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for ReadOnlyServer {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Publishes a database to a folder; readers open it, with and without a cache, and it is not
/// changed there.
#[test]
fn a_published_database_is_read_where_it_is() {
    let bench = Bench::with_triples(2000, "value");
    let address = format!("file://{}", bench.path("objects").display());
    let said = bench.ok(&["publish", "db", &address]);
    support::bench::has(&said, &["published transaction", "extents were sent"]);
    support::bench::has(&bench.ok(&["publish", "db", &address]), &[": 0 of "]);
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let local = bench.ok(&["query", "db", count, "--format", "tsv"]);
    let cached = ["--cache", "cache", "--cache-size", "64MiB"];
    for args in [&[][..], &cached, &cached] {
        let query = [&["query", &address, count, "--format", "tsv"], args].concat();
        assert_eq!(bench.ok(&query), local);
        assert_eq!(bench.ok(&[&["dump", &address], args].concat()), bench.ok(&["dump", "db"]));
    }
    support::bench::has(&bench.ok(&["check", &address]), &["sound"]);
    for (args, why) in [
        (&["query", "file:///no/such/folder", count][..], "No such file"),
        (&["query", "file://relative", count], "whole path"),
        (&["query", &format!("{address}/extents"), count], "no database is published here"),
        (&["update", &address, "CLEAR ALL"], "is a published database"),
        (&["publish", "db", "s4://bucket"], "object stores"),
    ] {
        support::bench::has(&bench.error(args), &[why]);
    }
}
