//! `--meters`, `stats --meters` with a server and without one, and the log of waits.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::Server;
use support::bench::Bench;

const QUERY: &str = "SELECT * { ?s <urn:p> ?o }";

fn loaded() -> Bench {
    Bench::with_triples(20_000, "a text of some length,")
}

fn read_meters(bench: &Bench, more: &[&str]) -> Value {
    serde_json::from_str(&bench.ok(&[&["stats", "db", "--meters", "--format", "json"], more].concat()))
        .unwrap()
}

fn trees(meters: &Value, of: &str) -> Vec<Value> {
    meters["trees"].as_array().unwrap().iter().map(|tree| tree[of].clone()).collect()
}

/// The sum of a column of the table of devices, counted from the right.
fn column(report: &str, from_right: usize) -> f64 {
    let table = report.split_once("devices:\n").expect("a table of devices").1;
    let rows = table.lines().skip(1).take_while(|line| line.starts_with("  "));
    let cell = |line: &str| line.split_whitespace().rev().nth(from_right).unwrap().parse::<f64>().unwrap();
    rows.map(cell).sum()
}

#[test]
fn commands_say_at_the_end_what_was_read() {
    let bench = loaded();
    for (args, tree) in [
        (&["query", "db", QUERY, "--meters"][..], "psog"),
        (&["update", "db", "INSERT { ?s <urn:q> 1 } WHERE { ?s <urn:p> \"none\" }", "--meters"], "iri"),
        (&["dump", "db", "--meters"], "sp"),
        (&["check", "db", "--meters"], "psog"),
        (&["backup", "db", "copy", "--meters"], "psog"),
        (&["load", "db", "data.nt", "--meters"], "other"),
        (&["compact", "db", "--meters"], "psog"),
    ] {
        let [_, report] = bench.both(args);
        assert!(
            !report.contains("\n0 pages read, ") || report.contains("\n0 pages read, 0 of them"),
            "{report}"
        );
        assert!(report.contains("activity: ") && report.contains("checkpoints: "), "{args:?}: {report}");
        if args[0] != "backup" && args[0] != "compact" {
            assert!(report.lines().any(|line| line.trim_start().starts_with(tree)), "{args:?}: {report}");
        }
    }
    let [answer, report] = bench.both(&["query", "db", QUERY, "--format", "csv", "--meters"]);
    assert_eq!(answer.lines().count(), 20_001, "the answer alone is on standard output");
    assert!(report.contains("  query: "), "{report}");
    let [_, nothing] = bench.both(&["query", "db", QUERY]);
    assert_eq!(nothing, "");
}

#[test]
fn the_log_of_waits_is_what_the_meters_say() {
    let bench = loaded();
    let [_, report] =
        bench.both(&["query", "db", QUERY, "--meters", "--waits", "waits.tsv", "--device", "sim:wide-slow"]);
    let log = std::fs::read_to_string(bench.path("waits.tsv")).unwrap();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0], ["at_ms", "waited_ms", "class", "tree", "page", "pages", "stripe", "offset"]);
    const BLOCKED: usize = 1;
    const WAIT_MS: usize = 0;
    assert!(lines.len() > 1, "{log}");
    assert_eq!(column(&report, BLOCKED), (lines.len() - 1) as f64, "{log}\n{report}");
    let waited: f64 = lines[1..].iter().map(|line| line[1].parse::<f64>().unwrap()).sum();
    assert!((column(&report, WAIT_MS) - waited).abs() < 0.01, "{waited}: {report}");
    let error = bench.run(&["query", "db", QUERY, "--waits", "no/such/folder"]);
    assert!(String::from_utf8_lossy(&error.stderr).contains("cannot write no/such/folder"));
}

