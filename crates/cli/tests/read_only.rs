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

use support::{Server, snowmelt};
use tempfile::TempDir;

/// A user without rights, whose identity root can take.
const OTHER: u32 = 65_534;

struct Bench {
    dir: TempDir,
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

impl Bench {
    /// A database of 2,000 loaded triples and 3,000 more in the journal of a server that was
    /// killed. Nothing in it can be written.
    fn frozen() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bench = Self { binary: dir.path().join("snowmelt"), dir };
        let lines: String = (0..2000).map(|i| format!("<urn:s{i}> <urn:p> \"value {i}\" .\n")).collect();
        std::fs::write(bench.path("data.nt"), lines).unwrap();
        let loaded = snowmelt().args(["load", "db", "data.nt"]).current_dir(bench.dir.path()).output();
        assert!(loaded.unwrap().status.success());
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
        std::fs::copy(env!("CARGO_BIN_EXE_snowmelt"), &bench.binary).unwrap();
        for entry in std::fs::read_dir(bench.path("db")).unwrap() {
            set_mode(&entry.unwrap().path(), 0o444);
        }
        set_mode(&bench.path("db"), 0o555);
        set_mode(&bench.binary, 0o755);
        set_mode(bench.dir.path(), 0o777);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command, as a user who cannot write to the database.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).args(["--memory", "256MiB"]).current_dir(self.dir.path());
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

impl Drop for Bench {
    fn drop(&mut self) {
        set_mode(&self.path("db"), 0o755);
    }
}

const COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";

#[test]
fn what_cannot_be_written_can_be_read() {
    let bench = Bench::frozen();
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
    let bench = Bench::frozen();
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

/// `serve --read-only`; it leaves no address, but says it.
struct ReadOnlyServer {
    child: Child,
    address: String,
}

impl ReadOnlyServer {
    fn start(bench: &Bench) -> Self {
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
