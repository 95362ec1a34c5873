//! The server as curl meets it: what the guide says, with the real program.

mod support;

use std::path::Path;
use std::process::Command;

use support::Server;
use support::bench::Bench;

/// Whether there is a curl; says so where there is none.
fn has_curl() -> bool {
    let found = Command::new("curl").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: there is no curl (apt-get install curl)");
    }
    found
}

/// The status, and what curl prints of the answer.
fn curl(dir: &Path, server: &Server, path: &str, args: &[&str]) -> (u16, String) {
    let url = format!("http://{}{path}", server.address);
    let mut command = Command::new("curl");
    command.current_dir(dir).args(["-s", "--max-time", "60", "-w", "\n%{http_code}"]).args(args).arg(url);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').expect("the status comes last");
    (status.parse().unwrap(), body.to_owned())
}

#[test]
fn the_guide_is_right() {
    if !has_curl() {
        return;
    }
    let bench = Bench::with_triples(2_000, "a text of some length,");
    bench.write("people.ttl", "<urn:ann> <urn:knows> <urn:bob> .");
    bench.write("q.rq", "SELECT * { ?s ?p ?o } LIMIT 5");
    let server = Server::start(&bench.path("db"), &[]);
    let curl = |path: &str, args: &[&str]| curl(bench.dir(), &server, path, args);
    let (status, json) = curl("/sparql", &["--data-urlencode", "query=SELECT * { ?s ?p ?o } LIMIT 5"]);
    assert!(status == 200 && json.contains("\"bindings\""), "{status}: {json}");
    let (_, csv) = curl("/sparql", &["-H", "Accept: text/csv", "--data-urlencode", "query@q.rq"]);
    assert_eq!(csv.lines().count(), 6, "{csv}");
    let (status, report) = curl("/update", &["--data-urlencode", "update=DELETE WHERE { <urn:s7> ?p ?o }"]);
    assert!(status == 200 && report.contains("\"deleted\":1"), "{status}: {report}");
    let graph = "/graphs?graph=urn:people";
    let put = ["-X", "PUT", "-H", "Content-Type: text/turtle", "--data-binary", "@people.ttl"];
    assert_eq!(curl(graph, &put).0, 201);
    assert!(curl(graph, &[]).1.contains("<urn:bob>"));
    let (_, plain) = curl("/graphs", &["-H", "Accept: application/trig"]);
    let (_, unpacked) = curl("/graphs", &["-H", "Accept: application/trig", "--compressed"]);
    assert!(plain == unpacked && plain.contains("<urn:people>"), "{} and {}", plain.len(), unpacked.len());
    assert_eq!(curl(graph, &["-X", "DELETE"]).0, 204);
    assert_eq!(curl("/requests", &[]).0, 200);
    let (_, head) = curl("/sparql?query=ASK%7B%7D", &["-I"]);
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").trim().to_owned();
    let kept = curl("/sparql?query=ASK%7B%7D", &["-H", &format!("If-None-Match: {tag}")]);
    assert_eq!((kept.0, kept.1.as_str()), (304, ""));
}

#[test]
fn tokens_work_as_the_guide_says() {
    if !has_curl() {
        return;
    }
    let bench = Bench::loaded();
    let secret = bench.ok(&["token", "add", "tokens.toml", "reports", "--rows", "1000"]).trim().to_owned();
    let tokens = bench.path("tokens.toml");
    let server = Server::start(&bench.path("db"), &["--tokens", tokens.to_str().unwrap()]);
    let curl = |server: &Server, args: &[&str]| {
        let query = ["--data-urlencode", "query=ASK {}"];
        curl(bench.dir(), server, "/sparql", &[&query[..], args].concat())
    };
    assert_eq!(curl(&server, &[]).0, 401);
    assert_eq!(curl(&server, &["-u", &format!("reports:{secret}")]).0, 200);
    assert_eq!(curl(&server, &["-H", &format!("Authorization: Bearer {secret}")]).0, 200);
    assert_eq!(curl(&server, &["-u", &format!("anna:{secret}")]).0, 401);
    assert!(bench.ok(&["token", "list", "tokens.toml"]).contains("reports"));
    bench.ok(&["token", "remove", "tokens.toml", "reports"]);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while curl(&server, &["-u", &format!("reports:{secret}")]).0 != 401 {
        assert!(std::time::Instant::now() < until, "a token that was removed is refused");
    }
    drop(server);
    let open = bench.error(&["serve", "db", "--listen", "0.0.0.0:0"]);
    assert!(open.contains("--tokens") && open.contains("--public-read"), "{open}");
}
