//! Hostile requests against the real server, one after the other and 64 at once, in little memory.
//!
//! Each case is a request that anybody who reaches the server can send. Afterwards the server
//! must live, its answer must be right or an error that names a limit, the next query must be
//! answered, and no more memory than the budget and 128 MiB may have been resident; after the
//! storm the memory is given back.
//!
//! `unmended.txt` lists cases that do not hold yet. One that holds while it is on the list
//! fails the test: the list only shrinks.
//!
//! The long form takes a million triples, larger requests, and each case 64 times at once:
//! `benches/hostility.sh`, or `cargo test --release --test hostility -- --ignored --nocapture`.
//! `SNOWMELT_CASE=text` takes only cases with that in their name.

#![forbid(unsafe_code)]

mod case;
mod client;
mod deep;
mod documents;
mod http;
mod large;
mod make;
mod probe;
mod storm;
mod target;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use case::{Attack, Case, Scale};
use client::ask;
use probe::probe;
use snowmelt_base::random::lcg;
use snowmelt_bsbm::{Config, Generator, WordLists};
use storm::{AT_ONCE, Bounds, Clients, state_after, storm};
use target::Target;

const MIB: u64 = 1 << 20;
/// The name under which the list knows the storm.
const STORM: &str = "64 of all at once";

/// A form of the suite.
struct Form {
    bounds: Bounds,
    scale: Scale,
    products: u32,
    /// whether cases that hold are told of, so that a failure's text stays short enough to be kept
    tells_all: bool,
}

const SHORT: Form = Form {
    bounds: Bounds { memory_bytes: 96 * MIB, timeout_s: 5, grace: Duration::from_secs(10) },
    scale: Scale { nodes: 3_000, deep: 20_000, triples: 60_000, hog_ms: 400 },
    products: 100,
    tells_all: false,
};

const LONG: Form = Form {
    bounds: Bounds { memory_bytes: 256 * MIB, timeout_s: 20, grace: Duration::from_secs(5) },
    scale: Scale { nodes: 20_000, deep: 20_000, triples: 2_000_000, hog_ms: 3_000 },
    products: 2_600,
    tells_all: true,
};

fn cases() -> Vec<Case> {
    let mut all = deep::cases();
    all.extend(large::cases());
    all.extend(documents::cases());
    all.extend(http::cases());
    if let Ok(part) = std::env::var("SNOWMELT_CASE") {
        all.retain(|case| case.name.contains(&part));
    }
    all
}

/// The ring and the benchmark's data, loaded.
fn database(dir: &Path, form: &Form) -> PathBuf {
    let (db, ring, shop) = (dir.join("db"), dir.join("ring.nt"), dir.join("shop.nt"));
    let mut out = std::io::BufWriter::new(std::fs::File::create(&ring).expect("a file can be made"));
    let nodes = form.scale.nodes;
    for i in 0..nodes {
        writeln!(
            out,
            "<urn:n{i}> <urn:next> <urn:n{}> .\n<urn:n{i}> <urn:color> \"{}\" .\n<urn:n{i}> <urn:text> \"{}\" .",
            (i + 1) % nodes,
            i % 7,
            probe::text(i)
        )
        .expect("the disk has room");
    }
    out.flush().expect("the disk has room");
    let run = |args: &[&std::ffi::OsStr]| {
        let done = Command::new(env!("CARGO_BIN_EXE_snowmelt")).args(args).output().expect("it runs");
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let config = Config { products: form.products, words: WordLists::synthetic(), update_transactions: None };
    let mut out = std::io::BufWriter::new(std::fs::File::create(&shop).expect("the disk has room"));
    Generator::new(config).expect("it is a config").write(&mut out, None, |_| {}).expect("the disk has room");
    drop(out);
    run(&[
        "load".as_ref(),
        db.as_os_str(),
        ring.as_os_str(),
        shop.as_os_str(),
        "--memory".as_ref(),
        "512MiB".as_ref(),
    ]);
    std::fs::remove_file(shop).expect("it was made");
    db
}

/// A running suite: the server, started again after it died.
struct Suite<'a> {
    form: &'a Form,
    target: Target,
}

