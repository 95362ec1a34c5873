//! First half of a load: from text to numbered terms and sorted runs of quads.
//!
//! ```text
//! reader ─► chunks of lines ─► parsers ─► partial dictionaries, in input order ─► numbering
//!    └──► statements of documents ──────────────────────────────────┘               │
//!              runs ◄─ sorters ◄─ rows with ids ◄───────────────────────────────────┘
//! ```
//!
//! Parsers and sorters are the same threads: sorting rows comes first, because it frees memory. A
//! fixed number of chunks circulates, so memory is bounded and a slow stage stops the ones before
//! it. Waiting threads check a common flag, so one that fails ends all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, select, unbounded};
use oxrdf::NamedNode;
use oxrdfio::RdfFormat;

use super::left_out::AllLeftOut;
use super::numbering::Numbering;
use super::options::{LoadOptions, Sizes};
use super::progress::{LoadProgress, Teller};
use super::sorter::{Batch, Sorter};
use super::waiting::WaitingRows;
use crate::input::document::parse_document;
use crate::input::error::{DocumentSetting, LoadError};
use crate::input::intern::{Interner, Parsed, Ref, position};
use crate::input::ntriples::{LineOptions, parse_chunk};
use crate::input::options::DocumentOptions;
use crate::input::source::{Lines, Source};
use crate::input::{cancelled, graph_name};
use crate::namespaces::{NamespaceSink, Namespaces};
use crate::term::TermId;

/// How often a waiting thread checks whether another one failed.
const LOOK: Duration = Duration::from_millis(50);

/// Counts of the input.
#[derive(Debug, Default)]
pub(super) struct ReadSummary {
    pub(super) triples: u64,
    pub(super) left_out: AllLeftOut,
    pub(super) bytes: u64,
    /// The graphs of the quads.
    pub(super) graphs: GraphsSeen,
    /// The prefixes that documents declare.
    pub(super) namespaces: Namespaces,
}

/// The set of graphs that occur: none, one, or several.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum GraphsSeen {
    #[default]
    None,
    One(u64),
    Many,
}

impl GraphsSeen {
    pub(super) fn add(&mut self, graph: Ref) {
        *self = match *self {
            GraphsSeen::None => GraphsSeen::One(graph),
            GraphsSeen::One(other) if other == graph => return,
            _ => GraphsSeen::Many,
        };
    }

    /// Whether no graph but the default graph occurs.
    pub(super) fn is_plain(self) -> bool {
        matches!(self, GraphsSeen::None) || self == GraphsSeen::One(TermId::DEFAULT_GRAPH.0)
    }

    pub(super) fn join(&mut self, other: GraphsSeen) {
        match other {
            GraphsSeen::None => {}
            GraphsSeen::One(graph) => self.add(graph),
            GraphsSeen::Many => *self = GraphsSeen::Many,
        }
    }
}

/// Inputs of this half of a load.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) options: &'a LoadOptions,
    pub(super) sizes: Sizes,
    /// Takes rows `[predicate, subject, object, graph]`.
    pub(super) quads: &'a Arc<Sorter<4>>,
    /// Takes rows that mention waiting terms.
    pub(super) waiting_rows: &'a WaitingRows,
    pub(super) cancel: &'a AtomicBool,
}

/// State shared by all threads of this half.
struct Shared<'a> {
    reading: Reading<'a>,
    graph: Option<NamedNode>,
    names: Vec<String>,
    namespaces: NamespaceSink,
    read_bytes: Arc<AtomicU64>,
    progress: &'a dyn LoadProgress,
    /// A thread has failed or panicked.
    stop: AtomicBool,
}

/// A chunk of lines to be parsed.
struct Job {
    number: u64,
    chunk: Parsed,
    quads: bool,
}

