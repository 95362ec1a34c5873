//! Terms, and the places of patterns that hold them.

use super::vars::Var;
use crate::lexer::Number;

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
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The namespace of RDF's own vocabulary.
pub(crate) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

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

    /// A literal with a datatype of XML Schema.
    pub(crate) fn xsd(value: impl Into<Box<str>>, datatype: &str) -> Self {
        Self::typed(value, format!("{XSD}{datatype}"))
    }

    /// A number as it is written.
    pub(crate) fn number(text: &str, number: Number) -> Self {
        match number {
            Number::Integer => Self::xsd(text, "integer"),
            Number::Decimal => Self::xsd(text, "decimal"),
            Number::Double => Self::xsd(text, "double"),
        }
    }

    /// A string with a token such as `@en` or `@en--ltr`; `None` if that is no tag.
    pub(crate) fn tagged(value: impl Into<Box<str>>, token: &str) -> Option<Self> {
        let (tag, direction) =
            token.strip_prefix('@').map(|tag| tag.split_once("--").unwrap_or((tag, "")))?;
        let tag = oxilangtag::LanguageTag::parse(tag.to_ascii_lowercase()).ok()?.into_inner().into();
        let kind = match direction {
            "" => LiteralKind::Tagged(tag),
            "ltr" => LiteralKind::Directed(tag, Direction::LeftToRight),
            "rtl" => LiteralKind::Directed(tag, Direction::RightToLeft),
            _ => return None,
        };
        Some(Self { value: value.into(), kind })
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

impl Slot {
    /// Bytes of the terms in it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Var(_) | Self::Param(_) => 0,
            Self::Term(term) => term.bytes(),
            Self::Triple(triple) => triple.slots().map(Self::bytes).into_iter().sum(),
        }
    }
}

impl Term {
    fn bytes(&self) -> usize {
        match self {
            Self::Iri(iri) => iri.len(),
            Self::Blank(Blank::Label(label)) => label.len(),
            Self::Blank(Blank::Fresh(_)) => 0,
            Self::Literal(Literal { value, kind: LiteralKind::Typed(datatype) }) => {
                value.len() + datatype.len()
            }
            Self::Literal(literal) => literal.value.len(),
            Self::Triple(triple) => {
                let TermTriple { subject, predicate, object } = &**triple;
                subject.bytes() + predicate.len() + object.bytes()
            }
        }
    }
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
    /// The triple.
    pub triple: TermTriple,
    /// `None`: the default graph.
    pub graph: Option<Iri>,
}
