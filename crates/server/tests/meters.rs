//! Every meter of `/stats` is explained in the book with its unit, and every meter explained there
//! exists; requests say what they did.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use snowmelt_database::meters::{Activity, SampleKind, SampleValue};
use snowmelt_database::{Mode, OpenOptions};
use snowmelt_graph::GraphDatabase;
use snowmelt_server::ServerConfig;
use snowmelt_sparql::{
    RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemoteQuestion, RemoteTotals, RemoteUse,
};
use support::{Running, config};

/// Names of all values, as paths: `a.b` for members, `a[].b` for those of a list's entries.
fn names(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                names(&path, value, found);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|e| names(&format!("{prefix}[]"), e, found)),
        _ => drop(found.insert(prefix.to_owned())),
    }
}

/// The names in the first column of the page's tables that are marked as those of `/stats`, with
/// their units.
fn explained() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/meters.md");
    let page = fs::read_to_string(path).unwrap();
    let tables = page.split("<!-- meters: /stats -->\n").skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with('|')).skip(2));
    let cells = |row: &str| {
        let name = row.split('`').nth(1).expect("a name in code").to_owned();
        (name, row.split('|').nth(2).expect("a unit").trim().to_owned())
    };
    rows.map(cells).collect()
}

/// Kinds of objects depend on the data, and rules are many: one row of the page is for all.
fn without_members(name: String) -> String {
    if name.starts_with("database.objects_by_kind.") {
        return "database.objects_by_kind.*".to_owned();
    }
    match name.split_once(".rules.") {
        Some((tree, of)) => format!("{tree}.rules.*.{}", of.split_once('.').expect("a rule's meter").1),
        None => name,
    }
}

/// An endpoint elsewhere that was asked before.
#[derive(Debug)]
struct AskedBefore;

impl RemoteEndpoints for AskedBefore {
    fn select(&self, _: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        unreachable!("these tests ask it nothing")
    }

    fn document(&self, _: &str, _: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        unreachable!("these tests ask it nothing")
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        Arc::new(Self)
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        let done = RemoteUse { requests: 3, ..RemoteUse::default() };
        vec![RemoteTotals { endpoint: "http://e:80".to_owned(), done, ..RemoteTotals::default() }]
    }
}

#[test]
fn meters_are_those_of_the_book() {
    let server = Running::start(
        "<urn:a> <urn:b> \"c\" .\n<urn:a> <urn:b> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .",
        ServerConfig { remote: Some(Arc::new(AskedBefore)), ..config() },
    );
    server.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }");
    let (_, stats) = server.ask("GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let mut shown = BTreeSet::new();
    names("", &stats, &mut shown);
    let shown: BTreeSet<String> = shown.into_iter().map(without_members).collect();
    let units = explained();
    let explained: BTreeSet<String> = units.keys().cloned().collect();
    let missing: Vec<_> = shown.difference(&explained).collect();
    let gone: Vec<_> = explained.difference(&shown).collect();
    assert!(missing.is_empty(), "meters.md does not explain {missing:?}");
    assert!(gone.is_empty(), "meters.md explains what is not shown: {gone:?}");

    let dir = tempfile::tempdir().unwrap();
    let database = GraphDatabase::create(&dir.path().join("db"), &[], &OpenOptions::default()).unwrap();
    for sample in database.database().report().samples() {
        assert_eq!(units.get(&*sample.name).map(String::as_str), Some(&*sample.unit), "{}", sample.name);
    }
}

const ABBREVIATED_UNITS: [&str; 14] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];