/// Reads all input; afterwards all runs are in `quads`, and all waiting rows in `waiting_rows`.
pub(super) fn read(
    reading: Reading<'_>,
    sources: Vec<Source>,
    numbering: &mut Numbering<'_>,
    teller: &mut Teller<'_>,
) -> Result<ReadSummary, LoadError> {
    let shared = Shared {
        reading,
        graph: graph_name(reading.options.graph.as_deref())?,
        names: sources.iter().map(Source::name).collect(),
        namespaces: NamespaceSink::default(),
        read_bytes: Arc::default(),
        progress: teller.listener(),
        stop: AtomicBool::new(false),
    };
    let (empty_tx, empty_rx) = unbounded();
    let (job_tx, job_rx) = unbounded();
    let (parsed_tx, parsed_rx) = unbounded();
    let (place_tx, place_rx) = unbounded();
    for _ in 0..reading.sizes.chunks {
        let _ = empty_tx.send(Parsed::default());
    }
    let shared = &shared;
    thread::scope(|scope| {
        let reader = {
            let parsed_tx = parsed_tx.clone();
            spawn(scope, "load-read", move || {
                let reader = Reader { shared, empty_rx, spare: None, job_tx, parsed_tx, number: 0 };
                shared.guarded(|| reader.run(sources))
            })
        };
        let workers: Vec<_> = (0..reading.options.threads.max(1))
            .map(|_| {
                let (jobs, parsed) = (job_rx.clone(), parsed_tx.clone());
                let (place, empty) = (place_rx.clone(), empty_tx.clone());
                spawn(scope, "load-parse", move || {
                    shared.guarded(|| Worker::new(shared, empty).run(jobs, parsed, place))
                })
            })
            .collect();
        drop((job_rx, parsed_tx, place_rx, empty_tx));
        let numbered = shared.guarded(|| number_chunks(shared, numbering, &parsed_rx, &place_tx, teller));
        drop((parsed_rx, place_tx));
        let read = join(reader);
        let mut graphs = GraphsSeen::None;
        let mut placed = Ok(());
        for worker in workers {
            match join(worker) {
                Ok(seen) => graphs.join(seen),
                Err(error) => placed = worse(placed, Err(error)),
            }
        }
        worse(worse(numbered.as_ref().map(|_| ()).map_err(|_| LoadError::Cancelled), read), placed)
            .or_else(|error| if matches!(error, LoadError::Cancelled) { Ok(()) } else { Err(error) })?;
        let mut summary = numbered?;
        summary.graphs = graphs;
        summary.namespaces = shared.namespaces.take();
        summary.bytes = shared.read_bytes.load(Ordering::Relaxed);
        Ok(summary)
    })
}

/// Starts a thread with a name that tools show.
pub(super) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> thread::ScopedJoinHandle<'scope, T> {
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).expect("a thread can be started")
}

/// The result of a thread; its panic is passed on.
fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, LoadError>>) -> Result<T, LoadError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The more informative error: a thread that only noticed another's failure returns
/// [`LoadError::Cancelled`].
pub(super) fn worse(a: Result<(), LoadError>, b: Result<(), LoadError>) -> Result<(), LoadError> {
    match (a, b) {
        (Err(LoadError::Cancelled), Err(b)) => Err(b),
        (Err(a), _) => Err(a),
        (Ok(()), b) => b,
    }
}

