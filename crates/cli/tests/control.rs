//! `backup`, `check`, `compact` and `stats` beside a running server, through the socket in the
//! database's directory.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::Server;
use support::bench::Bench;

fn loaded(triples: usize) -> Bench {
    Bench::with_triples(triples, "value")
}

fn socket(db: &Path) -> PathBuf {
    db.join("control")
}

#[test]
fn commands_go_to_the_server_that_has_the_database_open() {
    let bench = loaded(1000);
    let server = Server::start(&bench.path("db"), &[]);
    server.client().update("INSERT DATA { <urn:new> <urn:p> 1 }").unwrap();
    assert!(bench.ok(&["stats", "db"]).contains("psog"));
    let stats: serde_json::Value =
        serde_json::from_str(&bench.ok(&["stats", "db", "--format", "json"])).unwrap();
    assert_eq!(stats["quads"], 1001, "what the journal has is counted");
    assert!(bench.ok(&["stats", "db", "--statistics"]).contains("1001 quads; 1 added or removed"));
    let checked = bench.ok(&["check", "db"]);
    assert!(checked.contains("pages") && checked.ends_with("sound\n"), "{checked}");
    assert!(bench.ok(&["compact", "db"]).contains("bytes of data before"));
    // Terms without quads go when they are many, or when it is asked for.
    server.client().update("DELETE DATA { <urn:new> <urn:p> 1 }").unwrap();
    assert!(bench.ok(&["compact", "db"]).contains("the terms stay as they are"));
    let compacted = bench.ok(&["compact", "db", "--terms", "always"]);
    assert!(compacted.contains("\n1 of "), "{compacted}");
    server.client().update("INSERT DATA { <urn:new> <urn:p> 1 }").unwrap();
    assert!(bench.ok(&["backup", "db", "copy", "--stripe", "copy-data"]).contains("verified"));
    assert!(bench.path("copy-data").is_file(), "relative paths are the command's, not the server's");
    assert!(bench.ok(&["check", "copy"]).contains("sound"));
    assert_eq!(bench.ok(&["dump", "copy"]).lines().count(), 1001);
    let add = || bench.ok(&["backup", "db", "set", "--incremental"]);
    assert!(add().contains("0001-whole") && add().contains("nothing has changed"));
    server.client().update("INSERT DATA { <urn:newer> <urn:p> 1 }").unwrap();
    assert!(add().contains("0002-changes"));
    bench.ok(&["restore", "set", "of-set"]);
    assert_eq!(bench.ok(&["dump", "of-set"]).lines().count(), 1002);
    server.client().update("DELETE DATA { <urn:newer> <urn:p> 1 }").unwrap();
    // Errors come back, and what needs the database alone says so.
    assert!(bench.error(&["backup", "db", "copy"]).contains("already a database"));
    assert!(bench.error(&["check", "db", "--salvage"]).contains("stop it first"));
    assert_eq!(server.client().query("SELECT ?o { <urn:new> ?p ?o }").unwrap().len(), 1);
    assert!(server.terminate().0.success());
    assert!(!socket(&bench.path("db")).exists(), "the socket goes with the server");
    assert!(bench.ok(&["check", "db"]).contains("sound"));
}

#[test]
fn commands_find_the_server_of_several_databases() {
    let bench = loaded(100);
    std::fs::create_dir(bench.path("data")).unwrap();
    std::fs::rename(bench.path("db"), bench.path("data/people")).unwrap();
    let server = Server::start_on_free_port(&bench.path("data"), &["--datasets"]);
    // Nothing has asked for it: it is not open.
    assert!(!socket(&bench.path("data/people")).exists());
    assert!(bench.ok(&["check", "data/people"]).contains("sound"));
    let asked = server.client().post("/people/sparql", "application/sparql-query", "ASK {}").unwrap();
    assert_eq!(asked.0, 200);
    assert!(socket(&bench.path("data/people")).exists());
    assert!(bench.ok(&["stats", "data/people"]).contains("psog"));
    assert!(bench.ok(&["backup", "data/people", "copy"]).contains("verified"));
    assert!(bench.ok(&["compact", "data/people"]).contains("bytes of data before"));
    assert_eq!(bench.ok(&["dump", "copy"]).lines().count(), 100);
    assert!(server.terminate().0.success());
    assert!(!socket(&bench.path("data/people")).exists());
}

#[test]
fn a_killed_server_leaves_nothing_in_the_way() {
    let bench = loaded(10);
    Server::start(&bench.path("db"), &[]).kill();
    assert!(socket(&bench.path("db")).exists());
    assert!(bench.ok(&["check", "db"]).contains("sound"), "nobody has it open");
    let _server = Server::start(&bench.path("db"), &[]);
    assert!(bench.ok(&["check", "db"]).contains("sound"));
}