#[test]
fn meters_of_a_server_are_shown_sorted_and_reset() {
    let bench = loaded();
    let server = Server::start(&bench.path("db"), &[]);
    assert_eq!(server.client().query(QUERY).unwrap().len(), 20_000);
    let [table, _] = bench.both(&["stats", "db", "--meters"]);
    assert!(table.contains("  http query: ") && table.contains("psog"), "{table}");
    let meters = read_meters(&bench, &["--sort", "buffers"]);
    let buffers: Vec<u64> = trees(&meters, "buffers").iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(buffers[0] > 0 && buffers.iter().rev().is_sorted(), "{buffers:?}");
    let wrong = bench.run(&["stats", "db", "--meters", "--sort", "price"]);
    assert_eq!(wrong.status.code(), Some(2));

    let reads = meters["reads"]["pages"].as_u64().unwrap();
    assert!(reads > 0);
    bench.both(&["stats", "db", "--reset", "account:http query"]);
    let meters = read_meters(&bench, &[]);
    let account = meters["accounts"].as_array().unwrap().iter().find(|a| a["account"] == "http query");
    assert_eq!(account.unwrap()["rnd"], 0);
    assert!(meters["reads"]["pages"].as_u64().unwrap() >= reads, "the others go on");
    // A connection is an account while it is open.
    let mut client = server.client();
    assert_eq!(client.query(QUERY).unwrap().len(), 20_000);
    // That of the first query closes soon.
    let until = Instant::now() + Duration::from_secs(60);
    let (name, rows) = loop {
        assert!(Instant::now() < until, "one connection is open");
        let meters = read_meters(&bench, &[]);
        let accounts = meters["accounts"].as_array().unwrap().iter();
        let named = accounts.map(|a| (a["account"].as_str().unwrap().to_owned(), a["seq"].as_u64().unwrap()));
        let open: Vec<_> = named.filter(|(name, _)| name.starts_with("connection 127.0.0.1:")).collect();
        if let [one] = &open[..] {
            break one.clone();
        }
    };
    assert!(rows >= 20_000, "{name}: {rows}");
    bench.both(&["stats", "db", "--reset", &format!("account:{name}")]);
    let meters = read_meters(&bench, &[]);
    let account = meters["accounts"].as_array().unwrap().iter().find(|a| a["account"] == *name);
    assert_eq!(account.unwrap()["seq"], 0);
    drop(client);
    // Shown first, then reset.
    let shown = read_meters(&bench, &["--reset"]);
    assert!(shown["reads"]["pages"].as_u64().unwrap() >= reads);
    assert_eq!(read_meters(&bench, &[])["reads"]["pages"], 0);
    let unknown = bench.run(&["stats", "db", "--reset", "tree:nothing"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no tree 'nothing'"), "{unknown:?}");
}

#[test]
fn intervals_are_shown_until_they_are_interrupted() {
    let bench = loaded();
    let server = Server::start(&bench.path("db"), &[]);
    let mut watching = bench
        .command(&["stats", "db", "--meters", "--every", "200ms", "--format", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let lookups = |line: &Value| line["meters"]["activity"]["seq"].as_u64().unwrap();
    // Its first one may begin before or after the query.
    next();
    server.client().query(QUERY).unwrap();
    let seen: Vec<u64> = (0..8).map(|_| lookups(&next())).collect();
    assert!(seen.iter().sum::<u64>() >= 20_000, "{seen:?}");
    assert_eq!(lookups(&next()), 0, "an interval in which nothing happened");
    assert!(next()["seconds"].as_f64().unwrap() >= 0.2);
    rustix::process::kill_process(rustix::process::Pid::from_child(&watching), rustix::process::Signal::INT)
        .unwrap();
    assert!(watching.wait().unwrap().success());
}

#[test]
fn without_a_server_meters_are_those_of_opening() {
    let bench = loaded();
    let meters = read_meters(&bench, &[]);
    assert_eq!((&meters["activity"]["rnd"], &meters["reads"]["pages"]), (&0.into(), &0.into()));
    assert!(meters["pool"]["frames"].as_u64().unwrap() > 0);
    let output = bench.run(&["stats", "db", "--reset"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no server has the database open"));
}
