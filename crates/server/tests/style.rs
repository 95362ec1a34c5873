//! How queries are read and answered: prefixes that are kept with a database, forms of
//! descriptions, warnings.

mod support;

use std::sync::Arc;

use snowmelt_graph::GraphError;
use snowmelt_server::tokens::{Keeper, Rights, Token, TokenFile};
use snowmelt_server::{QueryStyle, ServerConfig};
use snowmelt_sparql::DescribeForm;

use support::{Running, config};

const DATA: &str = "<urn:x:a> <urn:x:p> <urn:x:b> .\n<urn:x:b> <urn:x:p> \"1\" <urn:x:g> .\n";

fn keeping(config: ServerConfig) -> Running {
    let server = Running::start(DATA, config);
    let set = |all: &mut snowmelt_graph::Namespaces| {
        all.set("x", "urn:x:").unwrap();
        Ok::<_, GraphError>(())
    };
    server.engine().graph().change_namespaces(set).unwrap();
    server
}

#[test]
fn kept_prefixes_are_assumed_only_where_the_server_says_so() {
    let query = "SELECT ?o { x:a x:p ?o }";
    let server = keeping(config());
    let (head, body) = server.get(query, "text/csv");
    assert!(
        head.starts_with("HTTP/1.1 400")
            && body == "line 1, column 13: the prefix x: is not declared; begin with PREFIX x: <urn:x:>\n",
        "{head}{body}"
    );
    let style = QueryStyle { assume_prefixes: true, ..QueryStyle::default() };
    let server = keeping(ServerConfig { style, ..config() });
    let (head, body) = server.get(query, "text/csv");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("urn:x:b"), "{head}{body}");
    let (head, body) = server.get("SELECT ?o { x:a x:p ?o } LIMT 1", "text/csv");
    assert!(head.starts_with("HTTP/1.1 400") && body.contains("line 1, column 26"), "{head}{body}");
}

#[test]
fn faults_of_texts_are_told_to_programs() {
    let server = keeping(config());
    let problem = |(head, body): (String, String), kind: &str| -> serde_json::Value {
        assert!(head.starts_with("HTTP/1.1 400") && head.contains(kind), "{head}{body}");
        serde_json::from_str(&body).unwrap()
    };
    let wrong = "SELECT * {\n ?é foaf:name ?o .\n OPTINAL { ?s x:q ?r }\n}";
    for (accept, kind) in [
        ("application/json", "content-type: application/json\r\n"),
        ("application/problem+json", "content-type: application/problem+json\r\n"),
        ("application/sparql-results+json, application/json;q=0.5", "content-type: application/json\r\n"),
    ] {
        let told = problem(server.get(wrong, accept), kind);
        assert_eq!((&told["title"], &told["status"]), (&"Bad Request".into(), &400.into()), "{told:#}");
        let detail = told["detail"].as_str().unwrap();
        assert!(detail.starts_with("line 2, column 5: the prefix foaf: is not declared; "), "{told:#}");
        let [foaf, optional, _x] = &told["errors"].as_array().unwrap()[..] else { panic!("{told:#}") };
        let place = ["line", "column", "start", "end"].map(|name| foaf[name].as_u64().unwrap());
        assert_eq!(place, [2, 5, 16, 21], "{told:#}");
        assert_eq!(foaf["caret"], serde_json::json!({ "start": 4, "length": 5 }));
        assert_eq!(foaf["cause"], "begin with PREFIX foaf: <http://xmlns.com/foaf/0.1/>");
        let expected = optional["expected"].as_array().unwrap();
        assert!(["OPTIONAL", "LATERAL"].iter().all(|e| expected.contains(&(*e).into())), "{told:#}");
        assert_eq!((&optional["line"], &optional["cause"]), (&3.into(), &"is OPTIONAL meant?".into()));
    }
    let kept = problem(server.get("ASK { ?s x:p ?o }", "application/json"), "json\r\n");
    assert_eq!(kept["errors"][0]["cause"], "begin with PREFIX x: <urn:x:>");
    let update = "Content-Type: application/sparql-update\r\nAccept: application/json\r\n";
    let update = |text: &str| problem(server.send("POST", "/update", update, text), "json\r\n");
    let misspelt = update("INSRT DATA { <urn:a> <urn:b> 1 }");
    assert_eq!(misspelt["errors"][0]["column"], 1, "{misspelt:#}");
    let query = update("ASK {}");
    let [query] = &query["errors"].as_array().unwrap()[..] else { panic!("{query:#}") };
    assert_eq!(
        (&query["code"], &query["message"]),
        (&"wrong-language".into(), &"this is a query, not an update".into())
    );
    let (head, body) = server.send("GET", "/nowhere", "Accept: application/problem+json\r\n", "");
    let none: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(head.starts_with("HTTP/1.1 404") && none["status"] == 404 && none["errors"].is_null(), "{body}");
}

