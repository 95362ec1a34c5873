//! Formats that only a parser with memory can read (Turtle, TriG, RDF/XML, JSON-LD, N3): one
//! thread, oxrdfio or for RDF/XML a reader of our own, cut into chunks of statements.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use oxrdf::{GraphName, NamedNode};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser, RdfSyntaxError};
use snowmelt_jsonld::Contexts;
use snowmelt_rdfxml::plain_base;
use snowmelt_store::MemoryBudget;

use super::guard::{Bounds, Guarded};
use super::json_ld::parse_json_ld;
use super::looking::Looking;
use super::rdf_xml::parse_rdf_xml;
use super::room::with_room;
use super::source::without_mark;
use super::terms::OddTerms;
use super::turtle::{SoundTurtle, TurtleFaults};
use crate::input::error::LoadError;
use crate::input::intern::{Fault, Interner, Parsed};
use crate::interrupt::Interrupt;
use crate::term::{TermId, TermRef};

/// How to read a document.
#[derive(Debug, Clone)]
pub(crate) struct DocumentOptions {
    pub(crate) format: RdfFormat,
    /// Base IRI.
    pub(crate) base: Option<String>,
    /// The graph of triples without one.
    pub(crate) graph: Option<NamedNode>,
    /// Statements that name a graph are faults.
    pub(crate) is_one_graph: bool,
    /// Go on behind malformed statements.
    pub(crate) lenient: bool,
    /// Terms outside of the RFCs.
    pub(crate) odd_terms: OddTerms,
    /// Contexts that JSON-LD may name.
    pub(crate) contexts: Contexts,
    /// Statements per chunk.
    pub(crate) chunk_rows: usize,
    /// Bytes of terms per chunk.
    pub(crate) chunk_bytes: usize,
    /// Bytes of the longest term.
    pub(crate) longest: usize,
    /// Memory charged for formats that are kept as a whole while they are read.
    pub(crate) budget: MemoryBudget,
}

/// Malformed statements one after the other at which a lenient load gives up as well.
const MAX_FAULTS_IN_A_ROW: u32 = 10_000;

/// Parses input number `source`, handing over chunk after chunk. `empty` gives the memory for
/// the next chunk, `full` takes a finished one; either may end the parsing by an error.
pub(crate) fn parse_document(
    read: impl Read,
    source: usize,
    mut options: DocumentOptions,
    cancel: &dyn Interrupt,
    mut empty: impl FnMut() -> Result<Parsed, LoadError>,
    mut full: impl FnMut(Parsed) -> Result<(), LoadError>,
    name: &str,
) -> Result<(), LoadError> {
    let failed = |source| match super::cancelled(cancel) {
        Ok(()) => LoadError::Input { file: name.to_owned(), source },
        Err(cancelled) => cancelled,
    };
    let read = without_mark(Looking::new(read, cancel)).map_err(failed)?;
    options.base = options.base.map(|base| plain_base(&base));
    match options.format {
        RdfFormat::RdfXml => return parse_rdf_xml(read, source, options, cancel, empty, full, name),
        RdfFormat::JsonLd { .. } => {
            return with_room(|| parse_json_ld(read, source, options, cancel, empty, full, name));
        }
        _ => {}
    }
    let parser = parser(&options)?;
    let GuardedText { read, line, told } = guarded(read, &options);
    // behind a fault in TriG its parser is in no graph
    let recovers = matches!(options.format, RdfFormat::Turtle | RdfFormat::N3);
    let mut interner = Interner::new();
    interner.begin(source, empty()?);
    let mut faults = 0;
    for quad in parser.for_reader(read) {
        // a statement may be long
        super::cancelled(cancel)?;
        faults += leave_loose(&told, &mut interner.parsed, options.lenient);
        if interner.parsed.fault.is_some() {
            return full(interner.end());
        }
        match quad {
            Ok(quad) => {
                match fault_of(&quad, &told, &options, line.get()) {
                    Some(fault) if options.lenient => {
                        interner.parsed.leave_out(fault);
                        continue;
                    }
                    Some(fault) => return full(broken(interner.end(), fault)),
                    None => faults = 0,
                }
                add(&mut interner, &quad);
                if interner.parsed.longest > options.longest {
                    return full(too_long(interner.end(), options.longest));
                }
            }
            Err(RdfParseError::Io(source)) => return Err(failed(source)),
            Err(RdfParseError::Syntax(error)) => {
                let fault = syntax_fault(&error);
                faults += 1;
                if !options.lenient || !recovers || faults > MAX_FAULTS_IN_A_ROW {
                    return full(broken(interner.end(), fault));
                }
                interner.parsed.leave_out(fault);
            }
        }
        let parsed = &interner.parsed;
        if parsed.rows.len() >= options.chunk_rows || parsed.extra.len() >= options.chunk_bytes {
            full(interner.end())?;
            interner.begin(source, empty()?);
        }
    }
    leave_loose(&told, &mut interner.parsed, options.lenient);
    full(interner.end())
}

/// Why a quad is none, if it is none.
fn fault_of(
    quad: &oxrdf::Quad,
    told: &Option<TurtleFaults>,
    options: &DocumentOptions,
    line: u64,
) -> Option<Fault> {
    let unread = told.as_ref().and_then(|told| told.of_quad(quad));
    unread.or_else(|| options.fault_of(quad).map(|message| Fault { line, column: 0, message }))
}

