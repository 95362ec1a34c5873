//! Triple terms as values: three components, of which the object may be another triple term.
//!
//! `=` compares the components by value, sameTerm the terms as written (SPARQL 1.2 Query, section
//! 17.4.2). There is no `<`; ORDER BY sorts them behind all other terms, by subject, predicate and
//! object.

use std::ops::Deref;

use oxrdf::{NamedOrBlankNode, Term, Triple};
use snowmelt_graph::{MOST_TRIPLE_LEVELS, TermRef, triple_levels};

use super::Value;

/// A triple term, borrowed from where it was decoded or owned when computed.
#[derive(Clone, Debug)]
pub enum TripleValue<'a> {
    /// Of the terms of a batch.
    Read(&'a Triple),
    /// Computed.
    Made(Box<Triple>),
}

impl Deref for TripleValue<'_> {
    type Target = Triple;

    fn deref(&self) -> &Triple {
        match self {
            Self::Read(triple) => triple,
            Self::Made(triple) => triple,
        }
    }
}

impl TripleValue<'_> {
    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> TripleValue<'static> {
        match self {
            Self::Read(triple) => TripleValue::Made(Box::new(triple.clone())),
            Self::Made(triple) => TripleValue::Made(triple),
        }
    }
}

/// A triple term of these terms; `None` where RDF has none: a subject is an IRI or a blank node, a
/// predicate an IRI, and there are at most [`MOST_TRIPLE_LEVELS`] levels.
pub(crate) fn triple(subject: TermRef<'_>, predicate: TermRef<'_>, object: TermRef<'_>) -> Option<Triple> {
    let subject: NamedOrBlankNode = match oxrdf::TermRef::from(subject).into_owned() {
        Term::NamedNode(node) => node.into(),
        Term::BlankNode(node) => node.into(),
        Term::Literal(_) | Term::Triple(_) => return None,
    };
    let Term::NamedNode(predicate) = oxrdf::TermRef::from(predicate).into_owned() else { return None };
    let object = oxrdf::TermRef::from(object).into_owned();
    let triple = Triple { subject, predicate, object };
    (triple_levels(&triple) <= MOST_TRIPLE_LEVELS).then_some(triple)
}

/// The value of a component.
pub(super) fn value_of(term: &Term) -> Value<'_> {
    match term {
        Term::NamedNode(node) => Value::Iri(node.as_str().into()),
        Term::BlankNode(node) => Value::Blank(node.as_str().into()),
        Term::Literal(literal) => Value::of_term(literal.as_ref().into()),
        Term::Triple(triple) => Value::Triple(TripleValue::Read(triple)),
    }
}

pub(super) fn value_of_subject(subject: &NamedOrBlankNode) -> Value<'_> {
    match subject {
        NamedOrBlankNode::NamedNode(node) => Value::Iri(node.as_str().into()),
        NamedOrBlankNode::BlankNode(node) => Value::Blank(node.as_str().into()),
    }
}
