//! RDF/XML: from its reader to chunks of statements.

use std::io::Read;

use oxrdf::NamedNode;
use snowmelt_rdfxml::{
    Direction, OnFault, Options, OwnTerm, RdfXml, ReadError, ReadFault, ReadTerm, Sink, TermTriple,
};

use super::chunks::Chunks;
use super::options::DocumentOptions;
use crate::input::error::{DocumentSetting, LoadError, LoadOption};
use crate::input::intern::{Fault, Ref};
use crate::interrupt::Interrupt;
use crate::term::{BaseDirection, TermId, TermRef};

/// Bytes a reader may hold free of charge.
const FREE_BYTES: u64 = 256 << 10;

/// Takes triples into the graph that is filled.
struct Triples<'a> {
    chunks: Chunks<'a>,
    graph: Option<NamedNode>,
}

impl Triples<'_> {
    fn term(&mut self, term: ReadTerm<'_>) -> Ref {
        self.chunks.term(match term {
            ReadTerm::Iri(iri) => TermRef::Iri(iri),
            ReadTerm::Blank(label) => TermRef::Blank(label),
            ReadTerm::Literal { lexical, language: lang, direction, datatype } => {
                let direction = direction.map(|direction| match direction {
                    Direction::Ltr => BaseDirection::Ltr,
                    Direction::Rtl => BaseDirection::Rtl,
                });
                TermRef::Literal { lexical, lang, direction, datatype }
            }
            ReadTerm::Triple(triple) => return self.triple_term(triple),
        })
    }

    fn triple_term(&mut self, triple: &TermTriple) -> Ref {
        let (mut levels, mut at) = (vec![triple], triple);
        while let OwnTerm::Triple(inner) = &at.object {
            levels.push(inner);
            at = inner;
        }
        let mut object = self.term(at.object.as_ref());
        for triple in levels.into_iter().rev() {
            let subject = self.term(triple.subject.as_ref());
            let predicate = self.term(ReadTerm::Iri(&triple.predicate));
            object = self.chunks.triple([subject, predicate, object]);
        }
        object
    }
}

impl Sink for Triples<'_> {
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) {
        let subject = self.term(subject);
        let predicate = self.term(ReadTerm::Iri(predicate));
        let object = self.term(object);
        let graph = match &self.graph {
            Some(graph) => self.chunks.term(TermRef::Iri(graph.as_str())),
            None => TermId::DEFAULT_GRAPH.0,
        };
        self.chunks.add_row([subject, predicate, object, graph]);
    }

    fn dropped(&mut self, fault: ReadFault) {
        self.chunks.leave_out(of_reader(fault));
    }
}

/// Parses a document into chunks.
pub(super) fn parse_rdf_xml(
    read: impl Read,
    options: &DocumentOptions,
    cancel: &dyn Interrupt,
    chunks: Chunks<'_>,
) -> Result<(), LoadError> {
    let on_fault = if options.lenient { OnFault::Drop } else { OnFault::Stop };
    let settings =
        Options { base: options.base.clone(), on_fault, odd: options.odd_terms, longest: options.longest };
    let mut reader = RdfXml::new(read, &settings)
        .map_err(|message| LoadError::Option { option: LoadOption::Base, message })?;
    let mut charge = options.budget.charge("an RDF/XML document that nests, or has many rdf:IDs,");
    let mut charged = 0;
    let mut triples = Triples { chunks, graph: options.graph.clone() };
    loop {
        super::cancelled(cancel)?;
        let fault = match reader.step(&mut triples) {
            Ok(false) => {
                options.namespaces.add(reader.declared());
                return triples.chunks.end();
            }
            Ok(true) => {
                let held = (reader.held_bytes() as u64).saturating_sub(FREE_BYTES);
                let set = if held == charged { Ok(()) } else { charge.set(held) };
                charged = held;
                let refused = set.err().map(|error| (error.to_string(), DocumentSetting::Memory));
                let too_long = || Some((triples.chunks.too_long()?, DocumentSetting::LongestTerm));
                refused.or_else(too_long).map(|(message, setting)| Fault {
                    setting: Some(setting),
                    ..of_reader(reader.fault_here(message))
                })
            }
            Err(ReadError::Document(fault)) => Some(of_reader(fault)),
            Err(ReadError::Io(source)) => return Err(options.unreadable(source, cancel)),
        };
        if let Some(fault) = fault {
            return triples.chunks.end_at(fault);
        }
        triples.chunks.hand_on()?;
    }
}

/// The fault of the reader, with its line counted from 0.
fn of_reader(fault: ReadFault) -> Fault {
    let ReadFault { line, column, message, is_too_long, .. } = fault;
    let setting = is_too_long.then_some(DocumentSetting::LongestTerm);
    Fault { line: line - 1, column, message, setting }
}