impl Suite<'_> {
    /// Sends one request; what is wrong with what came of it.
    fn attack(&mut self, case: &Case) -> Result<(), String> {
        self.target.forget_peak();
        let outcome = send(case, self.form, &self.target, Clients::One);
        self.after().and(outcome)
    }

    fn after(&mut self) -> Result<(), String> {
        let scale = &self.form.scale;
        state_after(&mut self.target, &self.form.bounds, |target, patience| probe(target, scale, patience))
    }

    /// All these cases from many clients; the server must live, answer others meanwhile, and give
    /// memory back.
    fn storm(&mut self, name: &str, cases: &[&Case]) -> Vec<String> {
        self.target.forget_peak();
        let (form, target) = (self.form, &self.target);
        let mut wrong = storm(
            cases,
            |case| {
                let outcome = send(case, form, target, Clients::Many);
                outcome.map_err(|error| format!("{}: {error}", case.name))
            },
            || probe(target, &form.scale, form.bounds.patience(Clients::Many)),
        );
        wrong.truncate(10);
        if let Err(error) = self.after() {
            wrong.insert(0, error);
        }
        wrong.into_iter().map(|error| format!("{name}: {error}")).collect()
    }

    /// Resident memory when everything has ended: at most the budget, of which the pool keeps
    /// its part, and the program.
    fn settled(&self) -> Result<(), String> {
        let bound = self.form.bounds.memory_bytes + 64 * MIB;
        let begun = Instant::now();
        while self.target.resident() > bound {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err(format!(
                    "{} MiB stay resident, of {}",
                    self.target.resident() / MIB,
                    bound / MIB
                ));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn send(case: &Case, form: &Form, target: &Target, clients: Clients) -> Result<(), String> {
    let in_storm = clients == Clients::Many;
    if let Attack::Scenario(run) = &case.attack {
        return if in_storm { Ok(()) } else { run(target, &form.scale) };
    }
    let host = target.address.to_string();
    let send = |out: &mut dyn Write| case.send(&form.scale, &host, out);
    let reply = ask(target.address, form.bounds.patience(clients), !case.head_only, &send);
    case.judge(&form.scale, &reply, in_storm)
}

/// Cases that do not hold yet, each with the reason after a tab.
fn unmended() -> BTreeMap<&'static str, &'static str> {
    include_str!("unmended.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once('\t').unwrap_or((line, "")))
        .collect()
}

fn start(dir: &Path, form: &Form) -> Target {
    form.bounds.start(database(dir, form))
}

/// Every case alone. Returns what is wrong and what should leave the list.
fn alone(suite: &mut Suite<'_>, cases: &[Case]) -> Vec<String> {
    let unmended = unmended();
    let mut wrong = Vec::new();
    for case in cases {
        let begun = Instant::now();
        let outcome = suite.attack(case);
        let listed = unmended.get(case.name);
        let (seconds, peak) = (begun.elapsed().as_secs_f64(), suite.target.peak() / MIB);
        let told = outcome.as_ref().err().map_or("holds", |error| error);
        if suite.form.tells_all || outcome.is_err() || seconds > 5.0 {
            println!("{seconds:6.2} s {peak:5} MiB  {}: {told}", case.name);
        }
        match (outcome, listed) {
            (Ok(()), Some(_)) => wrong.push(format!("{}: holds, and is to be taken off the list", case.name)),
            (Err(error), None) => wrong.push(format!("{}: {error}", case.name)),
            _ => {}
        }
    }
    wrong
}

fn mended(cases: &[Case]) -> Vec<&Case> {
    let unmended = unmended();
    cases.iter().filter(|case| !unmended.contains_key(case.name)).collect()
}

/// Another order for each seed.
fn shuffled(mut cases: Vec<&Case>, mut random: u64) -> Vec<&Case> {
    for i in (1..cases.len()).rev() {
        cases.swap(i, (lcg(&mut random) >> 33) as usize % (i + 1));
    }
    cases
}

#[test]
fn names_are_unique_and_the_list_is_of_them() {
    let mut names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "two cases have one name");
    if std::env::var("SNOWMELT_CASE").is_err() {
        assert!(names.len() >= 60, "{} cases are no suite", names.len());
        names.push(STORM);
        let stray: Vec<_> = unmended().into_keys().filter(|name| !names.contains(name)).collect();
        assert!(stray.is_empty(), "no such cases: {stray:?}");
    }
}

#[test]
fn no_request_stops_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let mut suite = Suite { form: &SHORT, target: start(dir.path(), &SHORT) };
    let cases = cases();
    let mut wrong = alone(&mut suite, &cases);
    let all = shuffled(mended(&cases), snowmelt_base::test_seed(1));
    let found = suite.storm(STORM, &all);
    match unmended().get(STORM) {
        None => wrong.extend(found),
        Some(_) if found.is_empty() => {
            wrong.push(format!("{STORM}: holds, and is to be taken off the list"));
        }
        Some(_) => println!("{STORM}: {} wrong", found.len()),
    }
    wrong.extend(suite.settled().err());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
#[ignore = "the long form: a million triples, each case 64 times at once"]
fn no_request_stops_the_server_at_length() {
    let dir = tempfile::tempdir().unwrap();
    let mut suite = Suite { form: &LONG, target: start(dir.path(), &LONG) };
    let cases = cases();
    let mut wrong = alone(&mut suite, &cases);
    wrong.extend(suite.settled().err());
    for case in mended(&cases) {
        let begun = Instant::now();
        let found = suite.storm(&format!("64 × {}", case.name), &[case; AT_ONCE]);
        let (seconds, peak) = (begun.elapsed().as_secs_f64(), suite.target.peak() / MIB);
        println!("{seconds:6.2} s {peak:5} MiB  64 × {}: {} wrong", case.name, found.len());
        wrong.extend(found);
    }
    for round in 0..4 {
        let all = shuffled(mended(&cases), snowmelt_base::test_seed(1) + round);
        wrong.extend(suite.storm(STORM, &all));
    }
    wrong.extend(suite.settled().err());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
