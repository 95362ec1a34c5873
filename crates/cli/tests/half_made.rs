//! Programs killed at each call that changes a file while they make, copy, restore, rename or
//! drop a database, or change one: counted, not timed (`snowmelt_io::KillAt`), under the engine
//! `inline`, whose writes are system calls. The same with errors: that call fails, or it and all
//! after it, or the disk is full from there on.
//!
//! After each of them
//!
//! 1. there is a whole database, or none;
//! 2. a server lists no half-made database, and all that it lists answer;
//! 3. the same command runs again and gives the right content;
//! 4. nothing temporary is left, and whatever was reported as done is done.
//!
//! `SNOWMELT_KILL_ALL=1` does it at every call; otherwise at some, drawn from `SNOWMELT_SEED`, and
//! at the last ones, where names change.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use snowmelt_base::random::lcg;
use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_io::{AtCall, KillAt, Traced};
use support::snowmelt;

/// Calls of a command that it is killed at unless all are asked for.
const SAMPLE: usize = 12;
/// Of these, calls at the end of the command.
const LAST: u64 = 6;

/// Quads of the database that is made.
const QUADS: usize = 300;

/// A folder with data, a whole backup and a set of backups of the same content.
struct World {
    root: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let world = World { root: tempfile::tempdir().unwrap() };
        let lines: Vec<String> =
            (0..QUADS).map(|n| format!("<urn:s{}> <urn:p{}> \"text {n}\" .\n", n / 3, n % 5)).collect();
        std::fs::write(world.path("data.nt"), lines.concat()).unwrap();
        let (source, data) = (world.path("source"), world.path("data.nt"));
        run(command("load").args([&source, &data]));
        run(command("backup").args([&source, &world.path("copy")]));
        run(command("backup").arg("--incremental").args([&source, &world.path("set")]));
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// An empty folder for one round.
    fn round(&self) -> PathBuf {
        let dir = self.path("round");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        dir
    }
}

/// A command of the program with small memory and writes that can be counted.
fn command(name: &str) -> Command {
    let mut command = snowmelt();
    command.arg(name).stdout(Stdio::null()).stdin(Stdio::null()).stderr(Stdio::null());
    let memory = if name == "serve" { "256MiB" } else { "64MiB" };
    command.args(["--memory", memory, "--engine", "inline"]);
    if matches!(name, "load" | "serve") {
        command.args(["--extent-size", "64k"]);
    }
    command
}

