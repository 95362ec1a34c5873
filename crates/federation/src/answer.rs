//! Rows and documents, each from a thread of its own.
//!
//! The thread sends the request, parses its answer and hands parts of it on, through a channel
//! that holds few of them. So an answer of any length takes little memory, and its reader can wait
//! for it with an eye on other things.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use oxrdf::Variable;
use snowmelt_base::printable;
use sparesults::QueryResultsFormat;
use ureq::Body;
use ureq::http::{Response, Version, header};

use crate::columns::SolutionRow;
use crate::exchange::{Answered, Exchanges, Question, Watch};
use crate::fault::Fault;
use crate::place::{Allowed, Place};
use crate::reading::{BoundedReader, Outlet};
use crate::rows::RowReader;

/// Parts that wait for the reader; each is what came of one read.
const PARTS: usize = 4;
/// Bytes of a part of a document.
const PART_BYTES: usize = 64 << 10;
/// How often the reader of a document looks whether it is to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Work that an answer took.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerUse {
    /// Requests that were sent.
    pub requests: u64,
    /// Rows that came.
    pub rows: u64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// From the question to the end.
    pub time: Duration,
}

/// A part of an answer.
#[derive(Debug)]
pub enum AnswerPart {
    /// Some rows.
    Rows(Vec<SolutionRow>),
    /// Nothing has come yet.
    Waiting,
    /// All rows have come.
    End(AnswerUse),
}

/// All of a document that is known before its bytes.
#[derive(Debug)]
struct DocumentHead {
    media_type: Option<String>,
    /// where it was, if not where it was asked for
    moved_to: Option<String>,
}

/// A message of a thread.
enum Message<T> {
    Parts(Vec<T>),
    Head(DocumentHead),
    End(AnswerUse),
    Failed(Fault),
}

impl<T> std::fmt::Debug for Message<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Parts(parts) => write!(f, "{} parts", parts.len()),
            Self::Head(head) => head.fmt(f),
            Self::End(used) => used.fmt(f),
            Self::Failed(fault) => fault.fmt(f),
        }
    }
}

/// A question on its way.
pub(crate) struct Errand {
    pub exchanges: Arc<Exchanges>,
    pub place: Place,
    pub question: Question,
    /// of the rows
    pub variables: Vec<String>,
    pub allowed: Allowed,
    pub most_bytes: u64,
    pub most_bytes_of_row: u64,
}

impl Errand {
    fn ask(&self, watch: &Watch) -> Result<Answered, Fault> {
        self.exchanges.ask(&self.place, &self.question, &self.allowed, watch)
    }

    fn reader<'a, T, M>(
        &self,
        body: Body,
        outlet: &Rc<RefCell<Outlet<'a, T, M>>>,
    ) -> BoundedReader<'a, T, M> {
        BoundedReader {
            body: body.into_reader(),
            outlet: Rc::clone(outlet),
            most_bytes: self.most_bytes,
            most_bytes_of_row: self.most_bytes_of_row,
            patience: self.exchanges.patience,
        }
    }
}

type Work<T> = fn(&Errand, &Watch, SyncSender<Message<T>>) -> Result<AnswerUse, Fault>;

#[derive(Debug)]
struct Incoming<T> {
    receiver: Receiver<Message<T>>,
    watch: Arc<Watch>,
    is_over: bool,
}

impl<T> Drop for Incoming<T> {
    fn drop(&mut self) {
        if !self.is_over {
            self.watch.cancel();
        }
    }
}

impl<T: Send + 'static> Incoming<T> {
    /// Does an errand in a thread of its own.
    fn begin(errand: Errand, work: Work<T>) -> Result<Self, Fault> {
        let (sender, receiver) = sync_channel(PARTS);
        let watch = Arc::new(Watch::default());
        let own = Arc::clone(&watch);
        let body = move || {
            let begun = Instant::now();
            let done = work(&errand, &own, sender.clone());
            own.free();
            let took = begun.elapsed();
            count(&errand, &done, took);
            let message = match done {
                Ok(used) => Message::End(AnswerUse { time: took, ..used }),
                Err(fault) => Message::Failed(fault.cut()),
            };
            drop(sender.send(message));
        };
        let started = std::thread::Builder::new().name("service".to_owned()).spawn(body);
        started.map_err(|error| Fault::Unreachable(error.to_string()))?;
        Ok(Self { receiver, watch, is_over: false })
    }

    /// The next message, if one comes in time.
    fn next(&mut self, wait: Duration) -> Result<Option<Message<T>>, Fault> {
        let message = match self.receiver.recv_timeout(wait) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Message::Failed(Fault::BrokenOff("its thread ended early".to_owned()))
            }
        };
        self.is_over = matches!(message, Message::End(_) | Message::Failed(_));
        match message {
            Message::Failed(fault) => Err(fault),
            message => Ok(Some(message)),
        }
    }
}

