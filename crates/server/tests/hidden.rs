//! A token for some graphs: requests that name a hidden graph have the answers, heads and bodies,
//! of requests that name a graph which does not exist; and nothing that it is told counts what
//! others do where it may not look.

mod support;

use std::sync::Arc;

use serde_json::Value;
use snowmelt_server::ServerConfig;
use snowmelt_server::tokens::{Keeper, Rights, Token, TokenFile};
use support::{Running, config};

const HIDDEN: &str = "urn:closed:ledger";
const UNKNOWN: &str = "urn:closed:nobody";

/// A server with an open and a hidden graph, and the tokens of one who may see the first alone, and
/// of one who may do all.
fn serve() -> (tempfile::TempDir, Running, [String; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    let add = |token| TokenFile::change(&path, |file| file.add(token)).unwrap();
    let graphs = Some(vec!["urn:open".to_owned()]);
    let some = add(Token { graphs, ..Token::new("some", Rights::Write) });
    let all = add(Token::new("all", Rights::Admin));
    let keeper = Arc::new(Keeper::of_file(&path, false).unwrap());
    let data = format!(
        "<urn:a> <urn:p> _:n <urn:open:a> .\n<urn:a> <urn:p> \"1\" <{HIDDEN}> .\n_:m <urn:p> \"2\" <{HIDDEN}> .\n"
    );
    (dir, Running::start(&data, ServerConfig { keeper, ..config() }), [some, all])
}

fn send(
    server: &Running,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
    token: &str,
) -> (String, String) {
    server.send(method, path, &format!("Authorization: Bearer {token}\r\n{headers}"), body)
}

/// Requests in which `@` is the name of a graph, escaped or not.
fn requests() -> Vec<(&'static str, String, &'static str, String)> {
    let mut all = Vec::new();
    let mut push = |method, path: &str, headers, body: &str| {
        all.push((method, path.to_owned(), headers, body.to_owned()));
    };
    const TURTLE: &str = "Content-Type: text/turtle\r\n";
    const QUERY: &str = "Content-Type: application/sparql-query\r\n";
    const UPDATE: &str = "Content-Type: application/sparql-update\r\n";
    for (method, headers, body) in [
        ("GET", "", ""),
        ("HEAD", "", ""),
        ("GET", "If-None-Match: *\r\n", ""),
        ("DELETE", "", ""),
        ("PUT", TURTLE, "<urn:x> <urn:p> 1 ."),
        ("POST", TURTLE, "<urn:x> <urn:p> 1 ."),
        ("PUT", TURTLE, "this is no Turtle"),
        ("PUT", "Content-Type: image/png\r\n", "nor is this"),
    ] {
        push(method, "/graphs?graph=@", headers, body);
    }
    for query in [
        "ASK { GRAPH <@> { ?s ?p ?o } }",
        "SELECT (COUNT(*) AS ?n) { GRAPH <@> { ?s ?p ?o } }",
        "SELECT * FROM <@> { ?s ?p ?o }",
        "SELECT * FROM NAMED <@> { GRAPH ?g { ?s ?p ?o } }",
        "SELECT * { VALUES ?g { <@> } GRAPH ?g { ?s ?p ?o } }",
        "DESCRIBE <@>",
        "SELECT nonsense { GRAPH <@> }",
    ] {
        push("POST", "/sparql", QUERY, query);
        push("POST", "/sparql?explain=plan", QUERY, query);
    }
    push("POST", "/sparql?default-graph-uri=@", QUERY, "SELECT * { ?s ?p ?o }");
    push("POST", "/sparql?named-graph-uri=@", QUERY, "SELECT * { GRAPH ?g { ?s ?p ?o } }");
    for update in [
        "INSERT DATA { GRAPH <@> { <urn:x> <urn:p> 1 } }",
        "DELETE DATA { GRAPH <@> { <urn:a> <urn:p> \"1\" } }",
        "DELETE WHERE { GRAPH <@> { ?s ?p ?o } }",
        "WITH <@> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "DELETE { GRAPH <urn:open:a> { ?s <urn:none> ?o } } USING <@> WHERE { ?s ?p ?o }",
        "DELETE { GRAPH <urn:open:a> { ?s <urn:none> ?o } } USING NAMED <@> WHERE { GRAPH ?g { ?s ?p ?o } }",
        "DELETE { GRAPH <urn:open:a> { ?s <urn:none> ?o } } WHERE { GRAPH <@> { ?s ?p ?o } }",
        "INSERT { GRAPH ?g { <urn:x> <urn:p> 1 } } WHERE { VALUES ?g { <@> } GRAPH ?g { ?s ?p ?o } }",
        "CLEAR GRAPH <@>",
        "DROP SILENT GRAPH <@>",
        "CREATE GRAPH <@>",
        "COPY <@> TO <urn:open:a>",
        "MOVE <urn:open:a> TO <@>",
        "ADD SILENT <@> TO <urn:open:none>",
    ] {
        push("POST", "/update", UPDATE, update);
    }
    push(
        "POST",
        "/update?using-graph-uri=@",
        UPDATE,
        "DELETE { GRAPH <urn:open:a> { ?s <urn:none> ?o } } WHERE { ?s ?p ?o }",
    );
    all
}

/// The parts of an answer that a client can compare.
fn answer(server: &Running, request: &(&str, String, &str, String), name: &str, token: &str) -> String {
    let (method, path, headers, body) = request;
    let (path, body) = (path.replace('@', name), body.replace('@', name));
    let (head, body) = send(server, method, &path, headers, &body, token);
    let head: Vec<&str> =
        head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:")).collect();
    // A name of its own that each commit has.
    let mut body = body;
    if let Some(at) = body.find("\"transaction\":\"") {
        body.replace_range(at + 15..at + 39, "@");
    }
    format!("{}\n{body}", head.join("\n")).replace(name, "@")
}

#[test]
fn a_hidden_graph_is_answered_as_one_that_is_not_there() {
    let mut unequal = Vec::new();
    for request in requests() {
        // Each on a server of its own, which no request before has changed.
        let [hidden, unknown] = [HIDDEN, UNKNOWN].map(|name| {
            let (_dir, server, [some, _]) = serve();
            [(); 2].map(|()| answer(&server, &request, name, &some))
        });
        if hidden != unknown {
            unequal.push(format!("{request:?}\n{hidden:#?}\n{unknown:#?}"));
        }
    }
    assert!(unequal.is_empty(), "{} differ:\n{}", unequal.len(), unequal.join("\n"));
}

#[test]
fn nothing_counts_commits_that_are_hidden() {
    let (_dir, server, [some, all]) = serve();
    let update = |text: &str, token: &str| {
        let headers = "Content-Type: application/sparql-update\r\n";
        let (head, body) = send(&server, "POST", "/update", headers, text, token);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}{body}");
        (head, serde_json::from_str::<Value>(&body).unwrap()["transaction"].clone())
    };
    let own =
        |n: u32| update(&format!("INSERT DATA {{ GRAPH <urn:open:a> {{ <urn:o{n}> <urn:p> {n} }} }}"), &some);
    let (head, first) = own(1);
    (0..5).for_each(|n| {
        drop(update(&format!("INSERT DATA {{ GRAPH <{HIDDEN}> {{ [] <urn:q> {n} }} }}"), &all))
    });
    let (_, second) = own(2);
    let names = [&first, &second].map(|name| name.as_str().expect("a name and no number").to_owned());
    assert!(names[0] != names[1] && names.iter().all(|name| name.len() == 24), "{names:?}");
    assert!(!head.to_ascii_lowercase().contains("etag"), "{head}");
    // An update without changes gets no name: its state is that of the last commit of anyone.
    assert_eq!(own(2).1, Value::Null);
    // A token for all graphs gets numbers.
    assert!(update("INSERT DATA { <urn:x> <urn:p> 1 }", &all).1.is_u64());
    let query = "/sparql?query=SELECT%20*%20%7B%20GRAPH%20%3Fg%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D%20%7D";
    let (head, body) = send(&server, "GET", query, "Accept: text/csv\r\n", "", &some);
    let lower = head.to_ascii_lowercase();
    assert!(
        !lower.contains("etag") && !lower.contains("last-modified") && !lower.contains("activity"),
        "{head}"
    );
    let label = body.split([',', '\r', '\n']).find(|cell| cell.starts_with("_:")).unwrap();
    assert!(label.starts_with("_:h") && label.len() == 35, "{label}");
    let (_, dump) = send(&server, "GET", "/graphs", "Accept: application/n-quads\r\n", "", &some);
    assert!(dump.contains(&format!("{label} <urn:open:a>")), "{dump}");
    // Tags of those who see all are the same for the same state and tell no number.
    let tag = || {
        let (head, _) = send(&server, "GET", query, "Accept: text/csv\r\n", "", &all);
        head.lines().find(|line| line.to_ascii_lowercase().starts_with("etag")).unwrap().to_owned()
    };
    let before = tag();
    assert_eq!(before, tag());
    update("INSERT DATA { <urn:y> <urn:p> 1 }", &all);
    assert_ne!(before, tag());
}

