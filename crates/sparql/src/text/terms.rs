//! Terms of a text as those that the engine computes with.

use std::borrow::Cow;

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, NamedOrBlankNode, Triple};
use snowmelt_graph::TermRef;
use snowmelt_syntax::tree::{self, Blank, Direction, LiteralKind, TermTriple};

pub(crate) fn iri(iri: &tree::Iri) -> NamedNode {
    NamedNode::new_unchecked(&**iri)
}

pub(crate) fn literal(literal: &tree::Literal) -> Literal {
    let value = &*literal.value;
    match &literal.kind {
        LiteralKind::Simple => Literal::new_simple_literal(value),
        LiteralKind::Typed(datatype) => Literal::new_typed_literal(value, iri(datatype)),
        LiteralKind::Tagged(tag) => Literal::new_language_tagged_literal_unchecked(value, &**tag),
        LiteralKind::Directed(tag, to) => {
            Literal::new_directional_language_tagged_literal_unchecked(value, &**tag, direction(*to))
        }
    }
}

/// A triple term, whose blank nodes have labels.
pub(crate) fn triple(triple: &TermTriple) -> Triple {
    let subject: NamedOrBlankNode = match &triple.subject {
        tree::Term::Iri(name) => iri(name).into(),
        tree::Term::Blank(blank) => node(blank).into(),
        tree::Term::Literal(_) | tree::Term::Triple(_) => {
            unreachable!("the parser takes only IRIs and blank nodes as subjects of data")
        }
    };
    Triple { subject, predicate: iri(&triple.predicate), object: term(&triple.object) }
}

pub(crate) fn term(term: &tree::Term) -> oxrdf::Term {
    match term {
        tree::Term::Iri(name) => iri(name).into(),
        tree::Term::Blank(blank) => node(blank).into(),
        tree::Term::Literal(value) => literal(value).into(),
        tree::Term::Triple(parts) => triple(parts).into(),
    }
}

/// Calls `then` with a term of data as the dictionary takes it.
pub(crate) fn with_term<T>(term: &tree::Term, then: impl FnOnce(TermRef<'_>) -> T) -> T {
    match term {
        tree::Term::Iri(name) => then(TermRef::Iri(name)),
        tree::Term::Blank(blank) => then(TermRef::Blank(&label(blank))),
        tree::Term::Literal(literal) => then(literal_ref(literal)),
        tree::Term::Triple(parts) => then(TermRef::Triple(&triple(parts))),
    }
}

pub(crate) fn literal_ref(literal: &tree::Literal) -> TermRef<'_> {
    let (datatype, lang, to) = match &literal.kind {
        LiteralKind::Simple => (xsd::STRING.as_str(), None, None),
        LiteralKind::Typed(datatype) => (&**datatype, None, None),
        LiteralKind::Tagged(tag) => (rdf::LANG_STRING.as_str(), Some(&**tag), None),
        LiteralKind::Directed(tag, to) => (rdf::DIR_LANG_STRING.as_str(), Some(&**tag), Some(direction(*to))),
    };
    TermRef::Literal { lexical: &literal.value, lang, direction: to, datatype }
}

fn direction(direction: Direction) -> BaseDirection {
    match direction {
        Direction::LeftToRight => BaseDirection::Ltr,
        Direction::RightToLeft => BaseDirection::Rtl,
    }
}

fn node(blank: &Blank) -> BlankNode {
    BlankNode::new_unchecked(label(blank))
}

/// The label of a blank node. One that has none in the text gets one that no text can have.
fn label(blank: &Blank) -> Cow<'_, str> {
    match blank {
        Blank::Label(label) => Cow::Borrowed(label),
        Blank::Fresh(number) => Cow::Owned(format!(".{number}")),
    }
}
