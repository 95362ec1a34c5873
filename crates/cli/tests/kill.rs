//! kill -9 of the real server under 16 writers and 16 readers, again and again, and SIGTERM
//! with a short deadline: every acknowledged commit is there afterwards, and nothing but whole
//! commits.
//!
//! Writer w's n-th request adds `w done n`, its twin in a named graph and a text, and moves `w
//! current` from n − 1 to n. So after any crash the numbers of `done`, of the twins and of the
//! texts are 1 to m, `current` is m alone, and m is the last acknowledged number or the one
//! after it. The readers ask for the same while it runs.
//!
//! `SNOWMELT_KILL_ROUNDS=200` for the long run; 20 rounds otherwise. `SNOWMELT_SEED` gives
//! other moments of the kills.

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use snowmelt_base::random::lcg;
use support::{Client, Server, snowmelt};

const WRITERS: usize = 16;
const READERS: usize = 16;

/// Acknowledged commits, by writer.
#[derive(Default)]
struct Acknowledged([AtomicU64; WRITERS]);

impl Acknowledged {
    fn commits_of(&self, writer: usize) -> u64 {
        self.0[writer].load(Ordering::SeqCst)
    }
}

fn update_text(writer: usize, n: u64) -> String {
    let before = n - 1;
    format!(
        "PREFIX : <urn:> DELETE DATA {{ :w{writer} :current {before} }} ; \
         INSERT DATA {{ :w{writer} :done {n} ; :current {n} ; :says \"writer {writer} says {n} in words\" . \
         GRAPH :g{writer} {{ :w{writer} :twin {n} }} }}"
    )
}

/// Writes until the server is gone.
fn write(mut client: Client, writer: usize, acknowledged: &Acknowledged) {
    loop {
        let next = acknowledged.commits_of(writer) + 1;
        match client.update(&update_text(writer, next)) {
            Ok((200, _)) => acknowledged.0[writer].store(next, Ordering::SeqCst),
            Ok((status, body)) => panic!("writer {writer}: {status} {body}"),
            Err(_) => return,
        }
    }
}

/// Reads until the server is gone; what is read must be a state.
fn read(mut client: Client, reader: usize, acknowledged: &Acknowledged, wrong: &AtomicBool) {
    let writer = reader % WRITERS;
    loop {
        let known = acknowledged.commits_of(writer);
        let query = format!(
            "PREFIX : <urn:> SELECT ?c (COUNT(?d) AS ?n) (MAX(?d) AS ?m) {{ :w{writer} :current ?c ; :done ?d }} GROUP BY ?c"
        );
        let Ok(rows) = client.query(&query) else { return };
        let numbers: Vec<Vec<u64>> =
            rows.iter().map(|row| row.split(',').map(|n| n.parse().unwrap_or(u64::MAX)).collect()).collect();
        let right = match &numbers[..] {
            [] => known == 0,
            [row] => row.len() == 3 && row[0] == row[1] && row[1] == row[2] && row[0] >= known,
            _ => false,
        };
        if !right {
            wrong.store(true, Ordering::SeqCst);
            panic!("writer {writer}, acknowledged {known}: {rows:?}");
        }
    }
}

/// Everything a writer left after a crash.
fn check(client: &mut Client, writer: usize, acknowledged: &Acknowledged) {
    let mut numbers = |query: &str| -> Vec<u64> {
        let rows = client.query(&format!("PREFIX : <urn:> SELECT ?n {{ {query} }} ORDER BY ?n")).unwrap();
        rows.iter().map(|n| n.parse().unwrap()).collect()
    };
    let done = numbers(&format!(":w{writer} :done ?n"));
    let last = done.len() as u64;
    let known = acknowledged.commits_of(writer);
    assert!(last == known || last == known + 1, "writer {writer}: {known} acknowledged, {last} there");
    assert_eq!(done, (1..=last).collect::<Vec<u64>>(), "writer {writer}");
    assert_eq!(numbers(&format!("GRAPH :g{writer} {{ :w{writer} :twin ?n }}")), done, "writer {writer}");
    let current = if last == 0 { Vec::new() } else { vec![last] };
    assert_eq!(numbers(&format!(":w{writer} :current ?n")), current, "writer {writer}");
    let texts = client.query(&format!("PREFIX : <urn:> SELECT ?t {{ :w{writer} :says ?t }}")).unwrap();
    let mut expected: Vec<String> =
        (1..=last).map(|n| format!("writer {writer} says {n} in words")).collect();
    let mut texts: Vec<String> = texts.iter().map(|t| t.trim_matches('"').to_owned()).collect();
    texts.sort();
    expected.sort();
    assert_eq!(texts, expected, "writer {writer}");
    acknowledged.0[writer].store(last, Ordering::SeqCst);
}