#[test]
fn turtle_and_the_page_show_kept_prefixes() {
    let server = keeping(config());
    let (_, turtle) = server.get("PREFIX q: <urn:x:b> CONSTRUCT WHERE { ?s ?p ?o }", "text/turtle");
    assert!(turtle.contains("@prefix x: <urn:x:> .") && turtle.contains("x:a x:p q:"), "{turtle}");
    let (_, plain) = server.get("CONSTRUCT WHERE { ?s ?p ?o }", "application/n-triples");
    assert_eq!(plain, "<urn:x:a> <urn:x:p> <urn:x:b> .\n");
    for path in ["/", "/sparql"] {
        let (_, page) = server.send("GET", path, "Accept: text/html,*/*;q=0.8\r\n", "");
        assert!(page.contains("autofocus>PREFIX x: &lt;urn:x:>\nSELECT"), "{path}: {page}");
    }
    let (_, dump) = server.send("GET", "/graphs", "Accept: application/trig\r\n", "");
    assert!(dump.contains("@prefix x: <urn:x:> ."), "{dump}");
}

#[test]
fn a_user_of_some_graphs_learns_no_prefixes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    let token = Token { graphs: Some(vec!["urn:x:g".to_owned()]), ..Token::new("some", Rights::Read) };
    let secret = TokenFile::change(&path, |file| file.add(token)).unwrap();
    let keeper = Arc::new(Keeper::of_file(&path, false).unwrap());
    let style = QueryStyle { assume_prefixes: true, ..QueryStyle::default() };
    let server = keeping(ServerConfig { keeper, style, ..config() });
    let asked = |query: &str| {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let headers = format!("Authorization: Bearer {secret}\r\nAccept: text/turtle\r\n");
        server.send("GET", &format!("/sparql?query={query}"), &headers, "")
    };
    assert!(asked("CONSTRUCT { x:a x:p ?o } WHERE { ?s ?p ?o }").0.starts_with("HTTP/1.1 400"));
    let (_, body) = asked("ASK { x:a ?p ?o }");
    assert!(body.contains("the prefix x: is not declared") && !body.contains("urn:x:"), "{body}");
    let (head, turtle) = asked("CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }");
    assert!(head.starts_with("HTTP/1.1 200") && turtle.contains("<urn:x:b> <urn:x:p>"), "{head}{turtle}");
    assert!(!turtle.contains("@prefix"), "{turtle}");
    let (_, page) = server.send("GET", "/", "Accept: text/html,*/*;q=0.8\r\n", "");
    assert!(page.contains("autofocus>SELECT"), "{page}");
}

#[test]
fn things_are_described_as_the_server_says() {
    let describe = "DESCRIBE <urn:x:b>";
    let (_, concise) = Running::start(DATA, config()).get(describe, "application/n-triples");
    assert_eq!(concise, "");
    let style = QueryStyle { describe: DescribeForm::Symmetric, ..QueryStyle::default() };
    let server = Running::start(DATA, ServerConfig { style, ..config() });
    let (_, symmetric) = server.get(describe, "application/n-triples");
    assert_eq!(symmetric, "<urn:x:a> <urn:x:p> <urn:x:b> .\n");
}

#[test]
fn a_function_that_is_not_there_is_named_in_a_header() {
    let server = Running::start(DATA, config());
    let (head, body) = server.get("SELECT ?x { ?s ?p ?o BIND(<urn:é>(?o) AS ?x) }", "text/csv");
    assert!(head.starts_with("HTTP/1.1 200") && body.lines().count() == 2, "{head}{body}");
    let expected =
        "snowmelt-warning: there is no function <urn:?> of one argument: each call of it is an error";
    assert!(head.to_ascii_lowercase().contains(expected), "{head}");
    let (head, _) = server.get("SELECT ?x { ?s ?p ?o }", "text/csv");
    assert!(!head.to_ascii_lowercase().contains("snowmelt-warning"), "{head}");
    let (_, body) = server.update("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(<urn:f>(?o)) }");
    let report: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(report["deleted"], 0);
    assert_eq!(
        report["warnings"][0],
        "there is no function <urn:f> of one argument: each call of it is an error"
    );
}