/// A chunk that ends with a fault.
fn broken(mut parsed: Parsed, fault: Fault) -> Parsed {
    parsed.fault = Some(fault);
    parsed
}

/// Leaves out what no quad tells, or makes the first of it the fault that ends the reading. Returns
/// how much it is.
fn leave_loose(told: &Option<TurtleFaults>, parsed: &mut Parsed, lenient: bool) -> u32 {
    let Some((loose, more)) = told.as_ref().map(TurtleFaults::take_loose) else { return 0 };
    let count = loose.len() as u64 + more;
    if !lenient {
        parsed.fault = loose.into_iter().next();
        return 0;
    }
    loose.into_iter().for_each(|fault| parsed.leave_out(fault));
    parsed.skipped += more;
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl DocumentOptions {
    /// Whether terms are checked here: the parser's own check drops the whole statement, up to
    /// its full stop, with the triples that it has in common with others.
    fn checks_terms(&self) -> bool {
        self.lenient || self.odd_terms == OddTerms::Kept
    }

    /// The fault of a quad's terms, if they are checked here and have one.
    fn fault_of(&self, quad: &oxrdf::Quad) -> Option<String> {
        if self.checks_terms() { self.odd_terms.fault_of(quad) } else { None }
    }
}

/// A syntax error as a fault; line and column are 0 when the parser does not know them.
fn syntax_fault(error: &RdfSyntaxError) -> Fault {
    let place = error.location().map(|range| (range.start.line, range.start.column));
    Fault {
        line: place.map_or(0, |(line, _)| line),
        column: place.map_or(0, |(_, column)| column + 1),
        message: error.to_string(),
    }
}

/// The text of a document within its bounds.
struct GuardedText<'r> {
    read: Box<dyn Read + 'r>,
    /// The line that its parser is in. It counts only where terms are checked here: reading line by
    /// line takes longer.
    line: Rc<Cell<u64>>,
    /// Where terms are checked: faults that the parser does not see.
    told: Option<TurtleFaults>,
}

fn guarded<'r>(read: impl Read + 'r, options: &DocumentOptions) -> GuardedText<'r> {
    let charge = Some(options.budget.charge("a document that nests"));
    let bounds = Bounds { longest: options.longest, charge };
    let read = Guarded::new(read, options.format, bounds);
    if !options.checks_terms() {
        return GuardedText { read: Box::new(BufReader::new(read)), line: Rc::default(), told: None };
    }
    if !matches!(options.format, RdfFormat::Turtle | RdfFormat::TriG) {
        let (read, line) = LineCount::new(read);
        return GuardedText { read: Box::new(read), line, told: None };
    }
    let has_graphs = options.format == RdfFormat::TriG;
    let (read, told) = SoundTurtle::new(read, has_graphs, options.base.is_some(), options.odd_terms);
    let (read, line) = LineCount::new(read);
    GuardedText { read: Box::new(read), line, told: Some(told) }
}

fn parser(options: &DocumentOptions) -> Result<RdfParser, LoadError> {
    let graph = options.graph.clone().map_or(GraphName::DefaultGraph, GraphName::NamedNode);
    let mut parser = RdfParser::from_format(options.format).with_default_graph(graph);
    if options.is_one_graph {
        parser = parser.without_named_graphs();
    }
    if options.checks_terms() {
        parser = parser.lenient();
    }
    if let Some(base) = &options.base {
        parser = parser.with_base_iri(base).map_err(|e| LoadError::Option {
            option: "--base",
            message: format!("{base} is no absolute IRI: {e}"),
        })?;
    }
    Ok(parser)
}

/// Hands a text to its parser line by line, so that the line a parser is in is known.
struct LineCount<R> {
    read: BufReader<R>,
    /// Lines before that of the last byte.
    line: Rc<Cell<u64>>,
    ended: bool,
}

impl<R: Read> LineCount<R> {
    fn new(read: R) -> (Self, Rc<Cell<u64>>) {
        let line = Rc::default();
        (LineCount { read: BufReader::new(read), line: Rc::clone(&line), ended: false }, line)
    }
}

impl<R: Read> Read for LineCount<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let text = self.read.fill_buf()?;
        let line = memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1);
        let len = line.min(out.len());
        out[..len].copy_from_slice(&text[..len]);
        if std::mem::take(&mut self.ended) {
            self.line.set(self.line.get() + 1);
        }
        self.ended = out[..len].ends_with(b"\n");
        self.read.consume(len);
        Ok(len)
    }
}

/// A chunk that ends with a term that is too long.
fn too_long(parsed: Parsed, most: usize) -> Parsed {
    let message = parsed.too_long(most).expect("the caller saw one");
    broken(parsed, Fault { line: 0, column: 0, message })
}

pub(super) fn add(interner: &mut Interner, quad: &oxrdf::Quad) {
    let subject = interner.term(quad.subject.as_ref().into());
    let predicate = interner.term(quad.predicate.as_ref().into());
    let object = interner.term(quad.object.as_ref().into());
    let graph = match &quad.graph_name {
        GraphName::DefaultGraph => TermId::DEFAULT_GRAPH.0,
        GraphName::NamedNode(node) => interner.term(TermRef::Iri(node.as_str())),
        GraphName::BlankNode(node) => interner.term(TermRef::Blank(node.as_str())),
    };
    interner.parsed.rows.push([subject, predicate, object, graph]);
}
