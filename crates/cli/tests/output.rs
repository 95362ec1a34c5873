//! Standard output that is closed or full, and files that may not grow: all commands say so by
//! their exit status and a line, and none panics.

mod support;

use std::fs::File;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use support::Server;
use support::bench::{Bench, has};

/// Commands that write to standard output. Each is run twice, so those that make something have `%`
/// in its name.
const LINES: [&[&str]; 20] = [
    &["--help"],
    &["--version"],
    &["serve", "--help", "io"],
    &["query", "--help", "limits"],
    &["query", "db", "SELECT * { ?s ?p ?o }"],
    &["query", "db", "SELECT * { ?s ?p ?o }", "--format", "json"],
    &["query", "db", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"],
    &["query", "db", "ASK {}", "--explain"],
    &["dump", "db"],
    &["dump", "db", "--format", "ttl"],
    &["stats", "db"],
    &["stats", "db", "--meters"],
    &["check", "db"],
    &["compact", "db"],
    &["backup", "db", "copy%"],
    &["backup", "db", "set%", "--incremental"],
    &["restore", "set", "--list"],
    &["restore", "set", "restored%"],
    &["token", "list", "tokens.toml"],
    &["config", "check", "file.toml"],
];

fn run(bench: &Bench, line: &[&str], stdout: Stdio) -> Output {
    bench.command(line).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::create("/dev/full").unwrap().into()
}

fn bench() -> Bench {
    let bench = Bench::loaded();
    bench.ok(&["backup", "db", "set", "--incremental"]);
    bench.ok(&["token", "add", "tokens.toml", "somebody"]);
    bench.write("file.toml", "memory = \"64MiB\"\n");
    bench
}

#[test]
fn a_closed_pipe_is_quiet_and_a_full_disk_an_error() {
    let bench = bench();
    for (name, stdout, code) in [("1", closed as fn() -> Stdio, 0), ("2", full, 1)] {
        for line in LINES {
            let line: Vec<String> = line.iter().map(|word| word.replace('%', name)).collect();
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let output = run(&bench, &line, stdout());
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(code), "{line:?}: {said}");
            match code {
                0 => assert!(said.is_empty() || !said.contains("snowmelt:"), "{line:?}: {said}"),
                _ => {
                    assert!(said.contains("No space left") && !said.contains("panicked"), "{line:?}: {said}")
                }
            }
        }
    }
}

#[test]
fn the_verdict_counts_without_a_reader() {
    let bench = bench();
    let stripe = bench.path("db").join("stripe-0");
    let whole = std::fs::read(&stripe).unwrap();
    let is_unsound = |at: &usize| {
        let mut damaged = whole.clone();
        damaged[*at] ^= 0xFF;
        std::fs::write(&stripe, &damaged).unwrap();
        bench.run(&["check", "db"]).status.code() == Some(1)
    };
    (100..whole.len()).step_by(2 << 20).find(is_unsound).expect("a page that is in use");
    assert_eq!(run(&bench, &["check", "db"], closed()).status.code(), Some(1));
    assert_eq!(run(&bench, &["doctor", "db", "--memory", "9000t"], closed()).status.code(), Some(1));
}

#[test]
fn a_token_that_nobody_saw_is_told() {
    let bench = bench();
    for (name, stdout) in [("one", closed()), ("two", full())] {
        let output = run(&bench, &["token", "add", "tokens.toml", name], stdout);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        has(&said, &["was made and not shown", "token remove tokens.toml"]);
    }
}

#[test]
fn standard_error_that_is_full_is_no_panic() {
    let bench = bench();
    bench.write("more.nt", "<urn:x> <urn:y> <urn:z> .\n");
    for line in [&["load", "new", "more.nt"][..], &["update", "db", "INSERT DATA { <urn:a> <urn:b> 1 }"]] {
        let status = bench.command(line).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(0), "{line:?}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_as_a_full_disk() {
    let bench = bench();
    bench.write("more.nt", "<urn:x> <urn:y> <urn:z> .\n");
    let limited = "ulimit -f 4000; exec \"$0\" load limited more.nt";
    let program = env!("CARGO_BIN_EXE_snowmelt");
    let mut load = std::process::Command::new("sh");
    let output = load.current_dir(bench.path("")).args(["-c", limited, program]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    has(&said, &["no space left"]);

    let server = Server::start(&bench.path("db"), &[]);
    let pid = Pid::from_raw(server.id() as i32);
    let limit = Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
    prlimit(pid, Resource::Fsize, limit).unwrap();
    let many: String = (0..100_000).map(|n| format!("<urn:s{n}> <urn:p> \"{n:0>60}\" .\n")).collect();
    let mut client = server.client();
    let (status, said) = client.update(&format!("INSERT DATA {{ {many} }}")).unwrap();
    assert!(status >= 500, "{status}: {said}");
    assert_eq!(server.client().query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").unwrap(), ["5"]);
}
