//! Endpoints that cut answers short, make them wide, or never come to an end.

mod support;

use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use snowmelt_federation::{AnswerPart, Fault, Federation, FederationSettings, Lookup};
use support::{Endpoint, JSON, all, ask, rows, send, values};

const XML: &str = "application/sparql-results+xml";
const TSV: &str = "text/tab-separated-values";

/// The values of an answer, or its error.
fn answered(endpoint: &Endpoint) -> Result<Vec<String>, Fault> {
    all(&mut ask(&endpoint.federation(), &endpoint.address)).map(|(rows, _)| values(&rows))
}

/// An endpoint with one answer.
fn giving(media_type: &'static str, body: String) -> Endpoint {
    Endpoint::new(move |_, stream| send(stream, "200 OK", media_type, "", &body))
}

fn xml(values: &[&str]) -> String {
    let row =
        |value: &&str| format!("<result><binding name=\"x\"><literal>{value}</literal></binding></result>");
    let rows: String = values.iter().map(row).collect();
    format!(
        "<?xml version=\"1.0\"?><!-- > <a> --><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\">\
         <head><variable name=\"x\"/></head><results>{rows}</results></sparql>\n<!-- > <b> -->"
    )
}

#[test]
fn an_answer_cut_at_any_byte_is_not_whole() {
    let whole = xml(&["1", "2"]);
    assert_eq!(answered(&giving(XML, whole.clone())).unwrap(), ["1", "2"]);
    let (first, end) = (whole.find("<results>").unwrap() + 9, whole.find("</sparql>").unwrap() + 9);
    for at in (first..end).step_by(5).chain([end - 1]) {
        let error = answered(&giving(XML, whole[..at].to_owned())).unwrap_err();
        assert!(matches!(error, Fault::BrokenOff(_)), "{}: {error}", &whole[..at]);
    }
    let table = "?x\n12\n34\n";
    assert_eq!(answered(&giving(TSV, table.to_owned())).unwrap().len(), 2);
    let error = answered(&giving(TSV, table[..table.len() - 2].to_owned())).unwrap_err();
    assert!(matches!(error, Fault::BrokenOff(_)), "{error}");
}

#[test]
fn a_tag_has_few_bytes() {
    let tag = |attributes: usize| {
        let attributes: String = (0..attributes).map(|n| format!(" a{n:07}=''")).collect();
        giving(XML, xml(&["1"]).replace("<result>", &format!("<result{attributes}>")))
    };
    assert_eq!(answered(&tag(100)).unwrap(), ["1"]);
    let error = answered(&tag(20_000)).unwrap_err();
    assert!(error.to_string().ends_with(": a tag has more than 65536 bytes, the limit"), "{error}");
}

#[test]
fn a_head_has_few_bytes() {
    let filler = "y".repeat(2 << 20);
    for (media_type, body) in [
        (JSON, rows("x", &["1"]).replace("\"vars\"", &format!("\"link\":[\"{filler}\"],\"vars\""))),
        (XML, xml(&["1"]).replace("<head>", &format!("<!-- {filler} --><head>"))),
        (TSV, format!("?x\t?{filler}\n1\t2\n")),
    ] {
        let error = answered(&giving(media_type, body)).unwrap_err().to_string();
        assert!(error.contains("1 MiB of it came before its rows"), "{media_type}: {error}");
    }
}

/// Finds names in its own time.
#[derive(Debug)]
struct SlowLookup;

impl Lookup for SlowLookup {
    fn addresses(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        std::thread::sleep(Duration::from_secs(8));
        Ok(Vec::new())
    }
}

#[test]
fn a_reader_that_goes_gives_its_place_back_at_once() {
    let named = "http://data.example.org/";
    let settings = FederationSettings {
        allowed: vec![named.parse().unwrap()],
        patience: Duration::from_secs(60),
        ..FederationSettings::default()
    };
    let federation = Federation::with_lookup(settings, Arc::new(SlowLookup));
    let mut answer = ask(&federation, named);
    drop(answer.next(Duration::from_millis(200)));
    assert_eq!(federation.under_way(), 1);
    drop(answer);
    assert_eq!(federation.under_way(), 0);
}

/// Rows that come before their head.
fn headless(count: usize) -> Endpoint {
    let row = "{\"x\":{\"type\":\"literal\",\"value\":\"1\"}}";
    let listed = vec![row; count].join(",");
    giving(JSON, format!("{{\"results\":{{\"bindings\":[{listed}]}},\"head\":{{\"vars\":[\"x\"]}}}}"))
}

#[test]
fn rows_before_their_head_are_few() {
    assert_eq!(answered(&headless(1000)).unwrap().len(), 1000);
    let error = answered(&headless(60_000)).unwrap_err().to_string();
    assert!(error.contains("1 MiB of it came before its rows"), "{error}");
}

#[test]
fn a_row_is_little_longer_than_the_longest_term() {
    let long = |len: usize| giving(JSON, rows("x", &["1", &"y".repeat(len), "3"]));
    for (len, is_read) in [(3 << 19, true), (4 << 20, false)] {
        let endpoint = long(len);
        let settings = FederationSettings { longest_term: 1 << 20, ..endpoint.allowed() };
        let done = all(&mut ask(&Federation::new(settings), &endpoint.address));
        match done {
            Ok((rows, _)) => assert!(is_read && rows.len() == 3, "{len}"),
            Err(error) => {
                assert!(!is_read && error.to_string().contains("2 MiB of it have no whole row"), "{error}");
            }
        }
    }
}

