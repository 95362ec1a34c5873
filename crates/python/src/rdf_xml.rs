//! The quads of an RDF/XML document, read as they are asked for.

use std::collections::VecDeque;
use std::io::Read;

use oxrdf::{BaseDirection, BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use snowmelt_rdfxml::{Direction, OddTerms, OnFault, Options, RdfXml, ReadError, ReadFault, ReadTerm, Sink};

/// Bytes of the longest term.
const LONGEST: usize = 64 << 20;

/// Quads that were read and not asked for yet.
struct Ready {
    quads: VecDeque<Quad>,
    /// Blank nodes without names of this document are numbered from here on.
    first: u128,
    /// Names that the document gives are read as `NAME` with this behind them.
    suffix: String,
}

impl Ready {
    fn node(&self, label: &str) -> BlankNode {
        match label.parse::<u64>() {
            Ok(number) => BlankNode::new_from_unique_id(self.first.wrapping_add(number.into())),
            Err(_) => BlankNode::new_unchecked(format!("{label}{}", self.suffix)),
        }
    }

    fn term(&self, term: ReadTerm<'_>) -> Term {
        match term {
            ReadTerm::Iri(iri) => NamedNode::new_unchecked(iri).into(),
            ReadTerm::Blank(label) => self.node(label).into(),
            ReadTerm::Literal { lexical, language: Some(tag), direction: Some(direction), .. } => {
                let direction = match direction {
                    Direction::Ltr => BaseDirection::Ltr,
                    Direction::Rtl => BaseDirection::Rtl,
                };
                Literal::new_directional_language_tagged_literal_unchecked(lexical, tag, direction).into()
            }
            ReadTerm::Literal { lexical, language: Some(tag), .. } => {
                Literal::new_language_tagged_literal_unchecked(lexical, tag).into()
            }
            ReadTerm::Literal { lexical, language: None, datatype, .. } => {
                Literal::new_typed_literal(lexical, NamedNode::new_unchecked(datatype)).into()
            }
            // They nest at most 64 times.
            ReadTerm::Triple(triple) => Term::from(Triple {
                subject: self.subject(triple.subject.as_ref()),
                predicate: NamedNode::new_unchecked(triple.predicate.as_str()),
                object: self.term(triple.object.as_ref()),
            }),
        }
    }

    fn subject(&self, subject: ReadTerm<'_>) -> NamedOrBlankNode {
        match self.term(subject) {
            Term::NamedNode(node) => node.into(),
            Term::BlankNode(node) => node.into(),
            other => unreachable!("{other} is no subject"),
        }
    }
}

impl Sink for Ready {
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) {
        let subject = self.subject(subject);
        let predicate = NamedNode::new_unchecked(predicate);
        let object = self.term(object);
        self.quads.push_back(Quad::new(subject, predicate, object, GraphName::DefaultGraph));
    }

    fn dropped(&mut self, _: ReadFault) {}
}

/// Reads a document.
pub struct RdfXmlQuads<R> {
    /// `None` once it has ended.
    reader: Option<RdfXml<R>>,
    ready: Ready,
}

impl<R: Read> RdfXmlQuads<R> {
    /// A document with a base of its own; `rename_blank_nodes` gives nodes new names where the
    /// document names them.
    pub fn new(
        read: R,
        base: Option<&str>,
        on_fault: OnFault,
        rename_blank_nodes: bool,
    ) -> Result<Self, String> {
        let options =
            Options { base: base.map(str::to_owned), on_fault, odd: OddTerms::Refused, longest: LONGEST };
        let unique = || BlankNode::default().as_ref().unique_id().unwrap_or_default();
        let suffix = if rename_blank_nodes { format!("-{:x}", unique()) } else { String::new() };
        let ready = Ready { quads: VecDeque::new(), first: unique(), suffix };
        Ok(RdfXmlQuads { reader: Some(RdfXml::new(read, &options)?), ready })
    }
}

impl<R: Read> Iterator for RdfXmlQuads<R> {
    type Item = Result<Quad, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(quad) = self.ready.quads.pop_front() {
                return Some(Ok(quad));
            }
            match self.reader.as_mut()?.step(&mut self.ready) {
                Ok(true) => {}
                Ok(false) => self.reader = None,
                Err(error) => {
                    self.reader = None;
                    return Some(Err(error));
                }
            }
        }
    }
}
