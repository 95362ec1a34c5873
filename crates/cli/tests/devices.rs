//! Switches of I/O and of where a database lies, on the command line and in the configuration
//! file: they are taken, kept where they belong to the database, and refused with a reason.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::bench::{Bench, DATA, has};

const COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("data.ttl", DATA);
    bench
}

fn count(bench: &Bench, db: &str, more: &[&str]) -> String {
    bench.ok(&[&["query", db, COUNT, "--format", "csv"], more].concat())
}

/// The message of a command that is refused, in one line or with its usage.
fn refusal(bench: &Bench, args: &[&str]) -> String {
    let output = bench.run(args);
    assert!(!output.status.success(), "{args:?} was taken");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn every_setting_of_io_is_under_help_and_in_the_file() {
    let bench = Bench::loaded();
    let settings = [
        ("engine", "\"threads\""),
        ("fairness", "9"),
        ("depth", "3"),
        ("gap", "\"model\""),
        ("in-place", "\"off\""),
        ("descriptors", "4"),
        ("extent-misses", "3"),
        ("extent-window", "1.5"),
        ("scan-leaves", "100"),
        ("scan-after", "4"),
        ("device", "[\"real\", \"0=sim:ssd\"]"),
    ];
    let help = bench.ok(&["query", "--help", "io"]);
    for (name, value) in settings {
        has(&help, &[&format!("--{name}")]);
        bench.write("db/snowmelt.toml", &format!("{name} = {value}\n"));
        has(&count(&bench, "db", &[]), &["5"]);
    }
    for (name, value, bounds) in [
        ("engine", "\"posix-aio\"", "uring, threads and inline"),
        ("depth", "0", "1..=1024"),
        ("gap", "256", "0 to 255"),
        ("extent-window", "0", "0.001 to 86400"),
    ] {
        bench.write("db/snowmelt.toml", &format!("{name} = {value}\n"));
        has(&refusal(&bench, &["query", "db", COUNT]), &[name, bounds]);
    }
    let load = bench.ok(&["load", "--help", "io"]);
    has(&load, &["--stripe", "--extent-size", "--place", "--destroy"]);
}

#[test]
fn an_extent_size_is_for_new_databases() {
    let bench = bench();
    bench.ok(&["load", "db", "data.ttl", "--extent-size", "64k"]);
    let other = refusal(&bench, &["load", "db", "data.ttl", "--extent-size", "1m"]);
    has(&other, &["extents of 64k", "--extent-size 1m is for new databases"]);
    has(&refusal(&bench, &["serve", "db", "--extent-size", "1m", "--listen", "0"]), &["extents of 64k"]);
    bench.ok(&["load", "db", "data.ttl", "--extent-size", "64k"]);
    has(&count(&bench, "db", &[]), &["5"]);
    has(&refusal(&bench, &["load", "new", "data.ttl", "--extent-size", "24k"]), &["power of two", "512m"]);
    assert!(!bench.path("new").exists());
}

#[test]
fn each_stripe_has_its_device_and_its_profile() {
    let bench = bench();
    // Long enough to be measured.
    let large = ["--extent-size", "8m"];
    let load = ["load", "db", "data.ttl", "--stripe", "a", "--stripe", "b,device=sim:nvme"];
    bench.ok(&[&load[..], &large].concat());
    let b = bench.path("b");
    assert!(bench.path("a").is_file() && b.is_file());
    for device in ["1=sim:ssd", "sim:raid0:nvme*2,chunk=8k", "0=sim:nvme", "real"] {
        has(&count(&bench, "db", &["--device", device]), &["5"]);
    }
    let beyond = bench.error(&["query", "db", COUNT, "--device", "2=sim:ssd"]);
    has(&beyond, &["stripe 2", "0 to 1"]);
    has(&refusal(&bench, &["query", "db", COUNT, "--device", "1=sim:floppy"]), &["hdd-7200"]);
    // To name the stripes again is no contradiction; to name others is.
    bench.ok(&["load", "db", "data.ttl", "--stripe", "a", "--stripe", "b"]);
    has(&bench.error(&["load", "db", "data.ttl", "--stripe", "a"]), &["lies on the stripes", "/b"]);
    // Room that was reserved and never written is not measured.
    let unwritten = bench.run(&["probe", "db", "--seconds", "0.3", "--engine", "threads"]);
    match unwritten.status.success() {
        true => eprintln!("skipped: this file system does not tell what was written"),
        false => has(&String::from_utf8(unwritten.stderr).unwrap(), &["were ever written"]),
    }
    for stripe in ["a", "b"].map(|name| bench.path(name)) {
        let bytes = std::fs::read(&stripe).unwrap();
        let file = std::fs::File::options().write(true).open(&stripe).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    }
    bench.ok(&["probe", "db", "--seconds", "0.3", "--engine", "threads"]);
    let kept = ["a.profile.json", "b.profile.json"].map(|name| bench.path(name));
    assert!(kept.iter().all(|path| path.is_file()), "a profile beside each stripe");
    let profile = format!("c,profile={}", kept[0].display());
    bench.ok(&["load", "other", "data.ttl", "--stripe", &profile]);
    assert!(bench.path("c.profile.json").is_file(), "what was measured elsewhere is kept");
    has(&count(&bench, "other", &[]), &["5"]);
    let none = bench.error(&["load", "third", "data.ttl", "--stripe", "d,profile=data.ttl"]);
    has(&none, &["data.ttl"]);
    assert!(!bench.path("third").exists() && !bench.path("d").exists());
}

#[test]
fn trees_are_placed_when_a_database_is_made() {
    let bench = bench();
    let stripes = ["--stripe", "a", "--stripe", "b"];
    let load = |more: &[&'static str]| [&["load", "db", "data.ttl"], &stripes[..], more].concat();
    has(&refusal(&bench, &load(&["--place", "texts=1"])), &["texts", "text-hash"]);
    has(&bench.error(&load(&["--place", "psog=2"])), &["stripe 2", "0 to 1"]);
    bench.ok(&load(&["--place", "psog=1,text=0"]));
    has(&count(&bench, "db", &[]), &["5"]);
    bench.ok(&["load", "db", "data.ttl"]);
    bench.ok(&["check", "db"]);
    let other = bench.error(&["load", "db", "data.ttl", "--place", "psog=0"]);
    has(&other, &["psog=1,text=0", "is for a new database"]);
}

#[test]
fn a_server_makes_a_database_on_stripes() {
    let bench = bench();
    let serve = ["serve", "new", "--listen", "0", "--stripe", "a", "--stripe", "b", "--place", "op=1"];
    let mut child = bench.command(&serve).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = lines.map_while(Result::ok).find(|line| line.contains("http://127.0.0.1:"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(listening.is_some(), "the server told no address");
    assert!(bench.path("a").is_file() && bench.path("b").is_file());
    bench.ok(&["load", "new", "data.ttl", "--place", "op=1"]);
    has(&count(&bench, "new", &[]), &["5"]);
}
