//! Services that clients expect beside queries: codings, caches, other sites, all graphs at once, a
//! description, running requests, tokens, logs.

mod support;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use snowmelt_server::logs::{AccessForm, Log, Logs};
use snowmelt_server::tokens::{Keeper, Rights, Token, TokenFile};
use snowmelt_server::{Cors, ServerConfig};
use support::{Running, config};

fn status(answer: &(String, String)) -> &str {
    &answer.0[9..12]
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn running() -> Running {
    let data: String = (0..5000).map(|i| format!("<urn:s{i}> <urn:p> \"value {i}\" .\n")).collect();
    Running::start(&(data + "<urn:a> <urn:b> <urn:c> <urn:g> ."), config())
}

const ALL: &str = "/sparql?query=SELECT%20*%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D";

/// A request with these headers, and the bytes of its answer.
fn bytes(server: &Running, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = server.connect();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n").unwrap();
    support::read_bytes(&mut std::io::BufReader::new(stream))
}

#[test]
fn answers_and_bodies_are_compressed() {
    let server = running();
    let (_, plain) = bytes(&server, ALL, "Accept: text/csv\r\n");
    assert_eq!(plain.iter().filter(|b| **b == b'\n').count(), 5001);
    let unpack = |coding: &str, bytes: &[u8]| match coding {
        "gzip" => read(flate2::read::GzDecoder::new(bytes)),
        "zstd" => read(zstd::Decoder::new(bytes).unwrap()),
        _ => read(brotli::Decompressor::new(bytes, 4096)),
    };
    for coding in ["gzip", "zstd", "br"] {
        let (head, packed) =
            bytes(&server, ALL, &format!("Accept: text/csv\r\nAccept-Encoding: {coding}\r\n"));
        assert_eq!(field(&head, "content-encoding"), Some(coding), "{head}");
        assert!(field(&head, "vary").unwrap().contains("Accept-Encoding"), "{head}");
        assert!(packed.len() < plain.len() / 3 && unpack(coding, &packed) == plain, "{coding}");
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all("INSERT DATA { <urn:packed> <urn:p> 1 }".as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let send = |coding: &str, body: &[u8]| {
        let head = format!(
            "POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-update\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        server.ask_bytes(&[head.as_bytes(), body].concat())
    };
    assert_eq!(status(&send("gzip", &packed)), "200");
    assert!(server.get("ASK { <urn:packed> ?p ?o }", "*/*").1.contains("true"));
    let broken = send("gzip", &packed[..packed.len() / 2]);
    assert_eq!(status(&broken), "400", "{broken:?}");
    let unknown = send("compress", &packed);
    assert_eq!((status(&unknown), field(&unknown.0, "accept-encoding")), ("415", Some("gzip, zstd, br")));
    // Twenty million bytes in a few kilobytes: as data they pass by, as a pattern they do not.
    let values = format!(", \"{}\"", "x".repeat(100_000)).repeat(200);
    for (start, expected) in [("INSERT DATA { <urn:bomb>", "200"), ("DELETE WHERE { ?bomb", "413")] {
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        bomb.write_all(format!("{start} <urn:p> 1{values} }}").as_bytes()).unwrap();
        assert_eq!(status(&send("gzip", &bomb.finish().unwrap())), expected, "{start}");
    }
}

fn read(mut from: impl std::io::Read) -> Vec<u8> {
    let mut all = Vec::new();
    from.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn what_a_client_has_is_not_sent_again_until_it_changes() {
    let server = running();
    let ask = |headers: &str| server.ask(&format!("GET {ALL} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
    let (head, _) = ask("");
    let tag = field(&head, "etag").expect("a tag").to_owned();
    assert_eq!(field(&head, "cache-control"), Some("no-cache"));
    let kept = ask(&format!("If-None-Match: {tag}\r\n"));
    assert_eq!((status(&kept), kept.1.as_str(), field(&kept.0, "etag")), ("304", "", Some(tag.as_str())));
    let other = ask(&format!("If-None-Match: {tag}\r\nAccept: text/csv\r\n"));
    assert_eq!(status(&other), "200", "another form");
    server.update("INSERT DATA { <urn:new> <urn:p> 1 }");
    assert_eq!(status(&ask(&format!("If-None-Match: {tag}\r\n"))), "200", "another state");
    let now = server.get("SELECT (NOW() AS ?now) {}", "text/csv");
    assert_eq!((field(&now.0, "etag"), field(&now.0, "cache-control")), (None, Some("no-store")));
}

#[test]
fn pages_of_named_sites_may_ask() {
    let cors = Cors::from_origins(&["https://a.org".into(), "*".into()]).unwrap();
    let server = Running::start("<urn:a> <urn:b> \"1\" .", ServerConfig { cors, ..config() });
    let ask = |method: &str, path: &str, headers: &str| {
        server.ask(&format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: 0\r\n\r\n"
        ))
    };
    let named = "Origin: https://a.org\r\n";
    let answer = ask("GET", ALL, named);
    assert_eq!(field(&answer.0, "access-control-allow-origin"), Some("https://a.org"), "{answer:?}");
    let any = ask("GET", ALL, "Origin: https://b.org\r\nSec-Fetch-Site: cross-site\r\n");
    assert_eq!((status(&any), field(&any.0, "access-control-allow-origin")), ("200", Some("*")));
    let asked = ask("OPTIONS", "/update", &format!("{named}Access-Control-Request-Method: POST\r\n"));
    assert_eq!(status(&asked), "204");
    assert_eq!(field(&asked.0, "access-control-allow-methods"), Some("POST, OPTIONS"));
    for (origin, expected) in [("https://a.org", "204"), ("https://b.org", "403")] {
        let put = server.send(
            "PUT",
            "/graphs?default",
            &format!("Origin: {origin}\r\nContent-Type: text/turtle\r\n"),
            "<urn:a> <urn:b> 2 .",
        );
        assert_eq!(status(&put), expected, "{put:?}");
    }
    let refused = running().ask(&format!("GET {ALL} HTTP/1.1\r\nHost: localhost\r\n{named}\r\n"));
    assert_eq!((status(&refused), field(&refused.0, "access-control-allow-origin")), ("403", None));
}

#[test]
fn methods_that_a_resource_does_not_take_are_told() {
    let server = running();
    for (path, allowed) in [
        ("/sparql", "GET, HEAD, POST, OPTIONS"),
        ("/update", "POST, OPTIONS"),
        ("/metrics", "GET, HEAD, OPTIONS"),
        ("/graphs", "GET, HEAD, PUT, POST, DELETE, OPTIONS"),
    ] {
        let wrong = server.send("PATCH", path, "", "");
        assert_eq!((status(&wrong), field(&wrong.0, "allow")), ("405", Some(allowed)), "{wrong:?}");
        let asked = server.send("OPTIONS", path, "", "");
        assert_eq!((status(&asked), field(&asked.0, "allow")), ("204", Some(allowed)), "{asked:?}");
    }
}

#[test]
fn all_graphs_come_and_go_at_once() {
    let server = running();
    let trig = "Content-Type: application/trig\r\n";
    let put = server.send("PUT", "/graphs", trig, "<urn:x> <urn:p> 1 . <urn:h> { <urn:y> <urn:p> 2 }");
    assert_eq!(status(&put), "204", "{put:?}");
    let quads = server.send("GET", "/graphs", "Accept: application/n-quads\r\n", "");
    let mut lines: Vec<&str> = quads.1.lines().collect();
    lines.sort_unstable();
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    assert_eq!(
        lines,
        [
            format!("<urn:x> <urn:p> \"1\"^^<{integer}> ."),
            format!("<urn:y> <urn:p> \"2\"^^<{integer}> <urn:h> .")
        ]
    );
    for accept in ["application/trig", "application/ld+json"] {
        let all = server.send("GET", "/graphs", &format!("Accept: {accept}\r\n"), "");
        let other = Running::start("", config());
        assert_eq!(
            status(&other.send("POST", "/graphs", &format!("Content-Type: {accept}\r\n"), &all.1)),
            "204"
        );
        let back = other.send("GET", "/graphs", "Accept: application/n-quads\r\n", "");
        let mut back: Vec<&str> = back.1.lines().collect();
        back.sort_unstable();
        assert_eq!(back, lines, "{accept}: {}", all.1);
    }
    // A document of one graph becomes a new one, which is where its Location says.
    let new = server.send("POST", "/graphs", "Content-Type: text/turtle\r\n", "<urn:z> <urn:p> <a> .");
    assert_eq!(status(&new), "201", "{new:?}");
    let location = field(&new.0, "location").unwrap();
    let path =
        location.strip_prefix(&format!("http://{}", server.address)).expect("an address of this server");
    let read = server.send("GET", path, "Accept: application/n-triples\r\n", "");
    assert!(read.1.contains(&format!("<urn:z> <urn:p> <http://{}/graphs/a>", server.address)), "{read:?}");
    // One graph takes no statements of another.
    let strange = server.send("PUT", "/graphs?graph=urn:k", trig, "<urn:h> { <urn:q> <urn:p> 2 }");
    assert_eq!(status(&strange), "400", "{strange:?}");
    let json = "Content-Type: application/ld+json\r\n";
    let put = server.send("PUT", "/graphs?graph=urn:k", json, r#"{"@id": "urn:j", "urn:p": "x"}"#);
    assert_eq!(status(&put), "201", "{put:?}");
    assert!(server.get("ASK { GRAPH <urn:k> { <urn:j> <urn:p> \"x\" } }", "*/*").1.contains("true"));
    assert_eq!(
        status(&server.send("PUT", "/graphs", "Content-Type: text/turtle\r\n", "<a> <b> <c> .")),
        "400"
    );
    assert_eq!(status(&server.send("DELETE", "/graphs", "", "")), "400");
}

#[test]
fn those_that_ask_nothing_get_a_description() {
    let server = running();
    let described = server.send("GET", "/sparql", "Accept: application/n-triples\r\n", "");
    assert_eq!(status(&described), "200", "{described:?}");
    let has = |text: &str| assert!(described.1.contains(text), "{text}: {}", described.1);
    has("<http://www.w3.org/ns/sparql-service-description#endpoint> <http://");
    has("<http://rdfs.org/ns/void#triples> \"5001\"^^");
    has("<http://rdfs.org/ns/void#property> <urn:p>");
    has("<http://rdfs.org/ns/void#triples> \"5000\"^^");
    has("<http://www.w3.org/ns/sparql-service-description#name> <urn:g>");
    let tag = field(&described.0, "etag").unwrap();
    let kept = server.send(
        "GET",
        "/sparql",
        &format!("Accept: application/n-triples\r\nIf-None-Match: {tag}\r\n"),
        "",
    );
    assert_eq!(status(&kept), "304");
    let page = server.send("GET", "/sparql", "Accept: text/html,*/*;q=0.8\r\n", "");
    assert!(page.1.contains("<form action=\"/sparql\""), "{page:?}");
    // Everything that the page links and sends is answered.
    let browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let links = page.1.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap());
    for link in links {
        let linked = server.send("GET", link, browser, "");
        assert!(status(&linked) == "200" && !linked.1.contains("<form"), "{link}: {linked:?}");
    }
    let values = |name: &str| -> Vec<String> {
        let select =
            page.1.split_once(&format!("name=\"{name}\"")).unwrap().1.split("</select>").next().unwrap();
        select.split("value=\"").skip(1).map(|value| value.split('"').next().unwrap().to_owned()).collect()
    };
    for (format, explain) in
        values("format").iter().flat_map(|f| values("explain").into_iter().map(move |e| (f.clone(), e)))
    {
        let sent = server.send(
            "GET",
            &format!("/sparql?query=ASK%20%7B%7D&format={format}&explain={explain}"),
            browser,
            "",
        );
        assert_eq!(status(&sent), "200", "{format}, {explain}: {sent:?}");
    }
    let rows = server.get("SELECT ?o { <urn:s7> ?p ?o }", "text/html,*/*;q=0.8");
    assert!(rows.1.contains("<td>value 7") && rows.1.contains("<p>1 row\n"), "{rows:?}");
    assert_eq!(
        status(&server.send("POST", "/sparql", "Content-Type: application/x-www-form-urlencoded\r\n", "")),
        "400"
    );
}

#[test]
fn plans_are_told() {
    let server = running();
    let plan = server.send("GET", &format!("{ALL}&explain=plan"), "", "");
    assert!(status(&plan) == "200" && plan.1.contains("scan") && !plan.1.contains("| rows"), "{plan:?}");
    let analysis = server.send("GET", &format!("{ALL}&explain=analyze"), "", "");
    assert!(analysis.1.contains("| rows 5000 "), "{analysis:?}");
    assert_eq!(status(&server.send("GET", &format!("{ALL}&explain=dance"), "", "")), "400");
    for (format, accept) in [("&format=json", ""), ("", "Accept: application/json\r\n")] {
        let plan = server.send("GET", &format!("{ALL}&explain=analyze{format}"), accept, "");
        assert!(status(&plan) == "200" && plan.0.contains("content-type: application/json"), "{plan:?}");
        let plan: serde_json::Value = serde_json::from_str(&plan.1).unwrap();
        assert_eq!(plan["operators"][0]["measured"]["rows"], 5000, "{plan:#}");
        assert_eq!(plan["outcome"]["rows"], 5000);
    }
    let plan = server.send("GET", &format!("{ALL}&explain=plan&format=csv"), "Accept: text/csv\r\n", "");
    assert!(plan.0.contains("content-type: text/plain") && plan.1.contains("scan"), "{plan:?}");
    let table = server.send("GET", &format!("{ALL}&format=csv"), "Accept: image/png\r\n", "");
    assert!(table.0.contains("content-type: text/csv"), "{table:?}");
    // Some clients send a format along, whatever they ask for.
    let graph = "/sparql?query=CONSTRUCT%20WHERE%20%7B%20%3Curn%3As7%3E%20%3Fp%20%3Fo%20%7D&format=";
    for (format, kind) in [
        ("turtle", "text/turtle"),
        ("rdf%2Bxml", "application/rdf+xml"),
        ("csv", "application/n-triples"),
        ("?", "application/n-triples"),
    ] {
        let answer = server.send("GET", &format!("{graph}{format}"), "", "");
        assert!(answer.0.contains(&format!("content-type: {kind}\r\n")), "{format}: {answer:?}");
    }
}

#[test]
fn running_requests_are_listed_and_ended() {
    let server = running();
    // 25 million rows, which are not read.
    let mut stream = server.connect();
    let query = "SELECT%20*%20%7B%20%3Fa%20%3Fp%20%3Fb%20.%20%3Fc%20%3Fp%20%3Fd%20%7D";
    write!(stream, "GET /sparql?query={query} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let list = || -> Vec<Value> {
        let (_, list) = server.send("GET", "/requests", "", "");
        serde_json::from_str::<Value>(&list).unwrap()["requests"].as_array().unwrap().clone()
    };
    let one = loop {
        assert!(Instant::now() < until, "the query runs");
        if let [one] = &list()[..]
            && one["rows"].as_u64().unwrap() > 0
        {
            break one.clone();
        }
    };
    assert_eq!((&one["kind"], &one["is_cancelled"]), (&"query".into(), &false.into()));
    let path = format!("/queries/{}", one["request"]);
    let (_, about) = server.send("GET", &path, "", "");
    let about: Value = serde_json::from_str(&about).unwrap();
    assert!(about["plan"].as_array().unwrap().len() > 1, "{about:#}");
    assert_eq!(status(&server.send("DELETE", &path, "", "")), "202");
    while !list().is_empty() {
        assert!(Instant::now() < until, "it was cancelled");
        // It looks at its flag when the client reads on.
        let _ = std::io::Read::read(&mut stream, &mut [0; 65_536]).unwrap();
    }
    assert_eq!(status(&server.send("DELETE", &path, "", "")), "404");
}

fn with_tokens(dir: &Path, public_read: bool) -> (Running, [String; 3]) {
    let path = dir.join("tokens.toml");
    let add = |token| TokenFile::change(&path, |file| file.add(token));
    let secrets = [("reader", Rights::Read), ("writer", Rights::Write), ("admin", Rights::Admin)].map(
        |(name, rights)| {
            let rows = (rights == Rights::Read).then_some(60);
            add(Token { rows, ..Token::new(name, rights) }).unwrap()
        },
    );
    let keeper = Arc::new(Keeper::of_file(&path, public_read).unwrap());
    let data: String = (0..50).map(|i| format!("<urn:s{i}> <urn:p> \"{i}\" .\n")).collect();
    (Running::start(&data, ServerConfig { keeper, ..config() }), secrets)
}

#[test]
fn each_resource_needs_its_rights() {
    let dir = tempfile::tempdir().unwrap();
    let (server, secrets) = with_tokens(dir.path(), false);
    let update = "INSERT DATA { <urn:x> <urn:p> 1 }";
    let query = "ASK {}";
    // method, path, type, body; the first of reader, writer, admin that may
    let requests = [
        ("POST", "/query", "application/sparql-query", query, 0),
        ("POST", "/sparql", "application/sparql-query", query, 0),
        ("GET", "/sparql", "", "", 0),
        ("GET", "/graphs?default", "", "", 0),
        ("GET", "/graphs", "", "", 0),
        ("POST", "/sparql", "application/sparql-update", update, 1),
        ("POST", "/update", "application/sparql-update", update, 1),
        ("PUT", "/graphs?graph=urn:g", "text/turtle", "<urn:a> <urn:b> 1 .", 1),
        ("POST", "/graphs", "text/turtle", "<urn:a> <urn:b> 1 .", 1),
        ("DELETE", "/graphs?graph=urn:g", "", "", 1),
        ("GET", "/stats", "", "", 2),
        ("GET", "/metrics", "", "", 2),
        ("GET", "/requests", "", "", 2),
        ("POST", "/stats/reset", "", "", 2),
    ];
    for (method, path, kind, body, least) in requests {
        let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
        let send = |authorization: &str| server.send(method, path, &format!("{kind}{authorization}"), body);
        let none = send("");
        assert_eq!(status(&none), "401", "{method} {path}: {none:?}");
        assert!(none.0.contains("www-authenticate: Bearer") && none.0.contains("www-authenticate: Basic"));
        assert_eq!(status(&send("Authorization: Bearer snowmelt_wrong\r\n")), "401", "{method} {path}");
        for (who, secret) in secrets.iter().enumerate() {
            let answer = send(&format!("Authorization: Bearer {secret}\r\n"));
            match who >= least {
                true => assert!(answer.0.starts_with("HTTP/1.1 2"), "{method} {path} by {who}: {answer:?}"),
                false => assert_eq!(status(&answer), "403", "{method} {path} by {who}: {answer:?}"),
            }
            if method == "DELETE" && who >= least {
                server.send(
                    "PUT",
                    path,
                    &format!("Content-Type: text/turtle\r\nAuthorization: Bearer {secret}\r\n"),
                    "<urn:a> <urn:b> 1 .",
                );
            }
        }
    }
    for open in ["/health", "/ready"] {
        assert_eq!(status(&server.send("GET", open, "", "")), "200", "{open}");
    }
    // Rows of the reader's answers are bounded, and its requests are counted.
    let reader = format!("Authorization: Bearer {}\r\n", secrets[0]);
    let pairs = "SELECT%20*%20%7B%20%3Fa%20%3Fp%20%3Fb%20.%20%3Fc%20%3Fq%20%3Fd%20%7D";
    let many = server.send("GET", &format!("/sparql?query={pairs}"), &reader, "");
    assert!(status(&many) == "503" && many.1.contains("60 rows"), "{many:?}");
    let more: String = (0..20).map(|i| format!("<urn:t{i}> <urn:p> \"{i}\" .\n")).collect();
    let writer = format!("Content-Type: text/turtle\r\nAuthorization: Bearer {}\r\n", secrets[1]);
    assert_eq!(status(&server.send("PUT", "/graphs?graph=urn:more", &writer, &more)), "201");
    let all = server.send("GET", "/graphs", &reader, "");
    assert!(status(&all) == "503" && all.1.contains("60 rows"), "{all:?}");
    let admin = format!("Authorization: Bearer {}\r\n", secrets[2]);
    let (_, stats) = server.send("GET", "/stats?format=table", &admin, "");
    assert!(stats.contains("quads"), "{stats}");
}

#[test]
fn all_may_read_where_that_is_public() {
    let dir = tempfile::tempdir().unwrap();
    let (server, secrets) = with_tokens(dir.path(), true);
    assert!(server.get("ASK {}", "*/*").1.contains("true"));
    let update = server.update("INSERT DATA { <urn:x> <urn:p> 1 }");
    assert_eq!(status(&update), "401", "{update:?}");
    let form = "update=INSERT+DATA+%7B+%3Curn%3Aa%3E+%3Curn%3Aq%3E+%3Curn%3Ab%3E+%7D";
    let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(status(&server.send("POST", "/sparql", headers, form)), "401");
    let headers = format!("{headers}Authorization: Bearer {}\r\n", secrets[1]);
    assert_eq!(status(&server.send("POST", "/sparql", &headers, form)), "200");
}

#[test]
fn logs_say_who_did_what() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let log = |name: &str| Log::open(&path(name)).unwrap();
    let logs = Logs {
        access: Some(log("access")),
        access_form: AccessForm::Json,
        slow: Some((log("slow"), Duration::ZERO)),
        audit: Some(log("audit")),
    };
    let server = Running::start("<urn:a> <urn:b> \"1\" .", ServerConfig { logs: Arc::new(logs), ..config() });
    server.get("SELECT * { ?s ?p ?o }", "text/csv");
    server.update("INSERT DATA { <urn:x> <urn:p> 1 }");
    server.send("PUT", "/graphs?graph=urn:g", "Content-Type: text/turtle\r\n", "<urn:a> <urn:b> 1 .");
    server.update("nonsense");
    server.wait_until_idle();
    drop(server);
    let lines = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(path(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let access = lines("access");
    let of = |at: usize, name: &str| access[at][name].clone();
    assert_eq!((of(0, "method"), of(0, "status")), ("GET".into(), 200.into()), "{access:#?}");
    assert!(of(0, "bytes").as_u64().unwrap() > 10 && of(0, "activity").is_string(), "{access:#?}");
    assert_eq!([1, 2, 3].map(|at| of(at, "status")), [200, 201, 400].map(Value::from), "{access:#?}");
    let slow = lines("slow");
    assert!(slow[0]["plan"].as_array().unwrap()[0].as_str().unwrap().contains("rows"), "{slow:#?}");
    assert_eq!((&slow[0]["rows"], &slow[1]["kind"]), (&1.into(), &"update".into()));
    let audit = lines("audit");
    assert_eq!(audit.len(), 2, "only what was changed: {audit:#?}");
    assert_eq!((&audit[0]["inserted"], &audit[0]["kind"]), (&1.into(), &"update".into()));
    assert!(audit[1]["text"].as_str().unwrap().starts_with("PUT /graphs?graph=urn:g"), "{audit:#?}");
}

#[test]
fn some_graphs_are_all_that_a_user_of_them_sees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    let add = |token| TokenFile::change(&path, |file| file.add(token));
    let graphs = Some(vec!["urn:open".to_owned()]);
    let some = add(Token { graphs: graphs.clone(), ..Token::new("some", Rights::Write) }).unwrap();
    let all = add(Token::new("all", Rights::Admin)).unwrap();
    assert!(add(Token { graphs, ..Token::new("boss", Rights::Admin) }).is_err(), "meters are of all");
    let keeper = Arc::new(Keeper::of_file(&path, false).unwrap());
    let data = "<urn:a> <urn:p> \"default secret\" .\n<urn:a> <urn:p> \"seen\" <urn:open1> .\n\
                <urn:a> <urn:p> \"secret\" <urn:closed> .\n";
    let server = Running::start(data, ServerConfig { keeper, ..config() });
    let by = |secret: &str| format!("Authorization: Bearer {secret}\r\n");
    let get = |path: &str, secret: &str| server.send("GET", path, &by(secret), "");
    let query = |text: &str| {
        format!(
            "/sparql?query={}",
            text.replace(' ', "%20").replace('?', "%3F").replace('<', "%3C").replace('>', "%3E")
        )
    };
    for path in [
        query("SELECT * { GRAPH ?g { ?s ?p ?o } }"),
        query("SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"),
        query("DESCRIBE <urn:a>"),
        "/graphs".to_owned(),
        "/graphs?graph=urn:open1".to_owned(),
        "/sparql".to_owned(),
    ] {
        let (head, body) = get(&path, &some);
        assert!(head.starts_with("HTTP/1.1 200") && !body.contains("secret"), "{path}: {head}{body}");
        let told = ["snowmelt-activity", "etag", "last-modified"].map(|name| field(&head, name));
        assert_eq!(told, [None; 3], "{path}: {head}");
        assert!(!body.contains("closed") && !body.contains("triples>"), "{path}: {body}");
        assert!(field(&get(&path, &all).0, "etag").is_some(), "{path}");
    }
    assert!(get("/graphs", &some).1.contains("seen") && get("/graphs", &all).1.contains("default secret"));
    // A hidden graph is as one that is not there.
    for path in ["/graphs?graph=urn:closed", "/graphs?default", "/graphs?graph=urn:none"] {
        assert_eq!(status(&get(path, &some)), "404", "{path}");
    }
    assert_eq!(status(&get(&format!("{}&explain=plan", query("ASK {}")), &some)), "403");
    for path in ["/stats", "/metrics", "/requests"] {
        assert_eq!(status(&get(path, &some)), "403", "{path}");
    }
    let turtle = |secret: &str| format!("Content-Type: text/turtle\r\n{}", by(secret));
    let trig = |secret: &str| format!("Content-Type: application/trig\r\n{}", by(secret));
    let update = |secret: &str| format!("Content-Type: application/sparql-update\r\n{}", by(secret));
    let one = "<urn:a> <urn:p> 1 .";
    let before = get("/graphs", &all).1;
    for (method, path, headers, body) in [
        ("PUT", "/graphs?graph=urn:closed", turtle(&some), one),
        ("POST", "/graphs?default", turtle(&some), one),
        ("POST", "/graphs", turtle(&some), one),
        ("PUT", "/graphs", trig(&some), "GRAPH <urn:open1> { <urn:a> <urn:p> 1 }"),
        ("DELETE", "/graphs?graph=urn:closed", by(&some), ""),
        ("DELETE", "/graphs?default", by(&some), ""),
        ("POST", "/update", update(&some), "INSERT DATA { GRAPH <urn:closed> { <urn:a> <urn:p> 1 } }"),
        ("POST", "/update", update(&some), "CLEAR ALL"),
    ] {
        let refused = server.send(method, path, &headers, body);
        assert!(
            status(&refused) == "403" && !refused.0.contains("snowmelt-activity"),
            "{method} {path}: {refused:?}"
        );
    }
    assert_eq!(get("/graphs", &all).1, before);
    assert_eq!(status(&server.send("PUT", "/graphs?graph=urn:open2", &turtle(&some), one)), "201");
    let insert = "INSERT DATA { GRAPH <urn:open1> { <urn:a> <urn:p> 2 } }";
    assert_eq!(status(&server.send("POST", "/update", &update(&some), insert)), "200");
    assert!(get(&query("SELECT * { GRAPH ?g { ?s ?p ?o } }"), &some).1.matches("urn:open").count() >= 3);
}

/// A counter of the server's.
fn counted(server: &Running, name: &str) -> u64 {
    let stats: Value = serde_json::from_str(&server.ask(&get("/stats")).1).unwrap();
    stats[name].as_u64().unwrap()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// A query is tried at once when those of its shape were short; this one may be long all the same.
#[test]
fn what_was_tried_at_once_and_is_long_is_answered_whole() {
    let few = "<urn:few> <urn:p> \"1\" .\n";
    let many: String = (0..4000).map(|i| format!("<urn:many> <urn:p> \"a longer value {i}\" .\n")).collect();
    let server = Running::start(&(few.to_owned() + &many), config());
    let pairs =
        "SELECT (COUNT(*) AS ?n) { <urn:X> <urn:p> ?a . <urn:X> <urn:p> ?b FILTER(STR(?a) < STR(?b)) }";
    for (what, shape, rows) in
        [("more than a piece", "SELECT ?o { <urn:X> <urn:p> ?o }", 4000), ("more than a moment", pairs, 1)]
    {
        let text = |of: &str| shape.replace('X', of);
        let (tried, given_up) = (counted(&server, "tried_at_once"), counted(&server, "given_up_at_once"));
        // How long the first ones take is the machine's affair.
        for _ in 0..2000 {
            server.get(&text("few"), "text/csv");
            if counted(&server, "tried_at_once") > tried {
                break;
            }
        }
        assert!(counted(&server, "tried_at_once") > tried, "{what}");
        let (head, body) = server.get(&text("many"), "text/csv");
        assert!(head.starts_with("HTTP/1.1 200"), "{what}: {head} {body}");
        assert_eq!(body.lines().count(), 1 + rows, "{what}");
        if rows == 1 {
            assert_eq!(body.lines().nth(1), Some(&*(4000 * 3999 / 2).to_string()));
        }
        assert_eq!(counted(&server, "given_up_at_once"), given_up + 1, "{what}");
        // And is not tried again for a while.
        let tried = counted(&server, "tried_at_once");
        server.get(&text("many"), "text/csv");
        assert_eq!(counted(&server, "tried_at_once"), tried, "{what}");
    }
}
