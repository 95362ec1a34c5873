//! A hostile request and what may come of it.
//!
//! Data, beside that of the benchmark: a ring of `nodes` nodes, `<urn:n0> <urn:next> <urn:n1>`
//! …, each with a `<urn:color>` ("0" to "6", by number) and a `<urn:text>` of some hundred
//! bytes of its own.

use std::io::{self, Write};

use crate::client::{Reply, percent_encode};
use crate::target::Target;

/// How large the data and the requests are.
#[derive(Clone, Copy)]
pub struct Scale {
    pub nodes: u64,
    /// levels and links of nested and chained requests
    pub deep: usize,
    /// triples of a large upload
    pub triples: u64,
    /// milliseconds a request asks for that cannot be answered in any time
    pub hog_ms: u64,
}

type Bytes = Box<dyn Fn(&str) -> Vec<u8> + Send + Sync>;
type Text = Box<dyn Fn(&Scale) -> String + Send + Sync>;
type Body = Box<dyn Fn(&Scale, &mut dyn Write) -> io::Result<()> + Send + Sync>;

/// The attack.
pub enum Attack {
    Query(Text),
    Update(Text),
    /// a graph: media type and body
    Put(&'static str, Body),
    /// bytes as they are; the argument is the server's authority
    Raw(Bytes),
    /// many connections and what they see
    Scenario(fn(&Target, &Scale) -> Result<(), String>),
}

/// The right outcome.
pub enum Right {
    /// so many rows of CSV
    Rows(Box<dyn Fn(&Scale) -> u64 + Send + Sync>),
    /// the value in the only row of CSV
    Value(Box<dyn Fn(&Scale) -> String + Send + Sync>),
    /// one of these statuses
    Status(&'static [u16]),
    /// 200 and a body that passes
    Body(fn(&str) -> Result<(), String>),
    /// there is none: it would take more than there is
    Never,
}

/// A request with a name.
pub struct Case {
    pub name: &'static str,
    pub attack: Attack,
    pub right: Right,
    /// an error that names a limit will do
    pub limit: bool,
    /// a connection closed before the head will do
    pub closed: bool,
    /// asks for little time
    pub hog: bool,
    /// asks by HEAD: what comes back has no body, whatever length it names
    pub head_only: bool,
}

impl Case {
    pub fn new(name: &'static str, attack: Attack, right: Right) -> Case {
        Case { name, attack, right, limit: true, closed: false, hog: false, head_only: false }
    }

    /// It must be answered: what bounds it is in the query.
    pub fn must(self) -> Case {
        Case { limit: false, ..self }
    }

    /// The server may just close.
    pub fn or_closed(self) -> Case {
        Case { closed: true, ..self }
    }

    pub fn hog(self) -> Case {
        Case { hog: true, ..self }
    }

    pub fn head_only(self) -> Case {
        Case { head_only: true, ..self }
    }

    /// Writes the request.
    pub fn send(&self, scale: &Scale, host: &str, out: &mut dyn Write) -> io::Result<()> {
        let patience = if self.hog { format!("timeout={}", scale.hog_ms) } else { String::new() };
        let post = |out: &mut dyn Write, path: &str, kind: &str, text: &str| {
            write!(
                out,
                "POST {path}?{patience} HTTP/1.1\r\nHost: {host}\r\nAccept: text/csv, application/n-triples\r\nContent-Type: {kind}\r\n\
                 Content-Length: {}\r\n\r\n{text}",
                text.len()
            )
        };
        match &self.attack {
            Attack::Query(text) => post(out, "/query", "application/sparql-query", &text(scale)),
            Attack::Update(text) => post(out, "/update", "application/sparql-update", &text(scale)),
            Attack::Put(kind, body) => {
                let graph = percent_encode(&format!("urn:put:{}", self.name.replace(' ', "-")));
                write!(
                    out,
                    "PUT /graphs?graph={graph} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
                )?;
                crate::client::chunked(out, &|out| body(scale, out))
            }
            Attack::Raw(bytes) => out.write_all(&bytes(host)),
            Attack::Scenario(_) => unreachable!("a scenario sends on its own"),
        }
    }

    /// Whether a reply is allowed; if not, why.
    pub fn judge(&self, scale: &Scale, reply: &Reply, in_storm: bool) -> Result<(), String> {
        let told = || reply.tell();
        match reply {
            Reply::Silent => Err("no answer in time".into()),
            Reply::Closed(_) if self.closed => Ok(()),
            Reply::Closed(_) => Err(told()),
            // A stream that began cannot end in a text; that it is cut must be seen, and is.
            Reply::Cut(answer) if answer.status == 200 && self.limit && self.hog => Ok(()),
            Reply::Cut(_) => Err(told()),
            Reply::Answer(answer) => {
                let wrong = match self.is_right(scale, answer) {
                    Ok(()) => return Ok(()),
                    Err(wrong) => wrong,
                };
                let refused = answer.status >= 400 && (self.head_only || names_a_limit(&answer.body));
                // Among many, waiting for memory or a place may take all the time there is.
                if refused && (self.limit || in_storm && answer.status == 503) {
                    return Ok(());
                }
                Err(format!("{wrong}: {}", told()))
            }
        }
    }

    fn is_right(&self, scale: &Scale, answer: &crate::client::Answer) -> Result<(), String> {
        let expect = |holds: bool, expected: String| if holds { Ok(()) } else { Err(expected) };
        let ok = answer.status == 200;
        match &self.right {
            Right::Rows(rows) => {
                let n = rows(scale);
                let head = u64::from(!answer.head.contains("n-triples"));
                expect(ok && answer.lines == n + head, format!("expected {n} rows, got {}", answer.lines))
            }
            Right::Value(value) => {
                let value = value(scale);
                expect(ok && answer.body.lines().nth(1) == Some(&value), format!("expected {value}"))
            }
            Right::Status(list) => expect(list.contains(&answer.status), format!("expected {list:?}")),
            Right::Body(check) => {
                expect(ok, "expected 200".into())?;
                check(&answer.body)
            }
            Right::Never => Err("expected a limit".into()),
        }
    }
}

/// Whether an error says which limit it is: by that word, or by its switch.
fn names_a_limit(text: &str) -> bool {
    text.to_lowercase().contains("limit") || text.contains("--")
}