#[test]
fn prometheus_has_every_meter_and_the_times_of_requests() {
    let remote: Option<Arc<dyn RemoteEndpoints>> = Some(Arc::new(AskedBefore));
    let server = Running::start("<urn:a> <urn:b> \"c\" .", ServerConfig { remote, ..config() });
    server.ask(&format!("{QUERY}\r\n"));
    server.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }");
    // The entry of a request is given back when its answer has been taken.
    let answered = |text: &str| {
        let count = |kind| format!("snowmelt_request_duration_seconds_count{{kind=\"{kind}\"}} 1\n");
        ["query", "update"].into_iter().all(|kind| text.contains(&count(kind)))
    };
    let until = Instant::now() + Duration::from_secs(60);
    let (head, text) = loop {
        let (head, text) = server.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if answered(&text) {
            break (head, text);
        }
        assert!(Instant::now() < until, "two requests are over: {text}");
    };
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let mut typed = BTreeSet::new();
    let mut series = BTreeSet::new();
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let name = of.split(' ').next().unwrap();
            assert!(typed.insert(name.to_owned()), "twice: {line}");
            // promtool refuses these, and it is not everywhere.
            let is_unit = |part: &str| ABBREVIATED_UNITS.contains(&part);
            assert!(!name.split('_').any(is_unit), "an abbreviated unit: {line}");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(series.insert(name.to_owned()), "twice: {line}");
            let metric = name.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"].into_iter().find_map(|end| metric.strip_suffix(end));
            assert!(typed.contains(metric) || family.is_some_and(|f| typed.contains(f)), "{line}");
        }
    }
    // Names of the book, and how they are to be written.
    let dir = tempfile::tempdir().unwrap();
    let database = GraphDatabase::create(&dir.path().join("db"), &[], &OpenOptions::default()).unwrap();
    let samples = database.database().report().samples();
    let there = || samples.iter().filter(|sample| sample.value != SampleValue::Absent);
    let kind = |name: &str| there().find(|sample| sample.name == name).map(|sample| sample.kind);
    let mut compared = 0;
    for (name, unit) in explained() {
        let total = match kind(&name) {
            Some(SampleKind::Count) => "_total",
            Some(SampleKind::Level) if unit != "text" => "",
            _ => continue,
        };
        let flat = name.replace("[]", "").replace(".*", "").replace('.', "_");
        let flat = match unit.as_str() {
            "ns" => flat.strip_suffix("_ns").unwrap_or(&flat).to_owned() + "_seconds",
            "us" => flat.strip_suffix("_us").unwrap_or(&flat).to_owned() + "_seconds",
            "s" => flat.strip_suffix("_seconds").unwrap_or(&flat).to_owned() + "_seconds",
            "bytes/s" => flat.strip_suffix("_s").unwrap_or(&flat).to_owned() + "_second",
            _ => flat,
        };
        let metric = format!("snowmelt_{flat}{total}");
        let is_one = |series: &String| series.split('{').next() == Some(&metric);
        assert!(series.iter().any(is_one), "{name}: no {metric}");
        compared += 1;
    }
    assert!(compared > 80, "{compared} meters of the book");
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
    };
    assert!(value("snowmelt_requests_answered_total") >= 2.0);
    assert_eq!(value("snowmelt_requests_refused_total"), 0.0);
    assert_eq!(value("snowmelt_endpoints_requests_total{endpoint=\"http://e:80\"}"), 3.0);
    assert!(value("snowmelt_request_duration_seconds_sum{kind=\"query\"}") > 0.0);
    let (ready, _) = server.ask("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
}

/// A read-only server is ready; only one whose updates have begun to fail is not.
#[test]
fn a_database_that_is_only_read_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let (path, options) = (dir.path().join("db"), OpenOptions::default());
    drop(GraphDatabase::create(&path, &[], &options).unwrap());
    let options = OpenOptions { mode: Mode::ReadOnly, ..options };
    let server = Running::with_database(GraphDatabase::open(&path, &options).unwrap(), dir, config());
    let (ready, text) = server.ask("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}{text}");
    let stats = stats(&server, "");
    assert_eq!((&stats["journal"]["poisoned"], &stats["advice"]), (&Value::Null, &Value::Array(Vec::new())));
}