fn count(errand: &Errand, done: &Result<AnswerUse, Fault>, took: Duration) {
    errand.exchanges.meters.of(&errand.place.origin(), |meter| {
        meter.time += took;
        match done {
            Ok(used) => {
                meter.rows += used.rows;
                meter.bytes += used.bytes;
            }
            Err(Fault::Cancelled) => {}
            Err(_) => meter.failed += 1,
        }
    });
}

/// The rows of an answer. When it is dropped before its end, its request is broken off.
#[derive(Debug)]
pub struct Answer(Incoming<SolutionRow>);

impl Answer {
    pub(crate) fn begin(errand: Errand) -> Result<Self, Fault> {
        Incoming::begin(errand, rows).map(Self)
    }

    /// The next part; waits for it no longer than `wait`. After the end, or an error, there is
    /// nothing more to ask for.
    ///
    /// # Errors
    /// The endpoint gives no, or no whole, answer.
    pub fn next(&mut self, wait: Duration) -> Result<AnswerPart, Fault> {
        Ok(match self.0.next(wait)? {
            Some(Message::Parts(rows)) => AnswerPart::Rows(rows),
            Some(Message::End(used)) => AnswerPart::End(used),
            _ => AnswerPart::Waiting,
        })
    }
}

/// Asks for rows, and hands them on.
fn rows(
    errand: &Errand,
    watch: &Watch,
    sender: SyncSender<Message<SolutionRow>>,
) -> Result<AnswerUse, Fault> {
    let Answered { response, requests, agent, place } = errand.ask(watch)?;
    let format = format_of(&response)?;
    if format == QueryResultsFormat::Tsv && !has_end(&response) {
        return Err(Fault::NoEnd);
    }
    let outlet = Outlet::new(sender, Message::Parts, watch);
    let reader = errand.reader(response.into_body(), &outlet);
    let longest = usize::try_from(errand.most_bytes_of_row).unwrap_or(usize::MAX);
    let tell = |fault| outlet.borrow_mut().fault = Some(fault);
    let parsed = RowReader::new(reader, format, longest, tell)
        .and_then(|rows| parse(rows, &errand.variables, &outlet));
    let mut outlet = outlet.borrow_mut();
    if let Err(fault) = parsed {
        return Err(outlet.fault.take().unwrap_or(fault));
    }
    // all has come: others may ask while the last rows wait for their reader
    watch.free();
    errand.exchanges.release(watch, place.origin(), agent);
    outlet.flush()?;
    Ok(AnswerUse { requests, rows: outlet.parts, bytes: outlet.bytes, time: Duration::ZERO })
}

fn parse<M>(
    mut rows: RowReader<impl Read, impl FnMut(Fault)>,
    wanted: &[String],
    outlet: &RefCell<Outlet<'_, SolutionRow, M>>,
) -> Result<(), Fault> {
    let places = places(wanted, rows.variables())?;
    outlet.borrow_mut().begin();
    while let Some(row) = rows.next(&places)? {
        outlet.borrow_mut().take(row, places.len())?;
    }
    Ok(())
}

/// The columns of the variables that were asked for. There may be others, which nothing reads:
/// some endpoints answer with all that a stored query has.
fn places(wanted: &[String], answered: &[Variable]) -> Result<Vec<usize>, Fault> {
    let names = answered.iter().enumerate().map(|(place, variable)| (variable.as_str(), place));
    let mut by_name: HashMap<&str, usize> = names.collect();
    let places: Option<Vec<usize>> = wanted.iter().map(|name| by_name.remove(name.as_str())).collect();
    let listed = |names: &mut dyn Iterator<Item = &str>| {
        let names: Vec<String> = names.take(20).map(|name| format!("?{name}")).collect();
        if names.is_empty() { "no variables".to_owned() } else { names.join(" ") }
    };
    places.ok_or_else(|| Fault::Variables {
        asked: listed(&mut wanted.iter().map(String::as_str)),
        answered: listed(&mut answered.iter().map(Variable::as_str)),
    })
}

