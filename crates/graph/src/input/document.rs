//! Formats that need a stateful parser: one thread reads the document, cut into chunks of
//! statements. RDF/XML and JSON-LD have readers of ours; Turtle, TriG and N3 are read by oxrdfio.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use oxrdfio::{RdfFormat, RdfParseError, RdfParser, RdfSyntaxError};
use snowmelt_base::iri;
use snowmelt_rdfxml::OddTerms;

use super::chunks::Chunks;
use super::guard::{Bounds, Guarded};
use super::json_ld::parse_json_ld;
use super::looking::Looking;
use super::options::DocumentOptions;
use super::rdf_xml::parse_rdf_xml;
use super::room::with_room;
use super::source::without_mark;
use super::terms::TermCheck;
use super::turtle::{SoundTurtle, TurtleFaults};
use crate::input::error::{DocumentSetting, LoadError, LoadOption};
use crate::input::intern::{Fault, Parsed};
use crate::interrupt::Interrupt;

/// Malformed statements in a row after which a lenient load gives up as well.
const MAX_FAULTS_IN_A_ROW: u32 = 10_000;

/// Parses a document, handing over chunk after chunk. `empty` gives the memory for the next chunk,
/// `full` takes a finished one; either may end the parsing by an error.
pub(crate) fn parse_document(
    read: impl Read,
    mut options: DocumentOptions,
    cancel: &dyn Interrupt,
    mut empty: impl FnMut() -> Result<Parsed, LoadError>,
    mut full: impl FnMut(Parsed) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    let read = Looking::new(read, cancel);
    let read = without_mark(read).map_err(|source| options.unreadable(source, cancel))?;
    options.base = options.base.map(|base| iri::plain(&base).into_owned());
    let chunks = Chunks::begin(&options, &mut empty, &mut full)?;
    match options.format {
        RdfFormat::RdfXml => parse_rdf_xml(read, &options, cancel, chunks),
        RdfFormat::JsonLd { .. } => with_room(|| parse_json_ld(read, &options, cancel, chunks)),
        _ => parse_with_oxrdfio(read, &options, cancel, chunks),
    }
}

/// Parses a document of an oxrdfio format into chunks.
fn parse_with_oxrdfio(
    read: impl Read,
    options: &DocumentOptions,
    cancel: &dyn Interrupt,
    mut chunks: Chunks<'_>,
) -> Result<(), LoadError> {
    let parser = parser(options)?;
    let GuardedText { read, line, told } = guarded(read, options);
    // after a fault in TriG the parser is in no graph
    let recovers = matches!(options.format, RdfFormat::Turtle | RdfFormat::N3);
    let mut faults = 0;
    let mut check = options.term_check();
    let mut quads = parser.for_reader(read);
    for quad in quads.by_ref() {
        // a statement may be long
        super::cancelled(cancel)?;
        match leave_loose(&told, &mut chunks, options) {
            Ok(count) => faults += count,
            Err(fault) => return chunks.end_at(fault),
        }
        match quad {
            Ok(quad) => {
                let unread = told.as_ref().and_then(|told| told.of_quad(&quad));
                let here = |message| Fault { line: line.get(), column: 0, message, setting: None };
                if let Some(fault) = unread.or_else(|| check.as_mut()?.fault_of(&quad).map(here)) {
                    if !options.lenient {
                        return chunks.end_at(fault);
                    }
                    chunks.leave_out(fault);
                    continue;
                }
                faults = 0;
                chunks.add(&quad);
                if let Some(message) = chunks.too_long() {
                    let setting = Some(DocumentSetting::LongestTerm);
                    return chunks.end_at(Fault { line: 0, column: 0, message, setting });
                }
                if let Some(message) = chunks.too_deep() {
                    return chunks.end_at(Fault { line: 0, column: 0, message, setting: None });
                }
            }
            Err(RdfParseError::Io(source)) => return Err(options.unreadable(source, cancel)),
            Err(RdfParseError::Syntax(error)) => {
                let fault = syntax_fault(&error);
                faults += 1;
                if !options.lenient || !recovers || faults > MAX_FAULTS_IN_A_ROW {
                    return chunks.end_at(fault);
                }
                chunks.leave_out(fault);
            }
        }
        chunks.hand_on()?;
    }
    let is_sound = |iri: &str| told.as_ref().is_none_or(|told| !told.is_placeholder(iri));
    options.namespaces.add(quads.prefixes().filter(|(_, iri)| is_sound(iri)));
    match leave_loose(&told, &mut chunks, options) {
        Ok(_) => chunks.end(),
        Err(fault) => chunks.end_at(fault),
    }
}

/// Leaves out the faults that belong to no quad, and returns how many there are. If a fault ends
/// the reading, returns the first of them as an error.
fn leave_loose(
    told: &Option<TurtleFaults>,
    chunks: &mut Chunks<'_>,
    options: &DocumentOptions,
) -> Result<u32, Fault> {
    let Some((loose, more)) = told.as_ref().map(TurtleFaults::take_loose) else { return Ok(0) };
    let count = loose.len() as u64 + more;
    for fault in loose {
        if !options.lenient {
            return Err(fault);
        }
        chunks.leave_out(fault);
    }
    chunks.leave_out_unlisted(more);
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

impl DocumentOptions {
    /// Whether terms are checked here. The parser's own check would drop the whole statement up to
    /// its full stop, with all triples of it.
    fn checks_terms(&self) -> bool {
        self.lenient || self.odd_terms == OddTerms::Kept
    }

    /// The check of terms, if they are checked here.
    fn term_check(&self) -> Option<TermCheck> {
        self.checks_terms().then(|| TermCheck::new(self.odd_terms))
    }
}

/// A syntax error as a fault; line and column are 0 when the parser does not know them.
fn syntax_fault(error: &RdfSyntaxError) -> Fault {
    let place = error.location().map(|range| (range.start.line, range.start.column));
    Fault {
        line: place.map_or(0, |(line, _)| line),
        column: place.map_or(0, |(_, column)| column + 1),
        message: error.to_string(),
        setting: None,
    }
}

/// The text of a document, read within its bounds.
struct GuardedText<'r> {
    read: Box<dyn Read + 'r>,
    /// The line that the parser is in. It is counted only if terms are checked here, because
    /// reading line by line is slower.
    line: Rc<Cell<u64>>,
    /// Faults that the parser does not see, if terms are checked here.
    told: Option<TurtleFaults>,
}

fn guarded<'r>(read: impl Read + 'r, options: &DocumentOptions) -> GuardedText<'r> {
    let charge = Some(options.budget.charge("a document that nests, or has many prefixes,"));
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
    let mut parser = RdfParser::from_format(options.format).with_default_graph(options.graph_of_triples());
    if options.is_one_graph {
        parser = parser.without_named_graphs();
    }
    if options.checks_terms() {
        parser = parser.lenient();
    }
    if let Some(base) = &options.base {
        parser = parser.with_base_iri(base).map_err(|e| LoadError::Option {
            option: LoadOption::Base,
            message: format!("{base} is no absolute IRI: {e}"),
        })?;
    }
    Ok(parser)
}

/// Hands a text to its parser line by line, so that the parser's current line is known.
struct LineCount<R> {
    read: BufReader<R>,
    /// Number of lines before the line of the last byte.
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

#[cfg(test)]
mod levels_tests;