/// The answer of `/stats` now.
fn stats(server: &Running, parameters: &str) -> Value {
    let (_, stats) = server.ask(&format!("GET /stats{parameters} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    serde_json::from_str(&stats).unwrap()
}

/// Sends requests on one connection and reads to its end.
fn raw(server: &Running, requests: &str) -> String {
    let mut stream = server.connect();
    stream.write_all(requests.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    answers
}

/// A header, or a field of a trailer.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Lookups, as the one line has them.
fn rnd(line: &str) -> u64 {
    let (count, rest) = line.split_once(' ').unwrap();
    assert!(rest.starts_with("rnd  ") && rest.ends_with(" message bytes"), "{line}");
    count.parse().unwrap_or_else(|_| panic!("few enough to be exact: {line}"))
}

const QUERY: &str =
    "GET /query?query=SELECT%20*%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D HTTP/1.1\r\nHost: localhost\r\n";

#[test]
fn a_request_says_what_it_did_and_its_account_and_connection_know() {
    let server = Running::start("<urn:a> <urn:b> \"c\" .", config());
    let (head, _) = server.ask(&format!("{QUERY}\r\n"));
    let query = rnd(field(&head, "snowmelt-activity").expect("a header"));
    assert!(query > 0, "{head}");
    let (head, _) = server.update("INSERT { ?s <urn:d> 1 } WHERE { ?s <urn:b> ?o }");
    let changed = rnd(field(&head, "snowmelt-activity").expect("a header"));
    assert!(changed > 0, "{head}");
    let turtle = "Content-Type: text/turtle\r\n";
    let (head, _) = server.send("PUT", "/graphs?graph=urn:g", turtle, "<urn:a> <urn:b> 77 .");
    let stored = rnd(field(&head, "snowmelt-activity").expect("a header"));
    assert!(stored > 0, "{head}");

    let (head, _) = server.update("INSERT DATA { <urn:a> <urn:b> }");
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert_eq!(rnd(field(&head, "snowmelt-activity").expect("an error has it, too")), 0);

    let stats = stats(&server, "");
    let account = |name: &str| {
        let of = stats["accounts"].as_array().unwrap().iter().find(|a| a["account"] == name).unwrap();
        of["rnd"].as_u64().unwrap()
    };
    assert_eq!([account("http query"), account("http update")], [query, changed + stored]);
    // Those before may not be closed yet.
    let connection = stats["connections"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&connection["requests"], &connection["activity"]),
        (&1.into(), &Activity::default().to_string().into())
    );
    assert!(connection["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
}

/// A request that fails has read all the same.
#[test]
fn failures_say_what_they_did() {
    let server = Running::start("<urn:a> <urn:b> \"\\u0001\" <urn:g> .", config());
    let all = "SELECT * { GRAPH ?g { ?s ?p ?o } }";
    let failed = [
        ("406", server.get(all, "application/sparql-results+xml")),
        (
            "409",
            server.update("INSERT { ?s <urn:q> 1 } WHERE { GRAPH ?g { ?s ?p ?o } } ; CREATE GRAPH <urn:g>"),
        ),
        ("404", server.send("DELETE", "/graphs?graph=urn:b", "", "")),
        (
            "406",
            server.ask(
                "GET /graphs?graph=urn:g HTTP/1.1\r\nHost: localhost\r\nAccept: application/rdf+xml\r\n\r\n",
            ),
        ),
    ];
    for (status, (head, text)) in failed {
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}{text}");
        assert!(rnd(field(&head, "snowmelt-activity").expect("a header")) > 0, "{head}{text}");
    }
}

#[test]
fn the_requests_of_a_connection_add_up() {
    let server = Running::start("<urn:a> <urn:b> \"c\" .", config());
    let two =
        format!("{QUERY}\r\n{QUERY}\r\nGET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answers = raw(&server, &two);
    let each: Vec<u64> =
        answers.lines().filter_map(|l| l.strip_prefix("snowmelt-activity: ")).map(rnd).collect();
    assert_eq!(each.len(), 2, "{answers}");
    let stats: Value =
        serde_json::from_str(&answers[answers.rfind("\r\n\r\n").expect("the last answer")..]).unwrap();
    let connection = stats["connections"].as_array().unwrap().last().unwrap();
    assert_eq!(connection["requests"], 3, "{connection:#}");
    assert_eq!(rnd(connection["activity"].as_str().unwrap()), each.iter().sum::<u64>());
}

#[test]
fn a_streamed_answer_says_it_in_the_trailer() {
    let triples: String =
        (0..5000).map(|i| format!("<urn:s{i}> <urn:p> \"a text of some length, {i}\" .\n")).collect();
    let server = Running::start(&triples, config());
    let asked = format!("{QUERY}TE: trailers\r\nConnection: close\r\n\r\n");
    let answer = raw(&server, &asked);
    let (head, rest) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!((field(head, "snowmelt-activity"), field(head, "trailer")), (None, Some("Snowmelt-Activity")));
    let trailer = rest.rsplit_once("\r\n0\r\n").expect("the last chunk").1;
    let line = field(trailer, "snowmelt-activity").unwrap_or_else(|| panic!("{trailer:?}"));
    assert!(line.contains(" seq  ") && !line.contains("  0 seq"), "{line}");
    // A client that does not ask for trailers gets none.
    let answer = raw(&server, &format!("{QUERY}Connection: close\r\n\r\n"));
    assert!(answer.ends_with("\r\n0\r\n\r\n"), "{:?}", &answer[answer.len() - 100..]);
}

#[test]
fn meters_are_sorted_and_reset() {
    let server = Running::start("<urn:a> <urn:b> \"c\" .\n<urn:a> <urn:c> <urn:d> .", config());
    server.ask(&format!("{QUERY}\r\n"));
    let by = |stats: &Value, of: &str| -> Vec<String> {
        stats["trees"].as_array().unwrap().iter().map(|tree| tree[of].to_string()).collect()
    };
    assert!(by(&stats(&server, "?sort=tree"), "tree").is_sorted());
    let touches = by(&stats(&server, "?sort=touches"), "touches");
    assert!(touches.iter().map(|n| n.parse::<u64>().unwrap()).rev().is_sorted(), "{touches:?}");
    let (head, text) = server.ask("GET /stats?sort=price HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 400") && text.contains("read%"), "{head} {text}");
    let (_, text) = server.ask("GET /stats?format=table HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(text.contains("activity: ") && text.contains("buffers"), "{text}");

    let post = |path: &str, more: &str| {
        server.ask(&format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: 0\r\n\r\n")).0
    };
    let query = |stats: &Value| {
        let accounts = stats["accounts"].as_array().unwrap();
        accounts.iter().find(|a| a["account"] == "http query").unwrap()["rnd"].as_u64().unwrap()
    };
    let before = stats(&server, "");
    assert!(query(&before) > 0);
    assert!(post("/stats/reset?account=http%20query", "").starts_with("HTTP/1.1 204"));
    let after = stats(&server, "");
    assert_eq!((query(&after), after["activity"]["disk"].clone()), (0, before["activity"]["disk"].clone()));
    assert!(post("/stats/reset", "").starts_with("HTTP/1.1 204"));
    assert_eq!(stats(&server, "")["reads"]["pages"], 0);
    assert!(post("/stats/reset?tree=nothing", "").starts_with("HTTP/1.1 404"));
    assert!(post("/stats/reset?tree=psog&account=load", "").starts_with("HTTP/1.1 400"));
    assert!(post("/stats/reset", "Origin: http://elsewhere.example\r\n").starts_with("HTTP/1.1 403"));
    let (head, _) = server.ask("GET /stats/reset HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
}
