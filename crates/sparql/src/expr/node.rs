//! The nodes of a compiled expression.

use snowmelt_graph::TermId;

use super::kernel::Order;
use super::members::Members;
use crate::functions::{CustomFunction, Func, TextPattern};
use crate::value::{Arithmetic, Cast, Value};

/// Tests of a term's kind: isIRI, isBLANK, isLITERAL, isNUMERIC, isTRIPLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsA {
    Iri,
    Blank,
    Literal,
    Numeric,
    Triple,
}

/// One operation; each gives a column of ids.
#[derive(Debug)]
pub(crate) enum ExprNode {
    Const(TermId),
    Slot(usize),
    Bound(usize),
    /// two or more, cheap ones first
    And(Vec<ExprNode>),
    Or(Vec<ExprNode>),
    Not(Box<ExprNode>),
    Equal(Box<ExprNode>, Box<ExprNode>),
    SameTerm(Box<ExprNode>, Box<ExprNode>),
    Compare(Order, Box<ExprNode>, Box<ExprNode>),
    In(Box<ExprNode>, Vec<ExprNode>),
    /// IN a long list
    InSet(Box<ExprNode>, Box<Members>),
    Arithmetic(Arithmetic, Box<ExprNode>, Box<ExprNode>),
    Plus(Box<ExprNode>),
    Minus(Box<ExprNode>),
    If(Box<ExprNode>, Box<ExprNode>, Box<ExprNode>),
    Coalesce(Vec<ExprNode>),
    IsA(IsA, Box<ExprNode>),
    Str(Box<ExprNode>),
    Lang(Box<ExprNode>),
    Datatype(Box<ExprNode>),
    LangMatches(Box<ExprNode>, Box<ExprNode>),
    /// TRIPLE
    Triple([Box<ExprNode>; 3]),
    /// SUBJECT, PREDICATE or OBJECT, by number
    Component(usize, Box<ExprNode>),
    Cast(Cast, Box<ExprNode>),
    /// a cast to a number of what STR gives: `xsd:double(str(?price))`
    CastText(Cast, Box<ExprNode>),
    /// REGEX or REPLACE with a constant pattern; None: the pattern is malformed, an error for
    /// every row
    Static(Func, Option<Box<TextPattern>>, Vec<ExprNode>),
    Call(Func, Vec<ExprNode>),
    /// a function of the program
    Custom(CustomFunction, Vec<ExprNode>),
    /// an expression on the text of one variable's terms
    Texts(Box<TextPart>),
    /// a key that equal values share, an inline integer
    Key(Box<ExprNode>),
    /// BNODE of a string: one blank node per solution and string
    NamedBlank(u32, Box<ExprNode>),
}

/// A part of an expression that depends on the texts of one variable, and on nothing else.
#[derive(Debug)]
pub(crate) struct TextPart {
    pub slot: usize,
    pub node: ExprNode,
    /// in the node
    pub constants: Vec<TermId>,
}

impl IsA {
    /// Whether a value is of the kind.
    pub fn holds(self, value: &Value<'_>) -> bool {
        match self {
            IsA::Iri => matches!(value, Value::Iri(_)),
            IsA::Blank => matches!(value, Value::Blank(_)),
            IsA::Literal => value.is_literal(),
            IsA::Triple => matches!(value, Value::Triple(_)),
            IsA::Numeric => value.is_numeric(),
        }
    }
}

impl ExprNode {
    /// Whether the node's column holds only true, false and UNDEF.
    pub fn is_boolean(&self) -> bool {
        match self {
            ExprNode::And(_)
            | ExprNode::Or(_)
            | ExprNode::Not(_)
            | ExprNode::Equal(..)
            | ExprNode::SameTerm(..)
            | ExprNode::Compare(..)
            | ExprNode::In(..)
            | ExprNode::InSet(..)
            | ExprNode::Bound(_)
            | ExprNode::IsA(..)
            | ExprNode::LangMatches(..)
            | ExprNode::Cast(Cast::Boolean, _) => true,
            ExprNode::Static(func, ..) | ExprNode::Call(func, _) => func.is_boolean(),
            ExprNode::Texts(part) => part.node.is_boolean(),
            _ => false,
        }
    }

    /// Whether the node is worked out on ids alone for the usual operands: cheap enough to
    /// compute for rows that may not need it.
    pub fn is_cheap(&self) -> bool {
        match self {
            ExprNode::Const(_) | ExprNode::Slot(_) | ExprNode::Bound(_) => true,
            ExprNode::Not(a) | ExprNode::Plus(a) | ExprNode::Minus(a) => a.is_cheap(),
            ExprNode::Equal(a, b)
            | ExprNode::SameTerm(a, b)
            | ExprNode::Compare(_, a, b)
            | ExprNode::Arithmetic(_, a, b) => a.is_cheap() && b.is_cheap(),
            ExprNode::And(parts) | ExprNode::Or(parts) => parts.iter().all(ExprNode::is_cheap),
            _ => false,
        }
    }
}