/// Writers and readers until `end` has ended the server.
fn under_load(server: Server, acknowledged: &Acknowledged, run: Duration, end: impl FnOnce(Server)) {
    let wrong = AtomicBool::new(false);
    thread::scope(|scope| {
        let wrong = &wrong;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let client = server.client();
                scope.spawn(move || write(client, writer, acknowledged))
            })
            .collect();
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let client = server.client();
                scope.spawn(move || read(client, reader, acknowledged, wrong))
            })
            .collect();
        let begun = Instant::now();
        while begun.elapsed() < run && !wrong.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        end(server);
        writers
            .into_iter()
            .chain(readers)
            .for_each(|client| client.join().expect("a client saw what cannot be"));
    });
}

/// A database with something in it.
fn database(dir: &Path) -> std::path::PathBuf {
    let file = dir.join("data.nt");
    let lines: Vec<String> = (0..20_000)
        .map(|i| format!("<urn:s{}> <urn:p{}> \"value {i} of the load\" .\n", i % 3000, i % 17))
        .collect();
    std::fs::write(&file, lines.concat()).unwrap();
    let db = dir.join("db");
    let loaded = snowmelt().arg("load").args([&db, &file]).output().unwrap();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    db
}

fn assert_sound(db: &Path) {
    let checked = snowmelt().arg("check").arg(db).output().unwrap();
    let said =
        String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}

/// Starts the server again; how long until the first right answer.
fn restart(db: &Path, acknowledged: &Acknowledged, args: &[&str]) -> (Server, Duration) {
    let begun = Instant::now();
    let server = Server::start(db, args);
    let mut client = server.client();
    check(&mut client, 0, acknowledged);
    let first = begun.elapsed();
    (1..WRITERS).for_each(|writer| check(&mut client, writer, acknowledged));
    (server, first)
}

fn rounds() -> u64 {
    match std::env::var("SNOWMELT_KILL_ROUNDS") {
        Ok(text) => text.parse().expect("SNOWMELT_KILL_ROUNDS is a number"),
        Err(_) => 20,
    }
}

#[test]
fn killed_servers_lose_no_acknowledged_commit() {
    let mut random = snowmelt_base::test_seed(1);
    let dir = tempfile::tempdir().unwrap();
    let db = database(dir.path());
    let acknowledged = Acknowledged::default();
    let mut times = Vec::new();
    let mut server = Server::start(&db, &[]);
    for _ in 0..rounds() {
        let run = Duration::from_millis(20 + (lcg(&mut random) >> 33) % 600);
        under_load(server, &acknowledged, run, Server::kill);
        let (again, first) = restart(&db, &acknowledged, &[]);
        server = again;
        times.push(first);
    }
    server.kill();
    assert_sound(&db);
    times.sort();
    let commits: u64 = (0..WRITERS).map(|writer| acknowledged.commits_of(writer)).sum();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{} kills, {commits} commits; time to the first right query: median {median:?}, most {most:?}",
        times.len()
    );
    assert!(commits > 100, "{commits} commits are no load");
}

#[test]
fn sigterm_ends_in_time_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = database(dir.path());
    let acknowledged = Acknowledged::default();
    let server = Server::start(&db, &["--shutdown-deadline", "1"]);
    under_load(server, &acknowledged, Duration::from_secs(3), |server| {
        let (status, took) = server.terminate();
        println!("ended after {took:?}");
        assert!(status.success(), "{status}");
        assert!(took < Duration::from_secs(3), "a deadline of 1 s, ended after {took:?}");
    });
    let commits: u64 = (0..WRITERS).map(|writer| acknowledged.commits_of(writer)).sum();
    assert!(commits > 50, "{commits} commits are no backlog");
    let (server, _) = restart(&db, &acknowledged, &[]);
    server.kill();
    assert_sound(&db);
}
