//! The work of a request on a thread of its own: a query, all graphs, a plan.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::{HeaderMap, StatusCode};
use snowmelt_graph::{Account, DumpFormat, GraphError, GraphView, Interrupt, Priority};
use snowmelt_sparql::{Engine, QueryError, QueryKind, QueryOptions, ResultFormat};
use tokio::sync::oneshot;

use super::answers::{accept, internal, not_acceptable, typed};
use crate::body::{AnswerBody, AnswerWriter, Begun, Head, Turn};
use crate::coding::Coding;
use crate::freshness::{Kept, States, mark_volatile};
use crate::logs::{Logs, SlowRequest};
use crate::negotiate::{self, Answer};
use crate::refusal::{Refusal, refusal};
use crate::request::{Explain, ProtocolRequest};
use crate::slots::Slot;

/// The form of an answer that a client wants, and what it has already.
pub struct Wanted {
    /// media types that the parameter `format` means, which go before the header
    named: Option<String>,
    accept: Option<String>,
    coding: Option<Coding>,
    kept: Kept,
    /// of a plan
    is_json: bool,
}

impl Wanted {
    /// As the request's headers say; `format` is the name of a format, or a media type.
    pub fn of(headers: &HeaderMap, format: Option<&str>) -> Self {
        let named = format.and_then(media_types_of);
        let accept = accept(headers);
        let names_json =
            |format: &str| ["json", negotiate::JSON].iter().any(|j| j.eq_ignore_ascii_case(format));
        let is_json = format.is_some_and(names_json) || negotiate::wants_json(accept.as_deref());
        Self { named, accept, coding: Coding::accepted(headers), kept: Kept::from_headers(headers), is_json }
    }

    /// The format of an answer and its media type. A `format` that does not fit the kind of answer
    /// is left aside: clients send one with every query.
    pub fn format(&self, kind: Answer) -> Result<(ResultFormat, &'static str), Refusal> {
        let named = self.named.as_deref().and_then(|named| negotiate::negotiate(Some(named), kind));
        named
            .or_else(|| negotiate::negotiate(self.accept.as_deref(), kind))
            .ok_or_else(|| not_acceptable(kind))
    }
}

/// The media types that a value of `format` means; `None` if it is not known.
fn media_types_of(format: &str) -> Option<String> {
    let lower = format.to_ascii_lowercase();
    let types = match lower.as_str() {
        // Of solutions, and of graphs.
        "xml" => "application/sparql-results+xml, application/rdf+xml",
        "json" => "application/sparql-results+json, application/ld+json",
        "turtle" | "n3" => "text/turtle",
        "ntriples" | "n-triples" => "application/n-triples",
        "nquads" | "n-quads" => "application/n-quads",
        "json-ld" => "application/ld+json",
        // A plus in an address is a blank.
        "rdf+xml" | "rdf xml" | "rdfxml" => "application/rdf+xml",
        other => match other.parse::<ResultFormat>() {
            Ok(format) => return format.media_type().split(';').next().map(str::to_owned),
            Err(_) => return other.contains('/').then_some(lower),
        },
    };
    Some(types.to_owned())
}

/// The longest that a query may keep a thread of connections.
const MOMENT: Duration = Duration::from_millis(3);
/// Queries that took no longer of late are tried there: two changes of thread cost as much.
const BRIEF: Duration = Duration::from_micros(500);

/// The thread that makes an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// that of the connection, which others wait for: what takes longer than a moment, or is more
    /// than a piece, is given up
    OfConnection,
    /// its own
    Own,
}

impl Thread {
    /// The one for a query, by how long those of its shape took.
    pub fn of(engine: &Engine, query: &ProtocolRequest, options: &QueryOptions) -> Self {
        let is_plain = query.explain.is_none()
            && query.priority == Priority::Normal
            && options.timeout.is_none_or(|most| most > MOMENT);
        match is_plain && engine.expected(&query.text, options).is_some_and(|took| took <= BRIEF) {
            true => Self::OfConnection,
            false => Self::Own,
        }
    }

    fn options(self, options: &QueryOptions) -> Cow<'_, QueryOptions> {
        match self {
            Self::Own => Cow::Borrowed(options),
            Self::OfConnection => Cow::Owned(QueryOptions {
                timeout: Some(MOMENT),
                memory_wait: Some(Duration::ZERO),
                threads: 1,
                ..options.clone()
            }),
        }
    }

    /// Whether an error says that this was the wrong thread.
    fn gives_up(self, error: &QueryError) -> bool {
        let is_of_moment =
            matches!(error, QueryError::Timeout(_) | QueryError::Busy { .. } | QueryError::Write(_));
        self == Self::OfConnection && is_of_moment
    }
}

/// A query that goes into the log if it is slow.
struct Timed<'a> {
    engine: &'a Engine,
    logs: &'a Logs,
    text: &'a str,
    options: &'a QueryOptions,
    begun: Instant,
}

impl Timed<'_> {
    fn is_over(&self, rows: u64, error: Option<&Refusal>) {
        let Self { engine, logs, text, options, begun } = self;
        let took = begun.elapsed();
        if logs.is_slow(took) {
            let activity = options.account.as_ref().map(|account| account.activity().to_string());
            let planned = QueryOptions { account: None, view: None, ..(*options).clone() };
            logs.slow(&SlowRequest {
                kind: "query",
                text,
                took,
                rows,
                activity: activity.unwrap_or_default(),
                plan: engine.explain(text, &planned).ok(),
                error: error.map(|refusal| refusal.1.clone()),
            });
        }
    }
}