/// The answer to a request for all graphs, in a media type.
fn dumped(server: &Running, accept: &str, token: &str) -> (String, String, String) {
    let (head, body) = send(server, "GET", "/graphs", &format!("Accept: {accept}\r\n"), "", token);
    let tag = head.lines().find(|line| line.to_ascii_lowercase().starts_with("etag: "));
    (head[9..12].to_owned(), tag.unwrap_or_default().to_owned(), body)
}

/// Terms that a format cannot say are refused where they are seen: not where they are hidden, nor
/// where they were.
#[test]
fn newer_terms_are_refused_where_they_are_seen() {
    const CLASSIC: &str = "application/n-quads;version=1.1";
    const JSON_LD: &str = "application/ld+json";
    let (_dir, server, [some, all]) = serve();
    let update = |text: &str| {
        let headers = "Content-Type: application/sparql-update\r\n";
        let (head, body) = send(&server, "POST", "/update", headers, text, &all);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}{body}");
    };
    let status = |accept: &str, token: &str| dumped(&server, accept, token).0;
    let open = dumped(&server, CLASSIC, &some);
    assert_eq!(open.0, "200", "{}", open.2);
    let direction = "<urn:a> <urn:p> \"x\"@en--ltr";
    update(&format!("INSERT DATA {{ GRAPH <{HIDDEN}> {{ {direction} }} }}"));
    assert_eq!((status(CLASSIC, &all), status(JSON_LD, &all)), ("406".into(), "200".into()));
    let triple = "<urn:a> <urn:p> <<( <urn:b> <urn:q> 1 )>>";
    update(&format!("INSERT DATA {{ GRAPH <{HIDDEN}> {{ {triple} }} }}"));
    assert_eq!((status(CLASSIC, &all), status(JSON_LD, &all)), ("406".into(), "406".into()));
    assert_eq!(dumped(&server, CLASSIC, &some), open, "the hidden graph is not told of");
    assert_eq!(status(JSON_LD, &some), "200");
    update(&format!("INSERT DATA {{ GRAPH <urn:open:b> {{ {direction} }} }}"));
    assert_eq!((status(CLASSIC, &some), status(JSON_LD, &some)), ("406".into(), "200".into()));
    update(&format!("INSERT DATA {{ GRAPH <urn:open:b> {{ {triple} }} }}"));
    assert_eq!((status(CLASSIC, &some), status(JSON_LD, &some)), ("406".into(), "406".into()));
    update(&format!(
        "DROP GRAPH <urn:open:b> ; DELETE DATA {{ GRAPH <{HIDDEN}> {{ {triple} . {direction} }} }}"
    ));
    for token in [&some, &all] {
        assert_eq!((status(CLASSIC, token), status(JSON_LD, token)), ("200".into(), "200".into()));
    }
}

