//! Triple terms: triples that own their strings, and those that are read within
//! `rdf:parseType="Triple"`.

use super::{Direction, ReadTerm};

/// Most triple terms within each other.
pub(super) const MOST_LEVELS: usize = 64;

/// A triple that is a term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TermTriple {
    /// An IRI or blank node.
    pub subject: OwnTerm,
    /// An IRI.
    pub predicate: String,
    /// Any term.
    pub object: OwnTerm,
}

/// A term that owns its strings.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum OwnTerm {
    Iri(String),
    Blank(String),
    Literal { lexical: String, language: Option<String>, direction: Option<Direction>, datatype: String },
    Triple(Box<TermTriple>),
}

impl OwnTerm {
    /// The term, borrowed.
    pub fn as_ref(&self) -> ReadTerm<'_> {
        match self {
            OwnTerm::Iri(iri) => ReadTerm::Iri(iri),
            OwnTerm::Blank(label) => ReadTerm::Blank(label),
            OwnTerm::Literal { lexical, language, direction, datatype } => {
                ReadTerm::Literal { lexical, language: language.as_deref(), direction: *direction, datatype }
            }
            OwnTerm::Triple(triple) => ReadTerm::Triple(triple),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            OwnTerm::Iri(text) | OwnTerm::Blank(text) => text.len(),
            OwnTerm::Literal { lexical, datatype, .. } => lexical.len() + datatype.len(),
            OwnTerm::Triple(triple) => triple.bytes(),
        }
    }
}

impl From<ReadTerm<'_>> for OwnTerm {
    fn from(term: ReadTerm<'_>) -> Self {
        match term {
            ReadTerm::Iri(iri) => OwnTerm::Iri(iri.to_owned()),
            ReadTerm::Blank(label) => OwnTerm::Blank(label.to_owned()),
            ReadTerm::Literal { lexical, language, direction, datatype } => OwnTerm::Literal {
                lexical: lexical.to_owned(),
                language: language.map(str::to_owned),
                direction,
                datatype: datatype.to_owned(),
            },
            ReadTerm::Triple(triple) => OwnTerm::Triple(Box::new(triple.clone())),
        }
    }
}

impl TermTriple {
    pub(super) fn new(subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) -> Self {
        TermTriple { subject: subject.into(), predicate: predicate.to_owned(), object: object.into() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.subject.bytes() + self.predicate.len() + self.object.bytes()
    }

    /// Triple terms within each other, this one included.
    pub(super) fn levels(&self) -> usize {
        let (mut levels, mut object) = (1, &self.object);
        while let OwnTerm::Triple(inner) = object {
            levels += 1;
            object = &inner.object;
        }
        levels
    }
}

/// The triples within a property with `rdf:parseType="Triple"`, which are not told.
#[derive(Default)]
pub(super) struct Within {
    /// Elements for its subject; there should be one.
    pub(super) nodes: u64,
    /// Triples; there should be one.
    pub(super) triples: u64,
    /// The first.
    pub(super) first: Option<TermTriple>,
}
