//! Memory the process really holds while it works on more than there is: its
//! greatest resident size, seen from outside, stays within `--memory` and what the program
//! itself takes.
//!
//! Each class runs in a process of its own, so that none profits from the memory that another left.

mod support;

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use support::snowmelt;

const MEMORY: u64 = 64 << 20;
/// Program, stacks, and what the heap keeps. The promise is for a cgroup of `--memory` and 128 MiB.
const BESIDE: u64 = 96 << 20;

struct Ended {
    success: bool,
    said: String,
    /// most bytes resident at once
    peak: u64,
}

/// Runs a command to its end and watches its size.
fn watch(args: &[&str]) -> Ended {
    let mut child = snowmelt()
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kib = text
            .lines()
            .find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        match child.try_wait().expect("a child can be asked") {
            Some(ended) => break ended,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it speaks UTF-8");
    Ended { success: ended.success(), said, peak }
}

/// Things with one of seven values, a label, and edges among the first of them; loaded.
fn database(dir: &Path) -> String {
    let mut text = String::new();
    for i in 0..40_000 {
        text.push_str(&format!("<urn:s{i}> <urn:v> \"{}\" .\n", i % 7));
        text.push_str(&format!(
            "<urn:s{i}> <urn:l> \"a label that is rather long, of thing number {i}, and no other\" .\n"
        ));
        if i < 4000 {
            text.push_str(&format!(
                "<urn:s{i}> <urn:n> <urn:s{}>, <urn:s{}> .\n",
                (i * 7 + 1) % 4000,
                (i * 13 + 5) % 4000
            ));
        }
    }
    let file = dir.join("data.ttl");
    std::fs::write(&file, text).expect("there is room for a file");
    let db = dir.join("db").to_str().expect("a plain path").to_owned();
    let loaded = watch(&["load", &db, file.to_str().expect("a plain path"), "--memory", "128MiB"]);
    assert!(loaded.success, "{}", loaded.said);
    db
}

fn doubling(function: &str) -> String {
    let steps: Vec<String> = (0..40)
        .map(|i| format!("BIND({} AS ?y{})", function.replace('@', &format!("?y{i}")), i + 1))
        .collect();
    format!("SELECT (STRLEN(?y40) AS ?n) {{ BIND(\"aaaaaaaaaaaaaaaa\" AS ?y0) {} }}", steps.join(" "))
}

#[test]
fn queries_stay_within_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path());
    let join = "?a <urn:v> ?x . ?c <urn:v> ?x";
    let cases = [
        ("m:n join", format!("SELECT * {{ {join} }}")),
        ("m:n join, limited", format!("SELECT * {{ {join} }} LIMIT 10")),
        ("m:n join, grouped", format!("SELECT ?x (COUNT(*) AS ?n) {{ {join} }} GROUP BY ?x")),
        ("m:n join, sorted", format!("SELECT * {{ {join} }} ORDER BY ?c")),
        ("m:n join, distinct", format!("SELECT DISTINCT ?a ?c {{ {join} }}")),
        ("construct", format!("CONSTRUCT {{ ?a <urn:q> ?c }} {{ {join} }}")),
        ("optional product", "SELECT * { ?a <urn:v> ?x OPTIONAL { ?b <urn:v> ?y OPTIONAL { ?c <urn:v> ?z } } }".into()),
        ("closure", "SELECT (COUNT(*) AS ?n) { ?a <urn:n>* ?b }".into()),
        ("group_concat", "SELECT (STRLEN(GROUP_CONCAT(?l)) AS ?n) { ?s <urn:l> ?l . ?t <urn:v> '1' }".into()),
        ("concat doubling", doubling("CONCAT(@, @)")),
        ("replace doubling", doubling("REPLACE(@, \"a\", \"aa\")")),
        ("computed terms", "SELECT (COUNT(DISTINCT ?y) AS ?n) { ?s <urn:l> ?l . ?t <urn:v> ?v BIND(CONCAT(?l, STR(?t)) AS ?y) }".into()),
    ];
    for (name, text) in cases {
        let format = if text.starts_with("CONSTRUCT") { "nt" } else { "tsv" };
        let ended = watch(&["query", &db, &text, "--memory", "64MiB", "--timeout", "4", "--format", format]);
        println!("{name}: {} MiB, {}", ended.peak >> 20, ended.said.trim());
        assert!(ended.peak < MEMORY + BESIDE, "{name}: {} MiB", ended.peak >> 20);
        let limits = ["time limit", "memory", "longest"];
        assert!(ended.success || limits.iter().any(|l| ended.said.contains(l)), "{name}: {}", ended.said);
    }
}