/// Sets a flag when dropped, unless defused.
struct Alarm<'a>(&'a AtomicBool, bool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Shared<'_> {
    /// Runs one thread's work; if it fails or panics, the other threads stop.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, LoadError>) -> Result<T, LoadError> {
        let mut alarm = Alarm(&self.stop, true);
        let result = work();
        alarm.1 = result.is_err();
        result
    }

    /// Fails if the load is to end.
    fn go_on(&self) -> Result<(), LoadError> {
        cancelled(self.reading.cancel)?;
        if self.stop.load(Ordering::Relaxed) { Err(LoadError::Cancelled) } else { Ok(()) }
    }

    /// The next message; `None` if there will be none.
    fn receive<T>(&self, from: &Receiver<T>) -> Result<Option<T>, LoadError> {
        loop {
            self.go_on()?;
            match from.recv_timeout(LOOK) {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Sends a message to the next stage; fails once that stage has stopped, which ends the load.
fn send<T>(to: &Sender<T>, message: T) -> Result<(), LoadError> {
    to.send(message).map_err(|_| LoadError::Cancelled)
}

/// Opens one source after the other and cuts it into chunks.
struct Reader<'a> {
    shared: &'a Shared<'a>,
    empty_rx: Receiver<Parsed>,
    /// A chunk that was taken and not needed; it must stay in circulation.
    spare: Option<Parsed>,
    job_tx: Sender<Job>,
    parsed_tx: Sender<(u64, Parsed)>,
    number: u64,
}

impl Reader<'_> {
    fn run(mut self, sources: Vec<Source>) -> Result<(), LoadError> {
        for (index, source) in sources.into_iter().enumerate() {
            self.source(index, source)?;
        }
        Ok(())
    }

    fn source(&mut self, index: usize, source: Source) -> Result<(), LoadError> {
        let shared = self.shared;
        let opened = source.open(shared.reading.options.format, &shared.read_bytes, shared.reading.cancel);
        // A cancelled read is not the input's fault.
        let input = opened.map_err(|error| shared.go_on().err().unwrap_or(error))?;
        shared.progress.input(&input.name, input.format, input.told_by);
        let quads = match input.format {
            RdfFormat::NTriples => false,
            RdfFormat::NQuads => true,
            _ => return self.document(index, input),
        };
        let failed = |source| match shared.go_on() {
            Err(stopped) => stopped,
            Ok(()) => LoadError::Input { file: shared.names[index].clone(), source },
        };
        let mut lines = Lines::new(input.read, shared.reading.sizes.chunk_bytes);
        loop {
            let mut chunk = self.empty()?;
            if !lines.next(&mut chunk.text).map_err(failed)? {
                self.spare = Some(chunk);
                return Ok(());
            }
            chunk.source = index;
            send(&self.job_tx, Job { number: self.number, chunk, quads })?;
            self.number += 1;
        }
    }

    fn document(&mut self, index: usize, input: crate::input::source::Input<'_>) -> Result<(), LoadError> {
        let shared = self.shared;
        let options = DocumentOptions {
            name: input.name,
            source: index,
            format: input.format,
            base: shared.reading.options.base.clone().or(input.base),
            graph: shared.graph.clone(),
            is_one_graph: false,
            lenient: shared.reading.options.lenient,
            odd_terms: shared.reading.options.odd_terms,
            contexts: shared.reading.options.contexts.clone(),
            // About as many statements as in a chunk of lines.
            chunk_rows: (shared.reading.sizes.chunk_bytes / 128).max(1),
            chunk_bytes: shared.reading.sizes.chunk_bytes,
            longest: shared.reading.options.store.longest_string_bytes,
            namespaces: shared.namespaces.clone(),
            budget: shared.reading.options.store.memory(),
        };
        let this = std::cell::RefCell::new(self);
        parse_document(
            input.read,
            options,
            shared.reading.cancel,
            || this.borrow_mut().empty(),
            |parsed| {
                let mut this = this.borrow_mut();
                this.number += 1;
                send(&this.parsed_tx, (this.number - 1, parsed))
            },
        )
    }

    fn empty(&mut self) -> Result<Parsed, LoadError> {
        if let Some(spare) = self.spare.take() {
            return Ok(spare);
        }
        self.shared.receive(&self.empty_rx)?.ok_or(LoadError::Cancelled)
    }
}

/// Parses chunks and places rows.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    empty: Sender<Parsed>,
    interner: Interner,
    batch: Batch<4>,
    waiting: Vec<[Ref; 4]>,
    graphs: GraphsSeen,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared<'a>, empty: Sender<Parsed>) -> Self {
        let batch = shared.reading.quads.batch();
        Worker {
            shared,
            empty,
            interner: Interner::new(),
            batch,
            waiting: Vec::new(),
            graphs: GraphsSeen::None,
        }
    }

    fn run(
        mut self,
        jobs: Receiver<Job>,
        parsed: Sender<(u64, Parsed)>,
        place: Receiver<Parsed>,
    ) -> Result<GraphsSeen, LoadError> {
        loop {
            self.shared.go_on()?;
            if let Ok(numbered) = place.try_recv() {
                self.place(numbered)?;
                continue;
            }
            select! {
                recv(place) -> numbered => match numbered {
                    Ok(numbered) => self.place(numbered)?,
                    Err(_) => break,
                },
                recv(jobs) -> job => match job {
                    Ok(job) => send(&parsed, self.parse(job))?,
                    Err(_) => break,
                },
                default(LOOK) => {}
            }
        }
        // No more text: the numbering ends once it has the chunks of all workers.
        drop(parsed);
        while let Some(numbered) = self.shared.receive(&place)? {
            self.place(numbered)?;
        }
        self.batch.finish()?;
        Ok(self.graphs)
    }

    fn parse(&mut self, job: Job) -> (u64, Parsed) {
        let shared = self.shared;
        let options = LineOptions {
            quads: job.quads,
            lenient: shared.reading.options.lenient,
            odd_terms: shared.reading.options.odd_terms,
        };
        let graph = shared.graph.as_ref().map(NamedNode::as_str);
        let source = job.chunk.source;
        (job.number, parse_chunk(&mut self.interner, source, job.chunk, graph, options))
    }

    /// Replaces references in the rows by ids, and adds the rows to the batch.
    fn place(&mut self, mut numbered: Parsed) -> Result<(), LoadError> {
        for row in &numbered.rows {
            let [s, p, o, g] = row.map(|r| position(r).map_or(r, |i| numbered.ids[i as usize]));
            self.graphs.add(g);
            if [s, p, o, g].iter().any(|&r| position(r).is_some()) {
                self.waiting.push([s, p, o, g]);
            } else {
                self.batch.push([p, s, o, g])?;
            }
        }
        self.shared.reading.waiting_rows.push(numbered.part, &self.waiting)?;
        self.waiting.clear();
        numbered.clear();
        // The reader may have ended.
        let _ = self.empty.send(numbered);
        Ok(())
    }
}

