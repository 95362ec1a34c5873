//! Terms, and the places of patterns that hold them.

use super::vars::Var;

/// An absolute IRI.
pub type Iri = Box<str>;

/// A literal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Literal {
    /// The lexical form, without escapes.
    pub value: Box<str>,
    /// The rest.
    pub kind: LiteralKind,
}

/// A literal's datatype or language.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LiteralKind {
    /// An `xsd:string`.
    Simple,
    /// With a language tag in lower case.
    Tagged(Box<str>),
    /// With a language tag in lower case and a direction.
    Directed(Box<str>, Direction),
    /// With a datatype other than `xsd:string`.
    Typed(Iri),
}

/// The base direction of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// `ltr`
    LeftToRight,
    /// `rtl`
    RightToLeft,
}

/// The namespace of XML Schema's datatypes.
pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

impl Literal {
    /// An `xsd:string`.
    pub fn simple(value: impl Into<Box<str>>) -> Self {
        Self { value: value.into(), kind: LiteralKind::Simple }
    }

    /// A literal with a datatype.
    pub fn typed(value: impl Into<Box<str>>, datatype: impl Into<Iri>) -> Self {
        let datatype = datatype.into();
        let is_string = datatype.strip_prefix(XSD) == Some("string");
        let kind = if is_string { LiteralKind::Simple } else { LiteralKind::Typed(datatype) };
        Self { value: value.into(), kind }
    }
}

/// A blank node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Blank {
    /// With a label: one node within a query, or within one operation of an update.
    Label(Box<str>),
    /// Without: no number occurs for two nodes of one text.
    Fresh(u64),
}

/// An RDF term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Term {
    /// An IRI.
    Iri(Iri),
    /// A blank node; never in VALUES, in DELETE and in expressions.
    Blank(Blank),
    /// A literal.
    Literal(Literal),
    /// A triple term: in data alone.
    Triple(Box<TermTriple>),
}

/// A triple as a term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TermTriple {
    /// An IRI or a blank node.
    pub subject: Term,
    /// The predicate.
    pub predicate: Iri,
    /// Any term.
    pub object: Term,
}

/// A place in a pattern.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Slot {
    /// A variable.
    Var(Var),
    /// A constant, or a blank node, which stands for a variable without a name.
    Term(Term),
    /// The constant with this number in the query's [`Shape`](crate::Shape).
    Param(u32),
    /// A triple term, with or without variables.
    Triple(Box<TriplePattern>),
}

/// A triple with places.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TriplePattern {
    /// The subject.
    pub subject: Slot,
    /// A variable, an IRI or a parameter.
    pub predicate: Slot,
    /// The object.
    pub object: Slot,
}

/// A triple with places, in a graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QuadPattern {
    /// The triple.
    pub triple: TriplePattern,
    /// A variable or an IRI; `None`: the default graph.
    pub graph: Option<Slot>,
}

/// A triple of data in a graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Quad {
    /// An IRI or a blank node.
    pub subject: Term,
    /// The predicate.
    pub predicate: Iri,
    /// Any term.
    pub object: Term,
    /// `None`: the default graph.
    pub graph: Option<Iri>,
}
