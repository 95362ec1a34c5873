//! The nodes of a compiled expression.

use snowmelt_graph::TermId;

use super::kernel::Order;
use super::members::Members;
use crate::functions::{Func, Pattern};
use crate::value::{Arithmetic, Cast};

/// What a term is: isIRI, isBLANK, isLITERAL, isNUMERIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsA {
    Iri,
    Blank,
    Literal,
    Numeric,
}

/// One operation; each gives a column of ids.
#[derive(Debug)]
pub(crate) enum Node {
    Const(TermId),
    Slot(usize),
    Bound(usize),
    /// two or more, cheap ones first
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Equal(Box<Node>, Box<Node>),
    SameTerm(Box<Node>, Box<Node>),
    Compare(Order, Box<Node>, Box<Node>),
    In(Box<Node>, Vec<Node>),
    /// IN a long list
    InSet(Box<Node>, Box<Members>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    Plus(Box<Node>),
    Minus(Box<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Coalesce(Vec<Node>),
    IsA(IsA, Box<Node>),
    Str(Box<Node>),
    Lang(Box<Node>),
    Datatype(Box<Node>),
    LangMatches(Box<Node>, Box<Node>),
    Cast(Cast, Box<Node>),
    /// a cast to a number of what STR gives: `xsd:double(str(?price))`
    CastText(Cast, Box<Node>),
    /// REGEX or REPLACE with a constant pattern; None: the pattern is malformed, an error for
    /// every row
    Static(Func, Option<Box<Pattern>>, Vec<Node>),
    Call(Func, Vec<Node>),
    /// BNODE of a string: one blank node per solution and string
    NamedBlank(u32, Box<Node>),
}

impl Node {
    /// Whether the node's column holds only true, false and UNDEF.
    pub fn is_boolean(&self) -> bool {
        match self {
            Node::And(_)
            | Node::Or(_)
            | Node::Not(_)
            | Node::Equal(..)
            | Node::SameTerm(..)
            | Node::Compare(..)
            | Node::In(..)
            | Node::InSet(..)
            | Node::Bound(_)
            | Node::IsA(..)
            | Node::LangMatches(..)
            | Node::Cast(Cast::Boolean, _) => true,
            Node::Static(func, ..) | Node::Call(func, _) => func.is_boolean(),
            _ => false,
        }
    }

    /// Whether the node is worked out on ids alone for the usual operands: cheap enough to
    /// compute for rows that may not need it.
    pub fn is_cheap(&self) -> bool {
        match self {
            Node::Const(_) | Node::Slot(_) | Node::Bound(_) => true,
            Node::Not(a) | Node::Plus(a) | Node::Minus(a) => a.is_cheap(),
            Node::Equal(a, b) | Node::SameTerm(a, b) | Node::Compare(_, a, b) | Node::Arithmetic(_, a, b) => {
                a.is_cheap() && b.is_cheap()
            }
            Node::And(parts) | Node::Or(parts) => parts.iter().all(Node::is_cheap),
            _ => false,
        }
    }
}