/// Takes parsed chunks in input order and numbers their terms.
fn number_chunks(
    shared: &Shared<'_>,
    numbering: &mut Numbering<'_>,
    parsed: &Receiver<(u64, Parsed)>,
    place: &Sender<Parsed>,
    teller: &mut Teller<'_>,
) -> Result<ReadSummary, LoadError> {
    let mut summary = ReadSummary::default();
    let mut early = BTreeMap::new();
    let mut next = 0;
    // Lines of the current source before the chunk.
    let (mut source, mut lines) = (0, 0);
    while let Some((number, chunk)) = shared.receive(parsed)? {
        early.insert(number, chunk);
        while let Some(mut chunk) = early.remove(&next) {
            next += 1;
            if chunk.source != source {
                (source, lines) = (chunk.source, 0);
            }
            if let Some(fault) = &chunk.fault {
                return Err(LoadError::Syntax {
                    file: shared.names[source].clone(),
                    line: lines + fault.line + 1,
                    column: fault.column,
                    message: fault.message.clone(),
                    setting: fault.setting,
                });
            }
            if let Some(message) = chunk.too_long(shared.reading.options.store.longest_string_bytes) {
                let (file, line) = (shared.names[source].clone(), lines + 1);
                let message = format!("from here on, {message}");
                let setting = Some(DocumentSetting::LongestTerm);
                return Err(LoadError::Syntax { file, line, column: 0, message, setting });
            }
            if let Some(message) = chunk.too_deep() {
                let (file, line) = (shared.names[source].clone(), lines + 1);
                let message = format!("from here on, {message}");
                return Err(LoadError::Syntax { file, line, column: 0, message, setting: None });
            }
            summary.left_out.add(&mut chunk, &shared.names[source], lines);
            lines += chunk.lines;
            summary.triples += chunk.rows.len() as u64;
            numbering.number(&mut chunk)?;
            send(place, chunk)?;
            teller.read(summary.triples, shared.read_bytes.load(Ordering::Relaxed));
        }
    }
    if !early.is_empty() {
        return Err(LoadError::Cancelled);
    }
    if shared.reading.options.lenient {
        summary.left_out.check(summary.triples, shared.reading.options.lenient_most)?;
    }
    Ok(summary)
}