/// Runs one query on this thread and writes its answer. The head is dropped when it is given up.
pub fn answer(
    (engine, states, logs): (&Engine, &States, &Logs),
    text: &str,
    options: &QueryOptions,
    wanted: &Wanted,
    (slot, thread): (Slot, Thread),
    head: oneshot::Sender<Head>,
) {
    let options = &*thread.options(options);
    let refuse = |head: oneshot::Sender<Head>, refusal| drop(head.send(Err(refusal)));
    let timed = Timed { engine, logs, text, options, begun: Instant::now() };
    let result = match engine.query(text, options) {
        Ok(result) => result,
        Err(error) if thread.gives_up(&error) => return,
        Err(error) => {
            let refusal = refusal(&error);
            timed.is_over(0, Some(&refusal));
            return refuse(head, refusal);
        }
    };
    let kind = match result.kind() {
        QueryKind::Graph => Answer::Graph,
        _ => Answer::Solutions,
    };
    let (format, media_type) = match wanted.format(kind) {
        Ok(format) => format,
        Err(refusal) => return refuse(head, refusal),
    };
    let mut headers = typed(media_type);
    // A tag tells of changes in graphs that are not there for the user.
    if result.is_volatile() || options.view.is_some() {
        mark_volatile(&mut headers);
    } else if states.mark(result.txn(), format.name(), &wanted.kept, &mut headers) {
        return drop(head.send(Ok(Begun::kept(headers, options.account.as_deref()))));
    }
    let turn = Turn { slot, memory: Some(result.memory()) };
    let budget = engine.database().memory();
    let mut writer = AnswerWriter::new(headers, head, turn).coded(wanted.coding, budget);
    if thread == Thread::OfConnection {
        writer = writer.at_once();
    }
    match result.write(format, &mut writer) {
        // A client that left before the end is its own affair.
        Ok(written) => {
            let account = options.account.as_ref();
            let activity = account.map_or(written.activity, |account| account.activity());
            drop(writer.finish(&activity));
            timed.is_over(written.rows, None);
        }
        Err(error) if thread.gives_up(&error) => {}
        Err(error) => {
            let refusal = refusal(&error);
            let rows = options.rows.as_ref().map_or(0, |rows| rows.load(Ordering::Relaxed));
            timed.is_over(rows, Some(&refusal));
            writer.fail(refusal);
        }
    }
}

/// How far a dump may go.
pub struct DumpLimits {
    pub cancel: Arc<AtomicBool>,
    pub deadline: Option<(Instant, Duration)>,
    pub rows: Option<u64>,
    pub view: Option<Arc<GraphView>>,
}

impl Interrupt for DumpLimits {
    fn is_set(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.is_late()
    }
}

impl DumpLimits {
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|(at, _)| Instant::now() >= at)
    }
}

/// Writes all graphs out, on behalf of the account.
pub fn dump(
    (engine, states): (&Engine, &States),
    (account, limits): (&Arc<Account>, &DumpLimits),
    wanted: &Wanted,
    slot: Slot,
    head: oneshot::Sender<Head>,
) {
    let refuse = |head: oneshot::Sender<Head>, refusal| drop(head.send(Err(refusal)));
    let (format, media_type) = match wanted.format(Answer::Dataset) {
        Ok(format) => format,
        Err(refusal) => return refuse(head, refusal),
    };
    let session = match engine.database().session() {
        Ok(session) => engine.seen_session(session.charged_to(account), limits.view.as_ref()),
        Err(error) => return refuse(head, internal(&error)),
    };
    if limits.view.is_some() && limits.rows.is_some() {
        let what = "the whole of it, which has no limit on rows,".to_owned();
        return refuse(head, refusal(&QueryError::Forbidden { what }));
    }
    if let Some(most) = limits.rows.filter(|most| session.state().quads() > *most) {
        return refuse(head, refusal(&QueryError::Rows(most)));
    }
    let mut headers = typed(media_type);
    if limits.view.is_some() {
        mark_volatile(&mut headers);
    } else if states.mark(session.state().txn(), format.name(), &wanted.kept, &mut headers) {
        return drop(head.send(Ok(Begun::kept(headers, Some(account)))));
    }
    let format = match format {
        ResultFormat::TriG => DumpFormat::TriG,
        ResultFormat::JsonLd => DumpFormat::JsonLd,
        _ => DumpFormat::NQuads,
    };
    let budget = engine.database().memory();
    let mut writer =
        AnswerWriter::new(headers, head, Turn { slot, memory: None }).coded(wanted.coding, budget);
    match session.dump(format, limits.view.as_deref(), &mut writer, limits) {
        Ok(_) => drop(writer.finish(&account.activity())),
        Err(GraphError::Stopped) => {
            let late = limits.deadline.filter(|_| limits.is_late());
            writer.fail(refusal(&late.map_or(QueryError::Cancelled, |(_, most)| QueryError::Timeout(most))));
        }
        Err(error) => writer.fail(refusal(&error.into())),
    }
}

/// The plan of a query, and with `analyze` what it did: as text, or as JSON where that is wanted.
pub fn explained(
    engine: &Engine,
    text: &str,
    options: &QueryOptions,
    explain: Explain,
    wanted: &Wanted,
) -> Head {
    let plan = match explain {
        Explain::Plan => engine.explanation(text, options),
        Explain::Analyze => engine.analysis(text, options),
    };
    let plan = plan.map_err(|error| refusal(&error))?;
    let (media_type, body) = match wanted.is_json {
        true => (negotiate::JSON, format!("{}\n", plan.json())),
        false => ("text/plain; charset=utf-8", plan.to_string()),
    };
    let mut headers = typed(media_type);
    mark_volatile(&mut headers);
    let body = AnswerBody::whole(body);
    let activity = options.account.as_ref().map(|account| account.activity());
    Ok(Begun { status: StatusCode::OK, headers, body, activity: Some(activity.unwrap_or_default()) })
}
