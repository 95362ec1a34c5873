//! The first minutes with the command: what it tells, guesses and offers to a new user.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::bench::{Bench, has};

fn stderr(bench: &Bench, args: &[&str]) -> String {
    String::from_utf8(bench.run(args).stderr).unwrap()
}

#[test]
fn a_load_tells_the_format_it_guessed_and_whole_bytes() {
    let bench = Bench::new();
    bench.write("data.ttl", support::bench::DATA);
    let told = stderr(&bench, &["load", "db", "data.ttl"]);
    has(&told, &["data.ttl", "Turtle"]);
    assert!(!told.contains("bytes each"), "five triples have no meaningful bytes each: {told}");
    bench.write("data.unknown", "<urn:a> <urn:b> <urn:c> .");
    let told = stderr(&bench, &["load", "other", "data.unknown"]);
    has(&told, &["data.unknown: N-Triples, by its content; --format sets another"]);
}

#[test]
fn relative_iris_are_resolved_against_the_file() {
    let bench = Bench::new();
    bench.write("people.ttl", "<#ann> <name> 'Ann' .");
    bench.ok(&["load", "db", "people.ttl"]);
    let answer = bench.ok(&["query", "db", "SELECT ?s { ?s ?p ?o }", "--format", "csv"]);
    let file = bench.path("people.ttl").canonicalize().unwrap();
    has(&answer, &[&format!("file://{}#ann", file.display())]);
}

#[test]
fn a_query_sent_as_an_update_says_so_and_the_other_way_round() {
    let bench = Bench::loaded();
    has(&bench.error(&["query", "db", "DELETE WHERE { ?s ?p ?o }"]), &["update"]);
    has(&bench.error(&["update", "db", "SELECT * { ?s ?p ?o }"]), &["query"]);
    has(&bench.ok(&["query", "db", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "--format", "csv"]), &["5"]);
}

#[test]
fn a_known_prefix_that_is_not_declared_is_offered() {
    let bench = Bench::loaded();
    let told = bench.error(&["query", "db", "SELECT * { ?s foaf:name ?n }"]);
    has(&told, &["foaf", "PREFIX foaf: <http://xmlns.com/foaf/0.1/>"]);
}

#[test]
fn star_keeps_the_order_of_the_text_and_tables_shorten_iris() {
    let bench = Bench::new();
    bench.write("d.nt", "<urn:a> <http://xmlns.com/foaf/0.1/name> \"Ann\" .\n");
    bench.ok(&["load", "db", "d.nt"]);
    let table = bench.ok(&["query", "db", "SELECT * { ?z ?y ?x }"]);
    has(&table, &["foaf:name"]);
    let csv = bench.ok(&["query", "db", "SELECT * { ?z ?y ?x }", "--format", "csv"]);
    assert!(csv.starts_with("z,y,x"), "{csv}");
}

#[test]
fn help_of_a_topic_lists_its_switches_only() {
    let bench = Bench::new();
    let short = bench.ok(&["query", "--help"]);
    assert!(!short.contains("--read-ahead"), "{short}");
    has(&short, &["--help io", "--format"]);
    let io = bench.ok(&["query", "--help", "io"]);
    has(&io, &["--read-ahead", "--fairness", "--engine"]);
    assert!(!io.contains("--format"), "{io}");
}

#[test]
fn a_file_sets_switches_and_the_command_line_counts_before_it() {
    let bench = Bench::loaded();
    bench.write("my.toml", "format = \"csv\"\n");
    let csv = bench.ok(&["query", "db", "ASK {}", "--config", "my.toml"]);
    assert_eq!(csv.trim(), "true");
    has(&bench.ok(&["query", "db", "ASK {}", "--config", "my.toml", "--format", "json"]), &["boolean"]);
    bench.write("db/snowmelt.toml", "memory = \"64MiB\"\nread-ahead = \"none\"\n");
    has(&bench.ok(&["query", "db", "ASK {}"]), &["yes"]);
    bench.write("my.toml", "formatt = \"csv\"\n");
    has(&stderr(&bench, &["query", "db", "ASK {}", "--config", "my.toml"]), &["my.toml", "formatt"]);
}

#[test]
fn serving_an_empty_folder_makes_a_database_on_a_bare_port() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("new")).unwrap();
    let serve = ["serve", "new", "--listen", "0"];
    let mut child = bench.command(&serve).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = lines.map_while(Result::ok).find(|line| line.contains("http://127.0.0.1:"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(listening.is_some(), "the server told no address");
    has(&bench.ok(&["query", "new", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "--format", "csv"]), &["0"]);
}

#[test]
fn a_broken_pattern_is_told_with_its_place() {
    let bench = Bench::loaded();
    let told = bench.error(&["query", "db", "SELECT ?s {\n ?s ?p }"]);
    let cause = "; a triple is a subject, a predicate and an object";
    has(&told, &["line 2, column 8: found \"}\", expected ", cause, "\n   ?s ?p }\n         ^\n"]);
    assert!(!told.contains("LATERAL"), "{told}");
}

#[test]
fn a_configuration_file_is_looked_at_without_running_anything() {
    let bench = Bench::new();
    let check = |text: &str| {
        bench.write("c.toml", text);
        let done = bench.run(&["config", "check", "c.toml"]);
        (done.status.success(), String::from_utf8([done.stdout, done.stderr].concat()).unwrap())
    };
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/snowmelt.toml");
    let (fine, said) = check(&std::fs::read_to_string(shipped).unwrap());
    assert!(fine && said.contains("serve: 2 switches"), "{said}");
    assert!(check("memory = \"4GiB\"\n[load]\nthreads = 2\n").0);
    let (fine, said) = check("clients = 2\n[scan-index]\nthreads = 2\nleaves = 3\n");
    assert!(fine && said.contains("snowmelt-lab scan-index: 2 switches"), "{said}");
    bench.write("c.toml", "clients = 2\n[scan-index]\nthreads = 2\n");
    bench.write("d.nt", "<urn:a> <urn:b> <urn:c> .\n");
    bench.ok(&["load", "db", "d.nt", "--config", "c.toml"]);
    has(&bench.error(&["--config", "none.toml", "lab", "restore"]), &["none.toml"]);
    has(&bench.error(&["lab", "--config", "none.toml", "restore"]), &["none.toml"]);
    for (text, expected) in [
        ("[serve]\nlisten = \"x\"\n", "--listen"),
        ("nonsense = 1\n", "nonsense is not a switch"),
        ("[scan-index]\nthread = 1\n", "thread is not a switch of scan-index"),
        ("[lab]\nclients = 1\n", "[lab] has no switches of its own"),
        ("[token]\n", "[token] has no switches of its own"),
        ("[nonsense]\n", "named after no command"),
        ("[serve]\nnonsense = 1\n", "nonsense is not a switch of serve"),
        ("memory = \"lots\"\n", "--memory"),
        ("memory = ", "cannot read"),
    ] {
        let (fine, said) = check(text);
        assert!(!fine && said.contains(expected), "{text}: {said}");
    }
}
