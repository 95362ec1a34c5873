//! The quads of an RDF/XML document, read as they are asked for.

use std::collections::VecDeque;
use std::io::Read;

use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use snowmelt_rdfxml::{OddTerms, OnFault, Options, RdfXml, ReadError, ReadFault, ReadTerm, Sink};

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
            ReadTerm::Literal { lexical, language: Some(tag), .. } => {
                Literal::new_language_tagged_literal_unchecked(lexical, tag).into()
            }
            ReadTerm::Literal { lexical, language: None, datatype } => {
                Literal::new_typed_literal(lexical, NamedNode::new_unchecked(datatype)).into()
            }
        }
    }
}

impl Sink for Ready {
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) {
        let subject: NamedOrBlankNode = match subject {
            ReadTerm::Blank(label) => self.node(label).into(),
            ReadTerm::Iri(text) | ReadTerm::Literal { lexical: text, .. } => {
                NamedNode::new_unchecked(text).into()
            }
        };
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
