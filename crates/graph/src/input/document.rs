//! Formats that only a parser with memory can read (Turtle, TriG, RDF/XML, JSON-LD, N3): one
//! thread, oxrdfio, cut into chunks of statements.

use std::io::Read;

use oxrdf::{GraphName, NamedNode};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser};
use snowmelt_store::MemoryBudget;

use super::guard::{Bounds, Guarded};
use super::looking::Looking;
use super::room::with_room;
use super::tagwise::TagWise;
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
    options: DocumentOptions,
    cancel: &dyn Interrupt,
    empty: impl FnMut() -> Result<Parsed, LoadError>,
    full: impl FnMut(Parsed) -> Result<(), LoadError>,
    name: &str,
) -> Result<(), LoadError> {
    let calls_itself = matches!(options.format, RdfFormat::JsonLd { .. });
    let parse = || parse(read, source, options, cancel, empty, full, name);
    if calls_itself { with_room(parse) } else { parse() }
}

fn parse(
    read: impl Read,
    source: usize,
    options: DocumentOptions,
    cancel: &dyn Interrupt,
    mut empty: impl FnMut() -> Result<Parsed, LoadError>,
    mut full: impl FnMut(Parsed) -> Result<(), LoadError>,
    name: &str,
) -> Result<(), LoadError> {
    let graph = options.graph.map_or(GraphName::DefaultGraph, GraphName::NamedNode);
    let mut parser = RdfParser::from_format(options.format).with_default_graph(graph);
    if options.is_one_graph {
        parser = parser.without_named_graphs();
    }
    if let Some(base) = &options.base {
        parser = parser.with_base_iri(base).map_err(|e| LoadError::Option {
            option: "--base",
            message: format!("{base} is no absolute IRI: {e}"),
        })?;
    }
    let charge = Some(options.budget.charge("a document that nests, or of JSON-LD,"));
    let read =
        Guarded::new(Looking::new(read, cancel), options.format, Bounds { longest: options.longest, charge });
    let recovers = matches!(options.format, RdfFormat::Turtle | RdfFormat::TriG | RdfFormat::N3);
    let (quads, at): (Box<dyn Iterator<Item = _>>, _) = if options.format == RdfFormat::RdfXml {
        let (read, at) = TagWise::new(read);
        (Box::new(parser.for_reader(read)), Some(at))
    } else {
        (Box::new(parser.for_reader(read)), None)
    };
    let mut interner = Interner::new();
    interner.begin(source, empty()?);
    let mut faults = 0;
    for quad in quads {
        // a statement may be long
        super::cancelled(cancel)?;
        match quad {
            Ok(quad) => {
                faults = 0;
                add(&mut interner, &quad);
                if interner.parsed.longest > options.longest {
                    return full(too_long(interner.end(), options.longest));
                }
            }
            Err(RdfParseError::Io(source)) => {
                super::cancelled(cancel)?;
                return Err(LoadError::Input { file: name.to_owned(), source });
            }
            Err(RdfParseError::Syntax(_)) if options.lenient && recovers && faults < MAX_FAULTS_IN_A_ROW => {
                faults += 1;
                interner.parsed.skipped += 1;
            }
            Err(RdfParseError::Syntax(error)) => {
                let told = error.location().map(|range| (range.start.line, range.start.column));
                let read_to = || at.as_ref().map(|at| (at.get().line, at.get().column));
                let place = told.or_else(read_to);
                interner.parsed.fault = Some(Fault {
                    line: place.map_or(0, |(line, _)| line),
                    column: place.map_or(0, |(_, column)| column + 1),
                    message: error.to_string(),
                });
                return full(interner.end());
            }
        }
        let parsed = &interner.parsed;
        if parsed.rows.len() >= options.chunk_rows || parsed.extra.len() >= options.chunk_bytes {
            full(interner.end())?;
            interner.begin(source, empty()?);
        }
    }
    full(interner.end())
}

/// A chunk that ends with a term that is too long.
fn too_long(mut parsed: Parsed, most: usize) -> Parsed {
    let message = parsed.too_long(most).expect("the caller saw one");
    parsed.fault = Some(Fault { line: 0, column: 0, message });
    parsed
}

fn add(interner: &mut Interner, quad: &oxrdf::Quad) {
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