/// Queries that build long values, or many: each function over texts of megabytes, each aggregate
/// over texts short and long, in one group, in a few and in thousands.
fn builders() -> Vec<(String, String)> {
    let mut all = Vec::new();
    // Four MiB, made of a label by doubling.
    let doubled: String = (0..16).map(|i| format!("BIND(CONCAT(?y{i}, ?y{i}) AS ?y{}) ", i + 1)).collect();
    let long = format!("?t <urn:l> ?y0 {doubled}");
    for function in [
        "CONCAT(@, @, @)",
        "REPLACE(@, \"a\", \"bb\")",
        "REPLACE(@, \"(l)\", \"$1$1\")",
        "ENCODE_FOR_URI(@)",
        "UCASE(@)",
        "LCASE(@)",
        "SUBSTR(@, 2)",
        "STRBEFORE(CONCAT(@, \"|\"), \"|\")",
        "STRAFTER(@, \"a\")",
        "STRLANG(@, \"en\")",
        "STRDT(@, <urn:type>)",
        "IRI(CONCAT(\"urn:\", ENCODE_FOR_URI(@)))",
        "IF(true, CONCAT(@, \"x\"), @)",
        "COALESCE(CONCAT(@, \"x\"), @)",
    ] {
        let value = function.replace('@', "?y16");
        all.push((function.to_owned(), format!("SELECT ?z {{ {long} BIND({value} AS ?z) }} LIMIT 300")));
        all.push((
            format!("{function}, distinct"),
            format!("SELECT DISTINCT ?z {{ {long} BIND({value} AS ?z) }}"),
        ));
        all.push((
            format!("{function}, sorted"),
            format!("SELECT ?z {{ {long} BIND({value} AS ?z) }} ORDER BY ?z"),
        ));
    }
    let many = "?s <urn:n> ?k . ?k <urn:v> ?v . ?t <urn:l> ?y0";
    for aggregate in [
        "GROUP_CONCAT(@)",
        "GROUP_CONCAT(DISTINCT @)",
        "GROUP_CONCAT(@; SEPARATOR=\" and then, after a long time, \")",
        "MIN(@)",
        "MAX(CONCAT(@, @))",
        "SAMPLE(CONCAT(@, @))",
        "COUNT(DISTINCT CONCAT(@, @))",
    ] {
        for (groups, by) in [("one group", ""), ("a few", "GROUP BY ?v"), ("many", "GROUP BY ?s ?k")] {
            let short = aggregate.replace('@', "?y0");
            let name = format!("{aggregate}, {groups}");
            all.push((name.clone(), format!("SELECT ({short} AS ?z) {{ {many} }} {by}")));
            let (value, by) =
                (aggregate.replace('@', "?y16"), by.replace("?s ?k", "?t").replace("?v", "?y1"));
            all.push((format!("{name}, long"), format!("SELECT ({value} AS ?z) {{ {long} }} {by}")));
        }
    }
    all
}

#[test]
fn values_that_are_built_stay_within_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path());
    let mut beyond = Vec::new();
    for (name, text) in builders() {
        let ended = watch(&["query", &db, &text, "--memory", "64MiB", "--timeout", "2", "--format", "tsv"]);
        println!("{name}: {} MiB, {}", ended.peak >> 20, ended.said.trim());
        let limits = ["time limit", "memory", "longest"];
        if ended.peak >= MEMORY + BESIDE {
            beyond.push(format!("{name}: {} MiB", ended.peak >> 20));
        } else if !ended.success && !limits.iter().any(|l| ended.said.contains(l)) {
            beyond.push(format!("{name}: {}", ended.said));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

#[test]
fn documents_stay_within_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = database(dir.path());
    let mut bomb = String::from("<?xml version='1.0'?><!DOCTYPE r [<!ENTITY e0 \"0123456789\">");
    for i in 1..10 {
        bomb.push_str(&format!("<!ENTITY e{i} \"{}\">", format!("&e{};", i - 1).repeat(10)));
    }
    bomb.push_str("]><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='urn:'>");
    bomb.push_str("<rdf:Description rdf:about='urn:x'><e:p>&e9;</e:p></rdf:Description></rdf:RDF>");
    let long = format!("<urn:s> <urn:p> \"{}\" .", "x".repeat(17 << 20));
    let cases = [
        ("entities.rdf", bomb, "entit"),
        ("brackets.ttl", format!("<urn:s> <urn:p> {}", "[ <urn:p> ".repeat(2_000_000)), "50000 levels"),
        ("context.jsonld", format!("{{\"urn:p\": [{}", "{\"urn:q\": 1}, ".repeat(4_000_000)), "memory"),
        ("elements.rdf", format!("<r xmlns='urn:'>{}", "<a>".repeat(5_000_000)), "50000 levels"),
        ("long.nt", long, "longest"),
    ];
    for (name, text, why) in cases {
        let file = dir.path().join(name);
        std::fs::write(&file, text).expect("there is room for a file");
        let ended = watch(&["load", &db, file.to_str().expect("a plain path"), "--memory", "64MiB"]);
        println!("{name}: {} MiB, {}", ended.peak >> 20, ended.said.trim());
        assert!(!ended.success && ended.said.contains(why), "{name}: {}", ended.said);
        assert!(ended.peak < MEMORY + BESIDE, "{name}: {} MiB", ended.peak >> 20);
    }
}