#[test]
fn the_directory_may_have_a_long_name() {
    let bench = loaded(10);
    let long = format!("{0}/{0}/{0}", "a-long-name-".repeat(8));
    std::fs::create_dir_all(bench.path(&long)).unwrap();
    let long = format!("{long}/db");
    std::fs::rename(bench.path("db"), bench.path(&long)).unwrap();
    let _server = Server::start(&bench.path(&long), &[]);
    assert!(bench.ok(&["check", &long]).contains("sound"));
}

/// Sends a line and reads the last word.
fn say(db: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket(db)).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut last = String::new();
    for line in BufReader::new(stream).lines() {
        last = line.unwrap();
    }
    last
}

#[test]
fn what_is_no_command_is_refused() {
    let bench = loaded(10);
    let db = bench.path("db");
    let _server = Server::start(&db, &[]);
    for (line, why) in [
        ("nonsense\n", "not JSON"),
        ("{\"version\":4,\"command\":\"explode\"}\n", "no such command"),
        ("{\"version\":99,\"command\":\"check\"}\n", "version"),
        ("{\"command\":\"check\"}\n", "version"),
    ] {
        let answer = say(&db, line);
        assert!(answer.contains("failed") && answer.contains(why), "{line:?}: {answer}");
    }
    assert!(say(&db, &"x".repeat(64 << 10)).contains("exceeds"));
    assert!(say(&db, "{\"version\":4,\"command\":\"check\"}\n").contains("\"problem_count\":0"));
}

/// A server whose device takes a while for every request.
fn slow_server(bench: &Bench) -> Server {
    let model = "kind = \"volume\"\nlatency_us = 100000\nwidth = 1\n";
    std::fs::write(bench.path("slow.toml"), model).unwrap();
    let device = format!("sim:{}", bench.path("slow.toml").display());
    Server::start(&bench.path("db"), &["--device", &device, "--read-ahead", "none"])
}

#[test]
fn who_goes_away_or_presses_ctrl_c_cancels() {
    let bench = loaded(20_000);
    let server = slow_server(&bench);
    for command in [&["check", "db"][..], &["backup", "db", "copy"]] {
        let child = bench.command(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for_commands(&server, 1);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && said.contains("stopped before the end"), "{command:?}: {said}");
    }
    // The unfinished copy is gone, so that the next one can be made in its place.
    assert!(!bench.path("copy").exists());
    let mut gone = UnixStream::connect(socket(&bench.path("db"))).unwrap();
    gone.write_all(b"{\"version\":4,\"command\":\"check\"}\n").unwrap();
    wait_for_commands(&server, 1);
    drop(gone);
    wait_for_commands(&server, 0);
    // A server that ends cancels what is under way, too.
    let mut last = UnixStream::connect(socket(&bench.path("db"))).unwrap();
    last.write_all(b"{\"version\":4,\"command\":\"check\"}\n").unwrap();
    wait_for_commands(&server, 1);
    server.terminate();
    let mut words = String::new();
    last.read_to_string(&mut words).unwrap();
    assert!(words.contains("stopped before the end"), "{words}");
}

/// Waits until so many commands are under way.
fn wait_for_commands(server: &Server, count: u64) {
    let begun = std::time::Instant::now();
    loop {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        write!(stream, "GET /stats HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        let stats: serde_json::Value = serde_json::from_str(body).unwrap();
        if stats["commands"] == count {
            return;
        }
        assert!(begun.elapsed().as_secs() < 60, "{} commands", stats["commands"]);
    }
}

#[test]
fn only_the_servers_user_and_root_are_obeyed() {
    /// An ordinary user.
    const OTHER: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can ask as somebody else");
        return;
    }
    let bench = loaded(10);
    let db = bench.path("db");
    let _server = Server::start(&db, &[]);
    // All doors are open but the one in question.
    let binary = bench.copy_of_the_command();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for path in [bench.dir(), &db, &binary] {
        open(path, 0o777);
    }
    for entry in std::fs::read_dir(&db).unwrap() {
        open(&entry.unwrap().path(), 0o666);
    }
    let output =
        Command::new(&binary).args(["stats", "db"]).current_dir(bench.dir()).uid(OTHER).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("user 65534 may not"), "{said}");
    assert!(bench.ok(&["stats", "db"]).contains("psog"));
}

/// The server reports a moved folder once, however often it checks.
#[test]
fn a_folder_that_was_moved_is_told_once() {
    let bench = Bench::loaded();
    let (db, moved) = (bench.path("db"), bench.path("moved"));
    let server = Server::start(&db, &[]);
    let mut client = server.client();
    std::fs::rename(&db, &moved).unwrap();
    for n in 0..30 {
        let (status, said) = client.update(&format!("INSERT DATA {{ <urn:s> <urn:p> {n} }}")).unwrap();
        assert_eq!(status, 200, "{said}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let said = server.last_words();
    assert_eq!(said.matches("the folder is no longer there").count(), 1, "{said}");
    assert!(!said.contains("error"), "{said}");
    let rows =
        bench.ok(&["query", "moved", "SELECT (COUNT(*) AS ?n) { <urn:s> <urn:p> ?o }", "--format", "csv"]);
    assert!(rows.contains("30"), "{rows}");
}