/// Refused before a part has gone out, however far back in the answer it would come.
#[test]
fn a_triple_term_at_the_end_is_refused_at_the_begin() {
    let (_dir, server, [_, all]) = serve();
    let headers = "Content-Type: application/n-quads\r\n";
    let many: String =
        (0..5000).map(|n| format!("<urn:s{n}> <urn:p> \"a value of number {n}\" .\n")).collect();
    let post = |body: &str| send(&server, "POST", "/graphs", headers, body, &all).0[9..12].to_owned();
    assert_eq!(post(&many), "204");
    assert_eq!(post("<urn:z> <urn:p> <<( <urn:b> <urn:q> \"1\" )>> ."), "204");
    let (status, _, body) = dumped(&server, "application/ld+json", &all);
    assert_eq!((&*status, body.contains("no triple terms")), ("406", true), "{body}");
    let (status, _, body) = dumped(&server, "application/trig;version=1.1", &all);
    assert_eq!((&*status, body.contains("version=1.2")), ("406", true), "{body}");
}

/// Each range of `Accept` is weighed for the terms that there are.
#[test]
fn terms_decide_between_ranges() {
    let (_dir, server, [_, all]) = serve();
    let insert = |triples: &str| {
        let headers = "Content-Type: application/sparql-update\r\n";
        let text = format!("INSERT DATA {{ GRAPH <urn:versions> {{ {triples} }} }}");
        let (head, body) = send(&server, "POST", "/update", headers, &text, &all);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}{body}");
    };
    let asked = |target: &str, accept: &str| {
        let (head, body) = send(&server, "GET", target, &format!("Accept: {accept}\r\n"), "", &all);
        let lower = head.to_ascii_lowercase();
        let kind = lower.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
        match &head[9..12] {
            "200" => kind.to_owned(),
            status => format!("{status} {body}"),
        }
    };
    let construct =
        "/sparql?query=CONSTRUCT%20WHERE%20%7BGRAPH%20%3Curn%3Aversions%3E%20%7B%3Fs%20%3Fp%20%3Fo%7D%7D";
    let construct = &construct.replace("CONSTRUCT%20WHERE", "CONSTRUCT%20%7B%3Fs%20%3Fp%20%3Fo%7D%20WHERE");
    let select = "/sparql?query=SELECT%20*%20%7BGRAPH%20%3Curn%3Aversions%3E%20%7B%3Fs%20%3Fp%20%3Fo%7D%7D";
    let graph = "/graphs?graph=urn%3Aversions";
    let turtle = "text/turtle;version=1.1, application/trig;version=1.2-basic;q=0.5, */*;q=0.1";
    let json = "application/sparql-results+json;version=1.1, text/csv;q=0.1";
    let quads = "application/trig;version=1.1, application/n-quads;q=0.1";
    let basic = "text/turtle;version=1.2-basic";
    // classic terms, then a direction, then a triple term
    insert("<urn:a> <urn:p> 1");
    for target in [construct.as_str(), graph] {
        assert_eq!(asked(target, turtle), "text/turtle");
        assert_eq!(asked(target, basic), "text/turtle; version=1.2-basic");
    }
    assert_eq!(asked(select, json), "application/sparql-results+json");
    assert_eq!(asked("/graphs", quads), "application/trig");
    insert("<urn:a> <urn:p> \"x\"@en--ltr");
    for target in [construct.as_str(), graph] {
        assert_eq!(asked(target, turtle), "application/trig; version=1.2-basic");
        assert_eq!(asked(target, basic), "text/turtle; version=1.2-basic");
    }
    assert_eq!(asked(select, json), "text/csv");
    assert_eq!(asked("/graphs", quads), "application/n-quads");
    let refused = asked(select, "application/sparql-results+json;version=1.1");
    assert!(refused.starts_with("406 ") && refused.contains("\"x\"@en--ltr cannot be written"), "{refused}");
    insert("<urn:a> <urn:p> <<( <urn:b> <urn:q> \"1\" )>>");
    for target in [construct.as_str(), graph] {
        assert_eq!(asked(target, turtle), "application/n-triples");
        let refused = asked(target, basic);
        assert!(refused.starts_with("406 ") && refused.contains("Basic has no triple terms"), "{refused}");
        assert_eq!(asked(target, "application/ld+json, text/turtle;q=0.1"), "text/turtle");
    }
    assert!(asked("/graphs", "application/trig;version=1.2-basic").starts_with("406 "));
    assert_eq!(asked("/graphs", "application/ld+json, application/trig;q=0.1"), "application/trig");
}

#[test]
fn a_tag_is_of_a_version() {
    let (_dir, server, [_, all]) = serve();
    let tags = ["", ";version=1.1", ";version=1.2"]
        .map(|version| dumped(&server, &format!("application/n-quads{version}"), &all).1);
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    let of_query = |version: &str| {
        let query = "/sparql?query=CONSTRUCT%20%7B%3Fs%20%3Fp%20%3Fo%7D%20%7B%3Fs%20%3Fp%20%3Fo%7D";
        let (head, _) = send(&server, "GET", query, &format!("Accept: text/turtle{version}\r\n"), "", &all);
        head.lines().find(|line| line.to_ascii_lowercase().starts_with("etag")).unwrap().to_owned()
    };
    assert_ne!(of_query(";version=1.1"), of_query(""));
    // the answer of one version is not the one that a client of another has
    let newest = tags[0].split_once(": ").unwrap().1;
    let again = |accept: &str| {
        let headers = format!("Accept: {accept}\r\nIf-None-Match: {newest}\r\n");
        send(&server, "GET", "/graphs", &headers, "", &all).0[9..12].to_owned()
    };
    assert_eq!([again("application/n-quads"), again("application/n-quads;version=1.1")], ["304", "200"]);
}