fn media_type(response: &Response<Body>) -> Option<String> {
    let value = response.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Whether HTTP tells the end of a body apart from the end of the connection (RFC 9112, 6.3).
fn has_end(response: &Response<Body>) -> bool {
    let is_chunked = || {
        let coded = response.headers().get_all(header::TRANSFER_ENCODING);
        let coded = coded.iter().filter_map(|value| value.to_str().ok());
        coded.flat_map(|list| list.split(',')).any(|one| one.trim().eq_ignore_ascii_case("chunked"))
    };
    // in HTTP/1.0 there are no chunks, and its client takes none for such
    response.body().content_length().is_some() || (response.version() != Version::HTTP_10 && is_chunked())
}

/// The format of an answer.
fn format_of(response: &Response<Body>) -> Result<QueryResultsFormat, Fault> {
    let media_type = media_type(response);
    match media_type.as_deref() {
        Some("application/sparql-results+json" | "application/json") => Ok(QueryResultsFormat::Json),
        Some("application/sparql-results+xml" | "application/xml" | "text/xml") => {
            Ok(QueryResultsFormat::Xml)
        }
        Some("text/tab-separated-values") => Ok(QueryResultsFormat::Tsv),
        Some(other) if !other.is_empty() => {
            Err(Fault::MediaType(printable::line(other).chars().take(100).collect()))
        }
        _ => Err(Fault::MediaType("something of an unnamed type".to_owned())),
    }
}

/// A document, read as it comes.
pub struct Document {
    incoming: Incoming<u8>,
    head: DocumentHead,
    go_on: Box<dyn Fn() -> bool + Send>,
    part: Vec<u8>,
    /// bytes of the part that were read
    at: usize,
    fault: Option<Fault>,
}

impl Document {
    /// Asks for a document, and waits for the head of the answer while `go_on` says so.
    pub(crate) fn begin(errand: Errand, go_on: Box<dyn Fn() -> bool + Send>) -> Result<Self, Fault> {
        let mut incoming = Incoming::begin(errand, bytes)?;
        while go_on() {
            match incoming.next(LOOK)? {
                None => {}
                Some(Message::Head(head)) => {
                    let (part, at, fault) = (Vec::new(), 0, None);
                    return Ok(Self { incoming, head, go_on, part, at, fault });
                }
                Some(other) => return Err(Fault::BrokenOff(format!("it begins with {other:?}"))),
            }
        }
        Err(Fault::Cancelled)
    }

    /// Its type, without parameters.
    pub fn media_type(&self) -> Option<&str> {
        self.head.media_type.as_deref()
    }

    /// The address that redirects have led to; none where there were none. IRIs of the document are
    /// relative to it (RFC 3986, 5.1.3).
    pub fn moved_to(&self) -> Option<&str> {
        self.head.moved_to.as_deref()
    }

    fn fill(&mut self) -> Result<bool, Fault> {
        while self.at == self.part.len() {
            if self.incoming.is_over {
                return Ok(false);
            }
            match self.incoming.next(LOOK)? {
                Some(Message::Parts(part)) => (self.part, self.at) = (part, 0),
                Some(_) => {}
                None if (self.go_on)() => {}
                None => return Err(Fault::Cancelled),
            }
        }
        Ok(true)
    }
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("head", &self.head).finish_non_exhaustive()
    }
}

impl Read for Document {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(fault) = &self.fault {
            return Err(io::Error::other(fault.to_string()));
        }
        match self.fill() {
            Ok(_) => {}
            Err(fault) => {
                let said = fault.to_string();
                self.fault = Some(fault);
                return Err(io::Error::other(said));
            }
        }
        let rest = &self.part[self.at..];
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// Asks for a document, and hands its bytes on.
fn bytes(errand: &Errand, watch: &Watch, sender: SyncSender<Message<u8>>) -> Result<AnswerUse, Fault> {
    /// Bytes in which a document has gone on.
    const STEP: u64 = 16 << 10;
    let Answered { response, requests, agent, place } = errand.ask(watch)?;
    let media_type = media_type(&response);
    // the root of such a document tells its end
    let has_root = media_type.as_deref().is_some_and(|of| of.ends_with("xml") || of.ends_with("json"));
    if !has_root && !has_end(&response) {
        return Err(Fault::NoEnd);
    }
    let moved_to = (place != errand.place).then(|| place.to_string());
    sender.send(Message::Head(DocumentHead { media_type, moved_to })).map_err(|_| Fault::Cancelled)?;
    let outlet = Outlet::new(sender, Message::Parts, watch);
    // a document has neither head nor rows
    outlet.borrow_mut().begin();
    let mut reader = errand.reader(response.into_body(), &outlet);
    let mut part = vec![0; PART_BYTES];
    loop {
        let read = reader.read(&mut part);
        let mut outlet = outlet.borrow_mut();
        match read {
            Ok(0) => break,
            Ok(len) => outlet.waiting.extend_from_slice(&part[..len]),
            Err(error) => {
                let said = || Fault::BrokenOff(error.to_string());
                return Err(outlet.fault.take().unwrap_or_else(said));
            }
        }
        if outlet.since >= STEP {
            (outlet.since, outlet.waited) = (0, Duration::ZERO);
        }
    }
    drop(reader);
    let outlet = outlet.borrow();
    errand.exchanges.release(watch, place.origin(), agent);
    Ok(AnswerUse { requests, rows: 0, bytes: outlet.bytes, time: Duration::ZERO })
}
