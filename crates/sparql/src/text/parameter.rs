//! Constants of a syntax tree: terms, or placeholders of a query's parameters.
//!
//! The placeholder of an IRI is `<snowmelt-param:N>`, of a literal `"N"^^<snowmelt-param:>`. A
//! text that contains the scheme itself gets no placeholders ([`super::shape`]), so none is
//! ever forged.

use spargebra::term::{Literal, NamedNode};

/// The scheme of placeholders.
pub(super) const SCHEME: &str = "snowmelt-param:";

/// A term without variables.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum GroundTerm {
    Iri(NamedNode),
    Literal(Literal),
}

/// A constant of all queries of one shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ConstTerm {
    /// written in every query of this shape
    Fixed(GroundTerm),
    /// the n-th parameter of the query's text
    Param(u32),
}

/// The parameter an IRI is the placeholder of.
fn param_of_iri(iri: &str) -> Option<u32> {
    iri.strip_prefix(SCHEME)?.parse().ok()
}

/// The parameter a literal is the placeholder of.
fn param_of_literal(literal: &Literal) -> Option<u32> {
    (literal.datatype().as_str() == SCHEME).then(|| literal.value().parse().ok())?
}

/// The placeholder of a parameter that is an IRI; in patterns it stands for any term.
pub(super) fn iri_placeholder(number: usize) -> NamedNode {
    NamedNode::new_unchecked(format!("{SCHEME}{number}"))
}

/// The placeholder of a parameter that is a literal.
pub(super) fn literal_placeholder(number: usize) -> Literal {
    Literal::new_typed_literal(number.to_string(), NamedNode::new_unchecked(SCHEME))
}

/// The constant an IRI stands for: itself, or a parameter of the text.
pub(crate) fn iri_const(iri: &NamedNode) -> ConstTerm {
    param_of_iri(iri.as_str())
        .map_or_else(|| ConstTerm::Fixed(GroundTerm::Iri(iri.clone())), ConstTerm::Param)
}

/// The constant a literal stands for: itself, or a parameter of the text.
pub(crate) fn literal_const(literal: &Literal) -> ConstTerm {
    param_of_literal(literal)
        .map_or_else(|| ConstTerm::Fixed(GroundTerm::Literal(literal.clone())), ConstTerm::Param)
}

/// The term behind a constant, given the query's parameters.
pub(crate) fn ground<'a>(term: &'a ConstTerm, params: &'a [GroundTerm]) -> &'a GroundTerm {
    match term {
        ConstTerm::Fixed(term) => term,
        ConstTerm::Param(n) => &params[*n as usize],
    }
}
