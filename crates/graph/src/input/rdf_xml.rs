//! RDF/XML, from the reader of it to chunks of statements.

use std::io::Read;

use oxrdf::NamedNode;
use snowmelt_rdfxml::{Odd, OnFault, Options, RdfXml, ReadError, ReadFault, ReadTerm, Sink};

use super::document::DocumentOptions;
use crate::input::error::LoadError;
use crate::input::intern::{Fault, Interner, Parsed, Ref};
use crate::input::terms::OddTerms;
use crate::interrupt::Interrupt;
use crate::term::{TermId, TermRef};

/// Bytes a reader may hold that are not charged.
const FREE_BYTES: u64 = 256 << 10;

/// Takes triples into the chunk that is filled.
struct Chunk {
    interner: Interner,
    graph: Option<NamedNode>,
}

impl Chunk {
    fn term(&mut self, term: ReadTerm<'_>) -> Ref {
        self.interner.term(match term {
            ReadTerm::Iri(iri) => TermRef::Iri(iri),
            ReadTerm::Blank(label) => TermRef::Blank(label),
            ReadTerm::Literal { lexical, language: lang, datatype } => {
                TermRef::Literal { lexical, lang, datatype }
            }
        })
    }
}

impl Sink for Chunk {
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) {
        let subject = self.term(subject);
        let predicate = self.term(ReadTerm::Iri(predicate));
        let object = self.term(object);
        let graph = match &self.graph {
            Some(graph) => self.interner.term(TermRef::Iri(graph.as_str())),
            None => TermId::DEFAULT_GRAPH.0,
        };
        self.interner.parsed.rows.push([subject, predicate, object, graph]);
    }

    fn dropped(&mut self, fault: ReadFault) {
        self.interner.parsed.leave_out(of_reader(fault));
    }
}

/// Parses input number `source`; otherwise as [`super::document::parse_document`].
pub(super) fn parse_rdf_xml(
    read: impl Read,
    source: usize,
    options: DocumentOptions,
    cancel: &dyn Interrupt,
    mut empty: impl FnMut() -> Result<Parsed, LoadError>,
    mut full: impl FnMut(Parsed) -> Result<(), LoadError>,
    name: &str,
) -> Result<(), LoadError> {
    let on_fault = if options.lenient { OnFault::Drop } else { OnFault::Stop };
    let odd = match options.odd_terms {
        OddTerms::Refused => Odd::Refused,
        OddTerms::Kept => Odd::Kept,
    };
    let settings = Options { base: options.base, on_fault, odd, longest: options.longest };
    let mut reader =
        RdfXml::new(read, &settings).map_err(|message| LoadError::Option { option: "--base", message })?;
    let mut charge = options.budget.charge("an RDF/XML document that nests, or has many rdf:IDs,");
    let mut charged = 0;
    let mut chunk = Chunk { interner: Interner::new(), graph: options.graph };
    chunk.interner.begin(source, empty()?);
    loop {
        super::cancelled(cancel)?;
        let fault = match reader.step(&mut chunk) {
            Ok(false) => return full(chunk.interner.end()),
            Ok(true) => {
                let held = (reader.held_bytes() as u64).saturating_sub(FREE_BYTES);
                let set = if held == charged { Ok(()) } else { charge.set(held) };
                charged = held;
                set.err().map(|error| reader.fault_here(error.to_string()))
            }
            Err(ReadError::Document(fault)) => Some(fault),
            Err(ReadError::Io(source)) => {
                super::cancelled(cancel)?;
                return Err(LoadError::Input { file: name.to_owned(), source });
            }
        };
        let parsed = &mut chunk.interner.parsed;
        if let Some(fault) = fault {
            parsed.fault = Some(of_reader(fault));
            return full(chunk.interner.end());
        }
        if let Some(message) = parsed.too_long(options.longest) {
            parsed.fault = Some(of_reader(reader.fault_here(message)));
            return full(chunk.interner.end());
        }
        if parsed.rows.len() >= options.chunk_rows || parsed.extra.len() >= options.chunk_bytes {
            full(chunk.interner.end())?;
            chunk.interner.begin(source, empty()?);
        }
    }
}

/// The same fault, its line from 0.
fn of_reader(fault: ReadFault) -> Fault {
    let ReadFault { line, column, message } = fault;
    Fault { line: line - 1, column, message }
}
