//! An endpoint that does what a test tells it.

#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use snowmelt_federation::{
    Answer, AnswerPart, AnswerUse, Fault, Federation, FederationSettings, SolutionRow,
};

/// A request as it came: the line, the head and the body.
#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub head: String,
    pub body: String,
    /// the n-th request of the endpoint, from 0
    pub number: usize,
}

/// Whether the connection goes on.
pub type GoesOn = bool;

/// An endpoint on loopback.
pub struct Endpoint {
    pub address: String,
    pub requests: Arc<AtomicUsize>,
    pub connections: Arc<AtomicUsize>,
}

impl Endpoint {
    pub fn new(answer: impl Fn(&Request, &mut TcpStream) -> GoesOn + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/sparql", listener.local_addr().expect("it has one"));
        let (requests, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (answer, counts) = (Arc::new(answer), (Arc::clone(&requests), Arc::clone(&connections)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counts.1.fetch_add(1, Ordering::SeqCst);
                let (answer, count) = (Arc::clone(&answer), Arc::clone(&counts.0));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
                    let mut stream = stream;
                    while let Some(mut request) = read(&mut reader) {
                        request.number = count.fetch_add(1, Ordering::SeqCst);
                        if !answer(&request, &mut stream) {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, requests, connections }
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// A federation that may ask it, with little patience.
    pub fn allowed(&self) -> FederationSettings {
        FederationSettings {
            allowed: vec![self.address.parse().expect("a prefix")],
            patience: Duration::from_millis(600),
            ..FederationSettings::default()
        }
    }

    pub fn federation(&self) -> Federation {
        Federation::new(self.allowed())
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut line, mut head) = (String::new(), String::new());
    reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok().filter(|len| *len > 0)?;
        if field == "\r\n" {
            break;
        }
        head.push_str(&field);
    }
    let length = head.lines().find_map(|field| {
        let (name, value) = field.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    Some(Request { line: line.trim_end().to_owned(), head, body, number: 0 })
}

pub const JSON: &str = "application/sparql-results+json";

/// A whole answer.
pub fn send(stream: &mut TcpStream, status: &str, media_type: &str, more: &str, body: &str) -> GoesOn {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{more}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
}

/// Rows of one variable.
pub fn rows(variable: &str, values: &[&str]) -> String {
    let row = |value: &&str| format!("{{\"{variable}\":{{\"type\":\"literal\",\"value\":\"{value}\"}}}}");
    let rows: Vec<String> = values.iter().map(row).collect();
    format!("{{\"head\":{{\"vars\":[\"{variable}\"]}},\"results\":{{\"bindings\":[{}]}}}}", rows.join(","))
}

/// Asks for `?x`.
pub fn ask(federation: &Federation, address: &str) -> Answer {
    let answer = federation.select(address, "SELECT ?x { }".to_owned(), vec!["x".to_owned()]);
    answer.expect("it may be asked")
}

/// Reads an answer to its end.
pub fn all(answer: &mut Answer) -> Result<(Vec<SolutionRow>, AnswerUse), Fault> {
    let mut all = Vec::new();
    loop {
        match answer.next(Duration::from_millis(20))? {
            AnswerPart::Rows(rows) => all.extend(rows),
            AnswerPart::Waiting => {}
            AnswerPart::End(used) => return Ok((all, used)),
        }
    }
}

/// The values of rows of one variable.
pub fn values(rows: &[SolutionRow]) -> Vec<String> {
    let value = |row: &SolutionRow| match &row[0] {
        Some(oxrdf::Term::Literal(literal)) => literal.value().to_owned(),
        other => format!("{other:?}"),
    };
    rows.iter().map(value).collect()
}
