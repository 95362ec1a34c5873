//! Endpoints that do what they should, and endpoints that do not.

mod support;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use snowmelt_federation::{AnswerPart, Fault, Federation, FederationSettings, Lookup};
use support::{Endpoint, JSON, all, ask, rows, send, values};

/// The error of asking an endpoint.
fn fault(endpoint: &Endpoint) -> Fault {
    let done = all(&mut ask(&endpoint.federation(), &endpoint.address));
    done.map(|(rows, _)| values(&rows)).expect_err("it gives no whole answer")
}

#[test]
fn rows_come_in_order_and_a_connection_is_kept() {
    let endpoint = Endpoint::new(|request, stream| {
        assert!(request.head.to_ascii_lowercase().contains("accept: application/sparql-results+json"));
        send(stream, "200 OK", JSON, "", &rows("x", &["1", "2", "3"]))
    });
    let federation = endpoint.federation();
    for _ in 0..3 {
        let (rows, used) = all(&mut ask(&federation, &endpoint.address)).unwrap();
        assert_eq!(values(&rows), ["1", "2", "3"]);
        assert_eq!((used.requests, used.rows), (1, 3));
        assert!(used.bytes > 100, "{used:?}");
        // its thread takes the connection back after the last row
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!((endpoint.requests(), endpoint.connections.load(Ordering::SeqCst)), (3, 1));
    let meters = federation.meters();
    assert_eq!((meters[0].requests, meters[0].rows, meters[0].failed), (3, 9, 0));
    assert!(endpoint.address.starts_with(&meters[0].endpoint));
    assert_eq!(federation.under_way(), 0);
}

#[test]
fn a_long_query_goes_into_the_body() {
    let endpoint = Endpoint::new(|request, stream| {
        let is_long = request.body.contains("query=SELECT") && request.line.starts_with("POST /sparql HTTP");
        let is_short = request.body.is_empty() && request.line.starts_with("GET /sparql?query=SELECT");
        assert!(is_long || is_short, "{request:?}");
        send(stream, "200 OK", JSON, "", &rows("x", &[if is_long { "long" } else { "short" }]))
    });
    let federation = endpoint.federation();
    let asked = |text: String| {
        let mut answer = federation.select(&endpoint.address, text, vec!["x".to_owned()]).unwrap();
        values(&all(&mut answer).unwrap().0)
    };
    assert_eq!(asked("SELECT ?x { }".to_owned()), ["short"]);
    assert_eq!(asked(format!("SELECT ?x {{ }} # {}", "y".repeat(5000))), ["long"]);
}

#[test]
fn results_in_xml_and_tsv_are_read() {
    let endpoint = Endpoint::new(|request, stream| match request.number {
        0 => send(
            stream,
            "200 OK",
            "application/sparql-results+xml; charset=utf-8",
            "",
            "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"x\"/></head>\
             <results><result><binding name=\"x\"><literal>1</literal></binding></result></results></sparql>",
        ),
        _ => send(stream, "200 OK", "text/tab-separated-values", "", "?x\n\"1\"\n"),
    });
    let federation = endpoint.federation();
    for _ in 0..2 {
        assert_eq!(values(&all(&mut ask(&federation, &endpoint.address)).unwrap().0), ["1"]);
    }
}

const XML: &str = "application/sparql-results+xml";

/// A row with triple terms within each other, in JSON or XML.
fn nested(levels: usize, media_type: &str) -> String {
    if media_type == JSON {
        let begin = r#"{"type":"triple","value":{"subject":{"type":"bnode","value":"b"},"predicate":{"type":"uri","value":"e:p"},"object":"#;
        let inner = r#"{"type":"literal","value":"x","xml:lang":"en","its:dir":"rtl"}"#;
        let term = format!("{}{inner}{}", begin.repeat(levels), "}}".repeat(levels));
        return format!(r#"{{"head":{{"vars":["x"]}},"results":{{"bindings":[{{"x":{term}}}]}}}}"#);
    }
    let begin = "<triple><subject><bnode>b</bnode></subject><predicate><uri>e:p</uri></predicate><object>";
    let inner = "<literal xml:lang=\"en\" its:dir=\"rtl\">x</literal>";
    let term = format!("{}{inner}{}", begin.repeat(levels), "</object></triple>".repeat(levels));
    format!(
        "<?xml version=\"1.0\"?><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\" \
         xmlns:its=\"http://www.w3.org/2005/11/its\" its:version=\"2.0\"><head><variable name=\"x\"/></head>\
         <results><result><binding name=\"x\">{term}</binding></result></results></sparql>"
    )
}

#[test]
fn triple_terms_are_read_up_to_the_most_levels() {
    for media_type in [JSON, XML] {
        for levels in [1, 64] {
            let endpoint = Endpoint::new(move |_, stream| {
                send(stream, "200 OK", media_type, "", &nested(levels, media_type))
            });
            let (rows, _) = all(&mut ask(&endpoint.federation(), &endpoint.address)).unwrap();
            let (mut found, mut term) = (0, rows[0][0].clone().expect("a value"));
            while let oxrdf::Term::Triple(triple) = term {
                assert_eq!(triple.subject.to_string(), "_:b");
                found += 1;
                term = triple.object;
            }
            assert_eq!((found, term.to_string()), (levels, "\"x\"@en--rtl".to_owned()), "{media_type}");
        }
        // as deep as a parser without a bound would not survive
        for levels in [65, 20_000] {
            let endpoint = Endpoint::new(move |_, stream| {
                send(stream, "200 OK", media_type, "", &nested(levels, media_type))
            });
            let told = fault(&endpoint).to_string();
            assert!(told.contains("its terms nest more than 64 levels"), "{media_type}: {told}");
        }
    }
}

#[test]
fn one_that_never_answers_keeps_no_other_waiting() {
    let silent = Endpoint::new(|_, _| {
        std::thread::sleep(Duration::from_secs(60));
        false
    });
    let good = Endpoint::new(|_, stream| send(stream, "200 OK", JSON, "", &rows("x", &["1"])));
    let allowed = [&silent, &good].map(|endpoint| endpoint.address.parse().unwrap()).to_vec();
    let federation = Federation::new(FederationSettings { allowed, at_once: 4, ..silent.allowed() });
    let begun = Instant::now();
    let mut waiting: Vec<_> = (0..8).map(|_| ask(&federation, &silent.address)).collect();
    assert_eq!(values(&all(&mut ask(&federation, &good.address)).unwrap().0), ["1"]);
    assert!(begun.elapsed() < Duration::from_millis(500), "it waited for others: {:?}", begun.elapsed());
    let error = all(&mut waiting[0]).unwrap_err();
    assert!(matches!(error, Fault::Late(_) | Fault::Busy { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn one_that_drips_is_late() {
    let endpoint = Endpoint::new(|_, stream| {
        let body = rows("x", &["1"; 1000]);
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        body.bytes().all(|byte| {
            std::thread::sleep(Duration::from_millis(30));
            stream.write_all(&[byte]).is_ok()
        })
    });
    let begun = Instant::now();
    assert!(matches!(fault(&endpoint), Fault::Late(_)));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// Rows without an end, in chunks; counts the bytes that were taken.
fn endless(sent: Arc<AtomicU64>) -> Endpoint {
    Endpoint::new(move |_, stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        let row = "{\"x\":{\"type\":\"literal\",\"value\":\"0123456789\"}},".repeat(200);
        let mut write = |text: &str| {
            let done = write!(stream, "{:x}\r\n{text}\r\n", text.len()).is_ok();
            sent.fetch_add(text.len() as u64, Ordering::SeqCst);
            done
        };
        write("{\"head\":{\"vars\":[\"x\"]},\"results\":{\"bindings\":[");
        while write(&row) {}
        false
    })
}

#[test]
fn an_answer_without_an_end_is_cut_off_at_the_limit() {
    let sent = Arc::new(AtomicU64::new(0));
    let endpoint = endless(Arc::clone(&sent));
    let federation = Federation::new(FederationSettings { answer_bytes: 3 << 20, ..endpoint.allowed() });
    let mut answer = ask(&federation, &endpoint.address);
    let error = all(&mut answer).map(|(rows, _)| rows.len()).unwrap_err();
    assert_eq!(error.to_string(), format!("its answer is longer than {} bytes", 3 << 20));
    assert!(sent.load(Ordering::SeqCst) < 16 << 20, "only what fits into buffers was taken beyond it");
}

#[test]
fn a_reader_that_waits_takes_little_memory_and_no_place() {
    let sent = Arc::new(AtomicU64::new(0));
    let endpoint = endless(Arc::clone(&sent));
    // one place for each endpoint
    let federation = Federation::new(FederationSettings { at_once: 2, ..endpoint.allowed() });
    let _unread: Vec<_> = (0..3)
        .map(|_| {
            let mut answer = ask(&federation, &endpoint.address);
            let until = Instant::now() + Duration::from_secs(5);
            loop {
                match answer.next(Duration::from_millis(20)).expect("each of them gets a place") {
                    AnswerPart::Rows(_) => break answer,
                    _ => assert!(Instant::now() < until),
                }
            }
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let before = sent.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sent.load(Ordering::SeqCst), before, "nothing is taken that is not read");
    assert!(before < 64 << 20, "{before} bytes wait for readers");
}

#[test]
fn a_reader_that_goes_ends_the_request() {
    let (ended, sent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let (endless, count) = (endless(sent), Arc::clone(&ended));
    let silent = Endpoint::new(move |_, stream| {
        // the other side closes
        let _ = stream.read(&mut [0; 1]);
        count.fetch_add(1, Ordering::SeqCst);
        false
    });
    let patience = Duration::from_secs(60);
    for endpoint in [&endless, &silent] {
        let federation = Federation::new(FederationSettings { patience, ..endpoint.allowed() });
        let mut answer = ask(&federation, &endpoint.address);
        drop(answer.next(Duration::from_millis(200)));
        // the endless one may have filled what waits, and has then given its place up
        assert!(federation.under_way() == 1 || endpoint.address == endless.address);
        drop(answer);
        let begun = Instant::now();
        while federation.under_way() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(5), "{} goes on", endpoint.address);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let begun = Instant::now();
    while ended.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(5), "its connection is open");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_no_result_is_told_apart() {
    let html =
        Endpoint::new(|_, stream| send(stream, "200 OK", "text/html; charset=utf-8", "", "<html>hello"));
    assert_eq!(fault(&html).to_string(), "it answered with text/html, and not with results of a query");
    let untyped = Endpoint::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_ok()
    });
    assert!(matches!(fault(&untyped), Fault::MediaType(_)));
    let mistyped = Endpoint::new(|_, stream| send(stream, "200 OK", JSON, "", "<html>hello"));
    assert!(matches!(fault(&mistyped), Fault::Malformed(_)));
    let boolean =
        Endpoint::new(|_, stream| send(stream, "200 OK", JSON, "", "{\"head\":{},\"boolean\":true}"));
    assert!(fault(&boolean).to_string().contains("a yes or no"));
    let cut = Endpoint::new(|_, stream| {
        let body = rows("x", &["1", "2"]);
        send(stream, "200 OK", JSON, "", &body[..body.len() - 20])
    });
    assert!(matches!(fault(&cut), Fault::Malformed(_)), "{}", fault(&cut));
    let error = Endpoint::new(|_, stream| {
        send(stream, "400 Bad Request", "text/plain", "", "Line 1: I do not \u{1b}[31mlike it\nmore")
    });
    assert_eq!(fault(&error).to_string(), "it answered 400: Line 1: I do not \\u{1b}[31mlike it");
}

#[test]
fn columns_that_were_not_asked_for_are_left_out() {
    let endpoint = Endpoint::new(|_, stream| {
        let body =
            rows("x", &["1", "2"]).replace("\"x\":{", "\"z\":{\"type\":\"bnode\",\"value\":\"b\"},\"x\":{");
        send(stream, "200 OK", JSON, "", &body.replacen("[\"x\"]", "[\"z\",\"x\"]", 1))
    });
    let (rows, _) = all(&mut ask(&endpoint.federation(), &endpoint.address)).unwrap();
    assert_eq!(values(&rows), ["1", "2"]);
}

#[test]
fn variables_that_are_missing_are_an_error() {
    let other = Endpoint::new(|_, stream| send(stream, "200 OK", JSON, "", &rows("y", &["1"])));
    assert_eq!(fault(&other).to_string(), "it was asked for ?x and answered with ?y");
    let none = Endpoint::new(|_, stream| {
        send(stream, "200 OK", JSON, "", "{\"head\":{\"vars\":[]},\"results\":{\"bindings\":[]}}")
    });
    assert_eq!(fault(&none).to_string(), "it was asked for ?x and answered with no variables");
}

#[test]
fn an_answer_that_breaks_off_is_told_after_its_rows() {
    let by_length = Endpoint::new(|_, stream| {
        let body = rows("x", &["1", "2"]);
        let _ =
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: 100000\r\n\r\n{body}");
        false
    });
    let in_chunks = Endpoint::new(|_, stream| {
        let _ =
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n");
        let _ = write!(stream, "10\r\n{{\"head\":{{\"vars\":");
        false
    });
    for endpoint in [by_length, in_chunks] {
        let error = fault(&endpoint);
        assert!(matches!(error, Fault::BrokenOff(_)), "{error}");
        assert_eq!(endpoint.requests(), 1, "what has begun is not asked for again");
    }
}

#[test]
fn a_busy_endpoint_is_asked_again() {
    let busy = Endpoint::new(|request, stream| match request.number {
        0 => send(stream, "429 Too Many Requests", "text/plain", "Retry-After: 0\r\n", "later"),
        1 => send(stream, "503 Service Unavailable", "text/plain", "", "later"),
        _ => send(stream, "200 OK", JSON, "", &rows("x", &["1"])),
    });
    let federation =
        Federation::new(FederationSettings { patience: Duration::from_secs(10), ..busy.allowed() });
    let (rows, used) = all(&mut ask(&federation, &busy.address)).unwrap();
    assert_eq!((values(&rows), used.requests), (vec!["1".to_owned()], 3));
    assert_eq!(federation.meters()[0].retries, 2);
    let never = Endpoint::new(|_, stream| send(stream, "503 Service Unavailable", "text/plain", "", "no"));
    assert_eq!(fault(&never).to_string(), "it answered 503: no");
    let late = Endpoint::new(|_, stream| {
        send(stream, "429 Too Many Requests", "text/plain", "Retry-After: 3600\r\n", "tomorrow")
    });
    let begun = Instant::now();
    assert_eq!(fault(&late).to_string(), "it answered 429: tomorrow");
    assert!(begun.elapsed() < Duration::from_secs(5), "it waits no longer than for an answer");
}

#[test]
fn one_that_closes_is_asked_again_and_one_that_is_away_is_told() {
    // patience that does not end when the machine is busy
    let patient =
        |settings| Federation::new(FederationSettings { patience: Duration::from_secs(30), ..settings });
    let closes = Endpoint::new(|request, stream| {
        request.number > 0 && send(stream, "200 OK", JSON, "", &rows("x", &["1"]))
    });
    let federation = patient(closes.allowed());
    assert_eq!(values(&all(&mut ask(&federation, &closes.address)).unwrap().0), ["1"]);
    let away = Endpoint::new(|_, _| false);
    let federation = patient(away.allowed());
    let error = all(&mut ask(&federation, &away.address)).unwrap_err();
    assert!(matches!(error, Fault::Unreachable(_)), "{error}");
    assert_eq!((federation.meters()[0].retries, away.requests()), (3, 4));
    // the port of a connection has no listener, and is given to no other test
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let address = format!("http://127.0.0.1:{}/", taken.local_addr().unwrap().port());
    let allowed = vec![address.parse().unwrap()];
    let federation = patient(FederationSettings { allowed, ..FederationSettings::default() });
    let error = all(&mut ask(&federation, &address)).unwrap_err();
    assert!(error.to_string().starts_with("it cannot be reached: "), "{error}");
    assert_eq!(federation.meters()[0].retries, 3);
}

/// Sends its clients elsewhere.
fn pointing(to: &str) -> Endpoint {
    let to = format!("Location: {to}\r\n");
    Endpoint::new(move |_, stream| send(stream, "302 Found", "text/plain", &to, ""))
}

#[test]
fn a_redirect_goes_only_where_it_may() {
    let other = Endpoint::new(|_, stream| send(stream, "200 OK", JSON, "", &rows("x", &["secret"])));
    for to in [
        &other.address,
        "http://127.0.0.1:1/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "//localhost/",
    ] {
        let error = fault(&pointing(to));
        assert!(matches!(error, Fault::Redirected { .. }) && error.is_refusal(), "{to}: {error}");
        assert!(error.to_string().starts_with("it sends its clients to "), "{error}");
    }
    for to in ["file:///etc/passwd", "ftp://e/", "http://u:p@e/"] {
        assert!(fault(&pointing(to)).to_string().contains("no address of HTTP"), "{to}");
    }
    assert_eq!(other.requests(), 0, "it was never asked");
    let round = pointing("/sparql");
    assert!(matches!(fault(&round), Fault::Redirects(4)));
    let nowhere = Endpoint::new(|_, stream| send(stream, "301 Moved", "text/plain", "", ""));
    assert!(matches!(fault(&nowhere), Fault::Nowhere));
    let moved = Endpoint::new(|request, stream| match request.line.contains("/sparql/new") {
        true => send(stream, "200 OK", JSON, "", &rows("x", &["1"])),
        false => send(stream, "308 Moved", "text/plain", "Location: /sparql/new\r\n", ""),
    });
    assert_eq!(values(&all(&mut ask(&moved.federation(), &moved.address)).unwrap().0), ["1"]);
}

/// Another address each time.
#[derive(Debug)]
struct Rebinding {
    addresses: Vec<IpAddr>,
    asked: AtomicUsize,
}

impl Lookup for Rebinding {
    fn addresses(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        let n = self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(vec![self.addresses[n.min(self.addresses.len() - 1)]])
    }
}

#[test]
fn a_name_that_becomes_a_private_address_is_not_asked() {
    let endpoint =
        Endpoint::new(|_, stream| send(stream, "200 OK", JSON, "Connection: close\r\n", &rows("x", &["1"])));
    let port = endpoint.address.rsplit(':').next().unwrap().to_owned();
    let named = format!("http://data.example.org:{port}");
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    let settings = |addresses: &[&str]| FederationSettings {
        allowed: vec![named.parse().unwrap()],
        addresses: addresses.iter().map(|range| range.parse().unwrap()).collect(),
        ..endpoint.allowed()
    };
    let lookup = |addresses: &[IpAddr]| {
        Arc::new(Rebinding { addresses: addresses.to_vec(), asked: AtomicUsize::new(0) })
    };
    let federation = Federation::with_lookup(settings(&[]), lookup(&[loopback]));
    let error = all(&mut ask(&federation, &named)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "data.example.org is 127.0.0.1, which is no public address and was not named"
    );
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 0, "it was never connected to");
    // the name is looked up once for a request, and the connection goes to what was checked
    let metadata = "169.254.169.254".parse().unwrap();
    let rebinding = lookup(&[loopback, metadata]);
    let federation = Federation::with_lookup(settings(&["127.0.0.1"]), rebinding.clone());
    assert_eq!(values(&all(&mut ask(&federation, &named)).unwrap().0), ["1"]);
    assert_eq!(rebinding.asked.load(Ordering::SeqCst), 1);
    let error = all(&mut ask(&federation, &named)).unwrap_err();
    assert!(error.to_string().contains("169.254.169.254"), "{error}");
    assert_eq!(endpoint.requests(), 1);
}

#[test]
fn a_narrowed_federation_asks_less() {
    let endpoint = Endpoint::new(|_, stream| send(stream, "200 OK", JSON, "", &rows("x", &["1"])));
    let federation = endpoint.federation();
    let select = |federation: &Federation, address: &str| {
        federation.select(address, "SELECT ?x { }".to_owned(), vec!["x".to_owned()]).map(drop)
    };
    assert!(select(&federation, &format!("{}/a", endpoint.address)).is_ok());
    let narrowed = federation.narrowed(vec![format!("{}/b", endpoint.address).parse().unwrap()]);
    assert!(matches!(select(&narrowed, &format!("{}/a", endpoint.address)), Err(Fault::NotAllowed)));
    assert!(select(&narrowed, &format!("{}/b/c", endpoint.address)).is_ok());
    let none = Federation::new(FederationSettings::default());
    assert!(matches!(select(&none, &endpoint.address), Err(Fault::NoneAllowed)));
    assert!(matches!(select(&federation, "file:///etc/passwd"), Err(Fault::NotAnAddress(_))));
}

#[test]
fn endpoints_are_told_how_deep_a_request_lies() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let endpoint = Endpoint::new(move |request, stream| {
        let lower = request.head.to_lowercase();
        let depth = lower.split("snowmelt-service-depth: ").nth(1).map(|rest| rest[..1].to_owned());
        heard.lock().unwrap().push(depth);
        send(stream, "200 OK", JSON, "", &rows("x", &["1"]))
    });
    let federation = endpoint.federation();
    for (depth, query) in
        [(0, "SELECT ?x {}".to_owned()), (3, format!("SELECT ?x {{}} #{}", "x".repeat(3000)))]
    {
        let asked = federation.at_depth(depth).select(&endpoint.address, query, vec!["x".to_owned()]);
        assert_eq!(all(&mut asked.unwrap()).unwrap().0.len(), 1);
    }
    drop(federation.fetch(&endpoint.address, Box::new(|| true)).unwrap());
    let of = |depth: &str| Some(depth.to_owned());
    assert_eq!(*told.lock().unwrap(), [of("1"), of("4"), of("1")]);
}

#[test]
fn a_document_is_read_as_it_comes() {
    let text = "<urn:s> <urn:p> \"o\" .\n".repeat(10_000);
    let body = text.clone();
    let endpoint = Endpoint::new(move |request, stream| {
        assert!(request.line.starts_with("GET /sparql/data.nt HTTP"), "{request:?}");
        send(stream, "200 OK", "application/n-triples; charset=utf-8", "", &body)
    });
    let mut document =
        endpoint.federation().fetch(&format!("{}/data.nt", endpoint.address), Box::new(|| true)).unwrap();
    assert_eq!(document.media_type(), Some("application/n-triples"));
    let mut read = String::new();
    document.read_to_string(&mut read).unwrap();
    assert_eq!(read, text);
    let gone = Endpoint::new(|_, stream| send(stream, "404 Not Found", "text/html", "", "<html>"));
    let error = gone.federation().fetch(&gone.address, Box::new(|| true)).unwrap_err();
    assert_eq!(error.to_string(), "it answered 404");
    let silent = Endpoint::new(|_, _: &mut TcpStream| {
        std::thread::sleep(Duration::from_secs(60));
        false
    });
    let begun = Instant::now();
    let go_on = move || begun.elapsed() < Duration::from_millis(100);
    let error = silent.federation().fetch(&silent.address, Box::new(go_on)).unwrap_err();
    assert!(matches!(error, Fault::Cancelled) && begun.elapsed() < Duration::from_millis(500), "{error}");
}
