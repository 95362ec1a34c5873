//! Constants of a query: terms, or the numbers of its parameters.

use std::borrow::Cow;
use std::fmt;

use oxrdf::{Literal, NamedNode, Triple};
use snowmelt_syntax::tree;

use crate::text::terms::{iri, literal, triple};

/// A term without variables.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum GroundTerm {
    Iri(NamedNode),
    Literal(Literal),
    Triple(Box<Triple>),
}

impl GroundTerm {
    /// A term of a text.
    pub fn of_text(term: &tree::Term) -> Self {
        match term {
            tree::Term::Iri(name) => Self::Iri(iri(name)),
            tree::Term::Literal(value) => Self::Literal(literal(value)),
            tree::Term::Triple(parts) => Self::Triple(Box::new(triple(parts))),
            tree::Term::Blank(_) => unreachable!("the parser takes no blank node where a constant is"),
        }
    }
}

impl fmt::Display for GroundTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iri(iri) => write!(f, "{iri}"),
            Self::Literal(literal) => write!(f, "{literal}"),
            Self::Triple(triple) => write!(f, "<<( {triple} )>>"),
        }
    }
}

/// A constant of all queries of one shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ConstTerm {
    /// written in every query of this shape
    Fixed(GroundTerm),
    /// the n-th parameter of the query's text
    Param(u32),
    /// a triple term that has parameters in it
    Triple(Box<[ConstTerm; 3]>),
}

impl ConstTerm {
    /// A triple term of constants.
    pub fn triple(parts: [ConstTerm; 3]) -> Self {
        match parts.iter().all(|part| matches!(part, ConstTerm::Fixed(_))) {
            true => Self::Fixed(triple_term(&parts, &[])),
            false => Self::Triple(Box::new(parts)),
        }
    }

    /// Whether each query of the shape has the same term here.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }
}

/// The term behind a constant, given the query's parameters.
pub(crate) fn ground<'a>(term: &'a ConstTerm, params: &'a [GroundTerm]) -> Cow<'a, GroundTerm> {
    match term {
        ConstTerm::Fixed(term) => Cow::Borrowed(term),
        ConstTerm::Param(n) => Cow::Borrowed(&params[*n as usize]),
        ConstTerm::Triple(parts) => Cow::Owned(triple_term(parts, params)),
    }
}

/// Stands for triple terms that RDF does not have: a parameter may be a literal where none may be.
/// No document can contain it.
const NO_TRIPLE: &str = "snowmelt:a triple term that cannot be";

fn triple_term(parts: &[ConstTerm; 3], params: &[GroundTerm]) -> GroundTerm {
    let [subject, predicate, object] = parts.each_ref().map(|part| ground(part, params).into_owned());
    match (subject, predicate) {
        (GroundTerm::Iri(subject), GroundTerm::Iri(predicate)) => {
            GroundTerm::Triple(Box::new(Triple { subject: subject.into(), predicate, object: object.into() }))
        }
        _ => GroundTerm::Iri(NamedNode::new_unchecked(NO_TRIPLE)),
    }
}

impl From<GroundTerm> for oxrdf::Term {
    fn from(term: GroundTerm) -> Self {
        match term {
            GroundTerm::Iri(iri) => iri.into(),
            GroundTerm::Literal(literal) => literal.into(),
            GroundTerm::Triple(triple) => Self::Triple(triple),
        }
    }
}