fn run(command: &mut Command) {
    let done = command.stderr(Stdio::piped()).output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The quads of a database that must be sound.
fn content(db: &Path) -> BTreeSet<String> {
    let check = command("check").arg(db).stderr(Stdio::piped()).output().unwrap();
    assert!(check.status.success(), "{}: {}", db.display(), String::from_utf8_lossy(&check.stderr));
    let dump = command("dump").arg(db).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    assert!(dump.status.success(), "{}: {}", db.display(), String::from_utf8_lossy(&dump.stderr));
    String::from_utf8(dump.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn is_database(db: &Path) -> bool {
    db.join("superblock").exists()
}

/// Names below a folder that no finished work leaves.
fn temporary(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let ends = ["making", ".dropped", ".tmp", ".new"];
        if ends.iter().any(|end| name.ends_with(end)) {
            found.push(entry.path());
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(temporary(&entry.path()));
        }
    }
    found
}

/// The calls to kill at, of so many.
fn kills(calls: u64) -> Vec<u64> {
    assert!(calls > LAST, "{calls} calls are no work");
    if std::env::var("SNOWMELT_KILL_ALL").is_ok() {
        return (1..=calls).collect();
    }
    let mut random = snowmelt_base::test_seed(calls);
    let mut some: BTreeSet<u64> = (calls - LAST + 1..=calls).collect();
    while some.len() < SAMPLE.min(calls as usize) {
        some.insert(1 + (lcg(&mut random) >> 33) % calls);
    }
    some.into_iter().collect()
}

/// Events at a call.
const EVENTS: [AtCall; 4] = [AtCall::Kill, AtCall::Fail(EIO), AtCall::FailOn(EIO), AtCall::Full];
const EIO: i32 = 5;

/// Runs a command to which this happens at its `n`th call; it must come to an end.
fn run_to(command: Command, n: u64, then: AtCall) -> Traced {
    let (begun, what) = (Instant::now(), format!("{command:?}"));
    let run = KillAt::start_to(command, n, then);
    while !run.is_over() {
        if begun.elapsed() > Duration::from_secs(60) {
            let pid = run.pid().and_then(rustix::process::Pid::from_raw).expect("it runs");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("{what}: does not end after call {n} ({then:?})");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    run.wait().unwrap()
}

/// Does all of [`EVENTS`] to the command that `make` gives, in an empty folder, at one call after
/// the other.
fn campaign(name: &str, world: &World, db: &str, make: impl Fn(&Path) -> Command) {
    EVENTS.iter().for_each(|then| campaign_of(name, world, db, *then, &make));
}

fn campaign_of(name: &str, world: &World, db: &str, then: AtCall, make: &dyn Fn(&Path) -> Command) {
    let expected = content(&world.path("source"));
    assert_eq!(expected.len(), QUADS);
    let whole = run_to(make(&world.round()), 0, then);
    assert!(whole.status.success(), "{name}: {whole:?}");
    let name = &format!("{name}, {then:?}");
    let (mut killed, mut whole_ones) = (0, 0);
    let kills = kills(whole.calls);
    for n in &kills {
        let round = world.round();
        let db = round.join(db);
        let traced = run_to(make(&round), *n, then);
        killed += u64::from(traced.killed_at.is_some());
        assert!(
            is_database(&db) || !traced.status.success(),
            "{name}: call {n}: {traced:?}: said to be done"
        );
        if is_database(&db) {
            whole_ones += 1;
            assert_eq!(content(&db), expected, "{name}: call {n}: {traced:?}");
            if name.starts_with("restore") || name.starts_with("backup") {
                // A restore onto a database is refused.
                continue;
            }
        }
        let again = make(&round).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(again.status.success(), "{name}: after call {n} ({traced:?}) it does not run again: {said}");
        assert_eq!(content(&db), expected, "{name}: call {n}: {traced:?}");
        assert_eq!(temporary(&round), [] as [PathBuf; 0], "{name}: call {n}: {traced:?}");
    }
    println!("{name}: {} calls, {} tried, {killed} hit, {whole_ones} left whole", whole.calls, kills.len());
    let least = if then == AtCall::Full { 1 } else { kills.len() * 9 };
    assert!(killed as usize * 10 >= least, "{name}: {killed} of {} were hit", kills.len());
}

/// Does all of [`EVENTS`] to a command that changes the database `round/db`, a copy of the source:
/// afterwards it is sound and has what it had, or what it is to have. Done again it has that.
fn campaign_on(name: &str, world: &World, after: &BTreeSet<String>, make: impl Fn(&Path) -> Command) {
    let before = content(&world.path("source"));
    let fresh = || {
        let round = world.round();
        copy(&world.path("source"), &round.join("db"));
        copy(&world.path("set"), &round.join("set"));
        round
    };
    for then in EVENTS {
        let whole = run_to(make(&fresh()), 0, then);
        assert!(whole.status.success(), "{name}: {whole:?}");
        let kills = kills(whole.calls.max(LAST + 1));
        let (mut hit, mut done) = (0, 0);
        for n in &kills {
            let round = fresh();
            let traced = run_to(make(&round), *n, then);
            let context = format!("{name}, {then:?}: call {n}: {traced:?}");
            hit += usize::from(traced.killed_at.is_some());
            let now = content(&round.join("db"));
            assert!(now == before || now == *after, "{context}: {} quads", now.len());
            if traced.status.success() {
                assert!(now == *after, "{context}: said to be done");
            }
            done += usize::from(now == *after);
            let again = make(&round).stderr(Stdio::piped()).output().unwrap();
            let said = String::from_utf8_lossy(&again.stderr).into_owned();
            assert!(again.status.success(), "{context}: it does not run again: {said}");
            assert!(content(&round.join("db")) == *after, "{context}: done again");
            // Whatever the set was in the midst of, its newest state is a right one.
            let restored = round.join("restored");
            run(command("restore").arg(round.join("set")).arg(&restored));
            let restored = content(&restored);
            assert!(restored == before || restored == *after, "{context}: restored");
            assert_eq!(temporary(&round), [] as [PathBuf; 0], "{context}");
        }
        println!("{name}, {then:?}: {} calls, {} tried, {hit} hit, {done} done", whole.calls, kills.len());
        assert!(hit > 0, "{name}, {then:?}: nothing was hit");
    }
}

/// Copies a folder and those in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The source and some quads more, which may have been there.
fn with_more(world: &World, quads: &[&str]) -> BTreeSet<String> {
    let more = quads.iter().map(|quad| (*quad).to_owned());
    content(&world.path("source")).into_iter().chain(more).collect()
}

#[test]
fn an_update() {
    let world = World::new();
    let after = with_more(&world, &["<urn:new> <urn:p0> \"1\" .", "<urn:new> <urn:new> \"2\" ."]);
    campaign_on("update", &world, &after, |round| {
        let mut update = command("update");
        update.arg(round.join("db"));
        update.arg("INSERT DATA { <urn:new> <urn:p0> \"1\" ; <urn:new> \"2\" }");
        update
    });
}

#[test]
fn a_load_into_a_database() {
    let world = World::new();
    std::fs::write(world.path("more.nt"), "<urn:new> <urn:p0> \"1\" .\n").unwrap();
    let after = with_more(&world, &["<urn:new> <urn:p0> \"1\" ."]);
    campaign_on("load into a database", &world, &after, |round| {
        let mut load = command("load");
        load.arg(round.join("db")).arg(world.path("more.nt")).args(["--threads", "1"]);
        load
    });
}

#[test]
fn a_compaction() {
    let world = World::new();
    let after = content(&world.path("source"));
    campaign_on("compact", &world, &after, |round| {
        let mut compact = command("compact");
        compact.arg(round.join("db")).args(["--terms", "always"]);
        compact
    });
}

/// The database has changed since the whole part of the set.
#[test]
fn a_part_of_a_set() {
    let world = World::new();
    let update = "INSERT DATA { <urn:new> <urn:p0> \"1\" }";
    run(command("update").arg(world.path("source")).arg(update));
    let after = content(&world.path("source"));
    campaign_on("backup --incremental", &world, &after, |round| {
        let mut backup = command("backup");
        backup.arg("--incremental").arg(round.join("db")).arg(round.join("set"));
        backup
    });
}

#[test]
fn a_load_into_a_new_database() {
    let world = World::new();
    campaign("load", &world, "db", |round| {
        let mut load = command("load");
        load.arg(round.join("db")).arg(world.path("data.nt")).args(["--threads", "1"]);
        load
    });
}

/// Stripes elsewhere: a file, and one in a folder that is there before.
#[test]
fn a_load_onto_stripes_elsewhere() {
    let world = World::new();
    campaign("load onto stripes", &world, "deep/db", |round| {
        std::fs::create_dir_all(round.join("disk")).unwrap();
        std::fs::write(round.join("disk/somebody's"), "data").unwrap();
        let mut load = command("load");
        load.arg(round.join("deep/db")).arg(world.path("data.nt")).args(["--threads", "1"]);
        load.arg("--stripe").arg(round.join("one")).arg("--stripe").arg(round.join("disk"));
        load
    });
}

#[test]
fn a_restore_of_a_backup() {
    let world = World::new();
    campaign("restore", &world, "db", |round| {
        let mut restore = command("restore");
        restore.arg(world.path("copy")).arg(round.join("db"));
        restore
    });
}

#[test]
fn a_restore_of_a_set_onto_stripes_elsewhere() {
    let world = World::new();
    campaign("restore of a set", &world, "db", |round| {
        let mut restore = command("restore");
        restore.arg(world.path("set")).arg(round.join("db")).arg("--stripe").arg(round.join("one"));
        restore
    });
}

#[test]
fn a_backup() {
    let world = World::new();
    campaign("backup", &world, "copy", |round| {
        let mut backup = command("backup");
        backup.arg(world.path("source")).arg(round.join("copy"));
        backup
    });
}

/// Makes a copy of a database in which a page of PSOG is damaged.
fn damaged_copy(source: &Path, db: &Path) {
    std::fs::create_dir(db).unwrap();
    for entry in std::fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), db.join(entry.file_name())).unwrap();
    }
    let place = {
        let options = OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
        let options = OpenOptions { mode: snowmelt_store::Mode::ReadOnly, ..options };
        let database = GraphDatabase::open(db, &options).unwrap();
        let catalog = database.database().store().catalog_all();
        let psog = catalog.trees.iter().find(|(_, name)| *name == "psog").map(|(id, _)| *id);
        let (id, _) =
            database.database().store().extents().into_iter().find(|(_, e)| e.tree == psog).unwrap();
        id * database.database().store().geometry().extent_bytes()
    };
    let stripe = db.join("stripe-0");
    let mut bytes = std::fs::read(&stripe).unwrap();
    bytes[place as usize + 100] ^= 1;
    std::fs::write(&stripe, bytes).unwrap();
}

/// A repair leaves the damage or is done; it can be done again, and then all is there.
#[test]
fn a_repair_of_an_index() {
    let world = World::new();
    let expected = content(&world.path("source"));
    let repair = |db: &Path| {
        let mut check = command("check");
        check.arg(db).arg("--repair").stderr(Stdio::null());
        check
    };
    let fresh = || {
        let db = world.round().join("db");
        damaged_copy(&world.path("source"), &db);
        let check = command("check").arg(&db).stderr(Stdio::null()).status().unwrap();
        assert!(!check.success(), "it is damaged");
        db
    };
    for then in EVENTS {
        let whole = run_to(repair(&fresh()), 0, then);
        assert!(whole.status.success(), "{whole:?}");
        let kills = kills(whole.calls);
        let mut hit = 0;
        for n in &kills {
            let db = fresh();
            let traced = run_to(repair(&db), *n, then);
            hit += usize::from(traced.killed_at.is_some());
            if traced.status.success() {
                assert_eq!(content(&db), expected, "{then:?}: call {n}: {traced:?}: said to be done");
            }
            run(repair(&db).stderr(Stdio::piped()));
            assert_eq!(content(&db), expected, "{then:?}: call {n}: {traced:?}");
            assert_eq!(temporary(&db), [] as [PathBuf; 0], "{then:?}: call {n}: {traced:?}");
        }
        println!("repair, {then:?}: {} calls, {} tried, {hit} hit", whole.calls, kills.len());
        assert!(hit > 0, "{then:?}: nothing was hit");
    }
}

/// A server under the tracer, and its address.
struct Running {
    run: KillAt,
    address: SocketAddr,
}

fn serve(dir: &Path, more: &[&str], n: u64) -> Running {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut serve = command("serve");
    serve.arg(dir).args(["--listen", &address.to_string()]).args(more).stderr(Stdio::null());
    Running { run: KillAt::start(serve, n), address }
}

impl Running {
    /// Whether it answers, after it was waited for.
    fn answers(&self) -> bool {
        let begun = Instant::now();
        while !self.run.is_over() {
            if request(self.address, "GET", "/health", "").is_some_and(|(status, _)| status == 200) {
                return true;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        request(self.address, method, path, body)
    }

    /// A change of datasets. One that would close a dataset may find that the request before has
    /// not let go of it yet.
    fn change(&self, method: &str, path: &str) -> Option<(u16, String)> {
        let begun = Instant::now();
        loop {
            let answer = self.ask(method, path, "")?;
            let is_busy = answer.0 == 503 || (answer.0 == 409 && answer.1.contains("try again"));
            if !is_busy || begun.elapsed() > Duration::from_secs(20) {
                return Some(answer);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// SIGTERM, and the outcome.
    fn end(self) -> Traced {
        if let Some(pid) = self.run.pid().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        self.run.wait().unwrap()
    }
}

/// One request over a connection of its own; `None` when the server dies.
fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let kind =
        if path.ends_with("update") { "application/sparql-update" } else { "application/sparql-query" };
    let len = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAccept: text/csv, */*;q=0.1\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.get(9..12)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}

#[test]
fn a_server_that_makes_its_database() {
    let world = World::new();
    let whole = {
        let server = serve(&world.round().join("db"), &[], 0);
        assert!(server.answers());
        let calls = server.run.calls();
        assert!(server.end().status.success());
        calls
    };
    let kills = kills(whole);
    let mut killed = 0;
    for n in &kills {
        let db = world.round().join("db");
        let server = serve(&db, &[], *n);
        server.answers();
        let traced = server.end();
        killed += u64::from(traced.killed_at.is_some());
        let server = serve(&db, &[], 0);
        assert!(server.answers(), "after call {n} ({traced:?}) it does not start again");
        let (status, said) = server.ask("POST", "/update", "INSERT DATA { <urn:a> <urn:b> 1 }").unwrap();
        assert_eq!(status, 200, "{n}: {traced:?}: {said}");
        assert!(server.end().status.success());
        assert_eq!(content(&db).len(), 1, "{n}: {traced:?}");
        assert_eq!(temporary(&db), [] as [PathBuf; 0], "{n}: {traced:?}");
    }
    println!("serve: {whole} calls, {} tried, {killed} killed", kills.len());
    assert!(killed as usize * 2 >= kills.len(), "{killed} of {} were killed", kills.len());
}

/// Changes of datasets: method and path, and which of `a` and `b` are there before and
/// after.
const CHANGES: [(&str, &str, &str, &str); 3] = [
    ("PUT", "/datasets/b", "a", "ab"),
    ("POST", "/datasets/a?rename=b", "a", "b"),
    ("DELETE", "/datasets/a", "a", ""),
];

/// A server on a folder that holds the dataset `a` with one quad.
fn datasets(world: &World) -> (PathBuf, Running) {
    let folder = world.round().join("folder");
    let server = serve(&folder, &["--datasets"], 0);
    assert!(server.answers());
    assert_eq!(server.change("PUT", "/datasets/a").unwrap().0, 201);
    let insert = "INSERT DATA { <urn:a> <urn:b> 1 }";
    assert_eq!(server.ask("POST", "/a/update", insert).unwrap().0, 200);
    (folder, server)
}

/// The names that a server lists; each of them must answer, with the quad if it came from `a`.
fn listed(server: &Running, context: &str) -> String {
    let list = server.ask("GET", "/datasets", "").unwrap().1.replace(char::is_whitespace, "");
    let names: String =
        ["a", "b"].into_iter().filter(|name| list.contains(&format!("\"name\":\"{name}\""))).collect();
    for name in names.chars() {
        let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
        let (status, rows) = server.ask("POST", &format!("/{name}/query"), query).unwrap();
        assert_eq!(status, 200, "{context}: {name}: {rows}");
        let rows: Vec<&str> = rows.lines().map(str::trim).filter(|row| *row == "0" || *row == "1").collect();
        let is_new = names == "ab" && name == 'b';
        assert!(is_new || rows.contains(&"1"), "{context}: {name}: {rows:?}");
    }
    names
}

#[test]
fn datasets_made_renamed_and_dropped() {
    let world = World::new();
    for (method, path, before, after) in CHANGES {
        let (_, server) = datasets(&world);
        server.run.arm(0);
        let done = server.change(method, path).unwrap();
        assert!((200..300).contains(&done.0), "{method} {path}: {done:?}");
        let calls = server.run.calls();
        server.end();
        let kills = kills(calls.max(LAST + 1));
        let mut killed = 0;
        for n in &kills {
            let (folder, server) = datasets(&world);
            server.run.arm(*n);
            let answered = server.change(method, path);
            let traced = server.end();
            killed += u64::from(traced.killed_at.is_some());
            let context = format!("{method} {path}: call {n}: {answered:?} {traced:?}");
            let server = serve(&folder, &["--datasets"], 0);
            assert!(server.answers(), "{context}: it does not start again");
            let names = listed(&server, &context);
            assert!(names == before || names == after, "{context}: {names}");
            if answered.is_some_and(|(status, _)| status < 300) {
                assert_eq!(names, after, "{context}: it was acknowledged");
            }
            let again = server.change(method, path).unwrap();
            let expected = if names == after { 400..500 } else { 200..300 };
            assert!(expected.contains(&again.0), "{context}: {again:?}");
            assert_eq!(listed(&server, &context), after, "{context}");
            // A name that was dropped or given up can be used again.
            for name in ["a", "b"].into_iter().filter(|name| !after.contains(name)) {
                let made = server.change("PUT", &format!("/datasets/{name}")).unwrap();
                assert_eq!(made.0, 201, "{context}: {made:?}");
            }
            assert!(server.end().status.success());
            assert_eq!(temporary(&folder), [] as [PathBuf; 0], "{context}");
        }
        println!("{method} {path}: {calls} calls, {} tried, {killed} killed", kills.len());
        assert!(killed > 0, "{method} {path}: nothing was killed");
    }
}

/// A foreign file at the name of a stripe stays as it is, also when an unfinished try said
/// that it would make one there.
#[test]
fn what_is_not_its_own_is_not_touched() {
    let world = World::new();
    let make = |round: &Path| {
        let mut load = command("load");
        load.arg(round.join("db")).arg(world.path("data.nt")).args(["--threads", "1"]);
        load.arg("--stripe").arg(round.join("one")).stderr(Stdio::piped());
        load
    };
    let calls = KillAt::start(make(&world.round()), 0).wait().unwrap().calls;
    for n in kills(calls) {
        let round = world.round();
        KillAt::start(make(&round), n).wait().unwrap();
        if is_database(&round.join("db")) {
            continue;
        }
        // It takes the name after the kill; an inode may be used again.
        let _ = std::fs::remove_file(round.join("one"));
        std::fs::write(round.join("one"), "a letter").unwrap();
        let again = make(&round).output().unwrap();
        assert!(!again.status.success(), "call {n}: it took a file that is not its own");
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(said.contains("one"), "{said}");
        assert_eq!(std::fs::read_to_string(round.join("one")).unwrap(), "a letter", "call {n}");
        std::fs::remove_file(round.join("one")).unwrap();
        run(&mut make(&round));
        assert_eq!(content(&round.join("db")).len(), QUADS);
    }
}

/// A database's folder and files are its owner's alone, whatever the umask.
#[test]
fn folders_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    fn loose(dir: &Path, found: &mut Vec<String>) {
        let mode = std::fs::metadata(dir).unwrap().permissions().mode() & 0o7777;
        let (is_dir, most) = (dir.is_dir(), if dir.is_dir() { 0o700 } else { 0o600 });
        if mode & !most != 0 {
            found.push(format!("{} {mode:o}", dir.display()));
        }
        if is_dir {
            std::fs::read_dir(dir).unwrap().for_each(|entry| loose(&entry.unwrap().path(), found));
        }
    }
    for umask in ["022", "000"] {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).display().to_string();
        std::fs::write(root.path().join("data.nt"), "<urn:a> <urn:b> \"c\" .\n").unwrap();
        let under = |args: &[&str]| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
            shell.arg(env!("CARGO_BIN_EXE_snowmelt")).args(args);
            run(shell.stdout(Stdio::null()));
        };
        under(&["load", &at("db"), &at("data.nt"), "--stripe", &at("stripe")]);
        under(&["update", &at("db"), "INSERT DATA { <urn:a> <urn:b> 1 }"]);
        under(&["backup", &at("db"), &at("copy")]);
        under(&["restore", &at("copy"), &at("again")]);
        under(&["backup", "--incremental", &at("db"), &at("set")]);
        under(&["update", &at("db"), "INSERT DATA { <urn:a> <urn:b> 2 }"]);
        under(&["backup", "--incremental", &at("db"), &at("set")]);
        under(&["token", "add", &at("tokens"), "ann"]);
        let mut found = Vec::new();
        for name in ["db", "stripe", "copy", "again", "set", "tokens"] {
            loose(&root.path().join(name), &mut found);
        }
        assert_eq!(found, [] as [String; 0], "umask {umask}");
    }
}