#[test]
fn an_error_that_drips_is_told_in_time() {
    let drips = Endpoint::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 500 Oh\r\nContent-Length: 300\r\n\r\nno");
        (0..100).all(|_| {
            std::thread::sleep(Duration::from_millis(200));
            stream.write_all(b"!").is_ok()
        })
    });
    let begun = Instant::now();
    let error = answered(&drips).unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(error.starts_with("it answered 500: no"), "{error}");
}

#[test]
fn redirects_have_the_patience_of_one_request() {
    let slow = Endpoint::new(|_, stream| {
        std::thread::sleep(Duration::from_millis(400));
        send(stream, "302 Found", "text/plain", "Location: /sparql/on\r\n", "")
    });
    let error = answered(&slow).unwrap_err();
    assert!(matches!(error, Fault::Late(_)), "{error}");
}

#[test]
fn a_redirect_has_the_query_once() {
    let keeps = Endpoint::new(|request, stream| match request.line.strip_prefix("GET /sparql?") {
        Some(rest) => {
            let query = rest.split(' ').next().unwrap_or_default();
            let to = format!("Location: /sparql/new?a=b&{query}&%71uery=c&queries=d\r\n");
            send(stream, "307 Moved", "text/plain", &to, "")
        }
        None => {
            assert!(request.line.contains("/new?a=b&queries=d&query=SELECT"), "{request:?}");
            assert_eq!(request.line.matches("uery=").count(), 1, "{request:?}");
            send(stream, "200 OK", JSON, "", &rows("x", &["1"]))
        }
    });
    assert_eq!(answered(&keeps).unwrap(), ["1"]);
}

/// An endpoint whose answers end with their connection.
fn closing(media_type: &'static str, body: String) -> Endpoint {
    Endpoint::new(move |_, stream: &mut TcpStream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n\r\n{body}");
        let _ = stream.shutdown(std::net::Shutdown::Both);
        false
    })
}

#[test]
fn an_end_that_cannot_be_told_from_a_cut_is_refused() {
    let error = answered(&closing(TSV, "?x\n1\n".to_owned())).unwrap_err();
    assert!(matches!(error, Fault::NoEnd), "{error}");
    assert_eq!(answered(&closing(XML, xml(&["1"]))).unwrap(), ["1"]);
    assert_eq!(answered(&closing(JSON, rows("x", &["1"]))).unwrap(), ["1"]);
    let document = |media_type| {
        let endpoint = closing(media_type, "<urn:s> <urn:p> <urn:o> .\n".to_owned());
        endpoint.federation().fetch(&endpoint.address, Box::new(|| true)).map(drop)
    };
    for media_type in ["application/n-triples", "text/turtle", "application/trig", "text/plain"] {
        let error = document(media_type).unwrap_err();
        assert!(matches!(error, Fault::NoEnd), "{media_type}: {error}");
    }
    for media_type in ["application/rdf+xml", "application/ld+json"] {
        assert!(document(media_type).is_ok(), "{media_type}");
    }
}

#[test]
fn a_part_of_an_answer_is_no_answer() {
    for (status, is_answer) in [
        ("200 OK", true),
        ("203 Changed", true),
        ("201 Created", false),
        ("202 Accepted", false),
        ("206 Partial Content", false),
    ] {
        let endpoint = Endpoint::new(move |_, stream| send(stream, status, JSON, "", &rows("x", &["1"])));
        assert_eq!(answered(&endpoint).is_ok(), is_answer, "{status}");
        let document = endpoint.federation().fetch(&endpoint.address, Box::new(|| true));
        assert_eq!(document.is_ok(), is_answer, "{status}");
    }
    let none = Endpoint::new(|_, stream| {
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\nContent-Type: text/tab-separated-values\r\n\r\n")
            .is_ok()
    });
    assert_eq!(answered(&none).unwrap_err().to_string(), "it answered 204");
}

#[test]
fn wide_rows_come_in_small_parts() {
    let names: Vec<String> = (0..1000).map(|n| format!("v{n}")).collect();
    let empty = vec!["{}"; 10_000].join(",");
    let vars = names.join("\",\"");
    for body in [
        format!("{{\"head\":{{\"vars\":[\"{vars}\"]}},\"results\":{{\"bindings\":[{empty}]}}}}"),
        format!("{{\"results\":{{\"bindings\":[{empty}]}},\"head\":{{\"vars\":[\"{vars}\"]}}}}"),
    ] {
        let endpoint = giving(JSON, body);
        let federation = endpoint.federation();
        let mut answer = federation.select(&endpoint.address, "SELECT".to_owned(), names.clone()).unwrap();
        let mut rows = 0;
        loop {
            match answer.next(Duration::from_millis(20)).unwrap() {
                AnswerPart::Rows(part) => {
                    assert!(part.len() * names.len() <= 17_000, "{} rows at once", part.len());
                    rows += part.len();
                }
                AnswerPart::Waiting => {}
                AnswerPart::End(_) => break,
            }
        }
        assert_eq!(rows, 10_000);
    }
}

#[test]
fn a_document_tells_where_it_was_in_the_end() {
    let moves = Endpoint::new(|request, stream| match request.line.contains("/new/") {
        true => send(stream, "200 OK", "text/turtle", "", "<a> <b> <c> ."),
        false => send(stream, "303 See Other", "text/plain", "Location: /sparql/new/data.ttl?x\r\n", ""),
    });
    let fetched = |address: &str| moves.federation().fetch(address, Box::new(|| true)).unwrap();
    let to = format!("{}/new/data.ttl?x", moves.address);
    assert_eq!(fetched(&moves.address).moved_to(), Some(to.as_str()));
    assert_eq!(fetched(&to).moved_to(), None);
}
