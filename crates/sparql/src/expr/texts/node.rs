//! An expression on one term, whose text is borrowed.
//!
//! It is made of the compiled one for each batch: constants have become values, and texts that are
//! looked for have become searchers.

use std::borrow::Cow;

use snowmelt_graph::{TermId, TermRef};

use super::searched::{Folded, LetterCase, Searched};
use crate::expr::kernel::{Order, TRUE};
use crate::expr::members::Members;
use crate::expr::node::{ExprNode, IsA};
use crate::functions::{self, Beginning, Func, TextPattern};
use crate::value::{self, Arithmetic, Cast, Terms, Value};

/// Whether a node is worked out from the values of its parts, in the same way for each row.
pub(super) fn is_of_values(node: &ExprNode) -> bool {
    match node {
        ExprNode::Or(_)
        | ExprNode::Not(_)
        | ExprNode::Equal(..)
        | ExprNode::Compare(..)
        | ExprNode::Arithmetic(..)
        | ExprNode::Plus(_)
        | ExprNode::Minus(_)
        | ExprNode::IsA(..)
        | ExprNode::Str(_)
        | ExprNode::Key(_)
        | ExprNode::In(..)
        | ExprNode::Static(..) => true,
        ExprNode::InSet(_, members) => members.rest.is_empty(),
        // xsd:string gives a value's canonical form, which the id tells
        ExprNode::Cast(to, _) => *to != Cast::String,
        ExprNode::Call(func, _) => !func.is_volatile(),
        _ => false,
    }
}

/// Whether a node needs the texts of its parts, where those are terms.
pub(super) fn takes_text(node: &ExprNode) -> bool {
    matches!(node, ExprNode::Str(_) | ExprNode::Key(_) | ExprNode::Static(..) | ExprNode::Call(..))
}

/// Whether an expression says for a plain string by its id what it says by its text.
pub(super) fn gives_text_where_ids_do(node: &ExprNode) -> bool {
    let by_id = |node: &ExprNode| match node {
        ExprNode::Const(_) => true,
        ExprNode::Str(inner) => matches!(**inner, ExprNode::Slot(_)),
        _ => false,
    };
    match node {
        ExprNode::Equal(a, b) => by_id(a) && by_id(b),
        ExprNode::In(a, list) => by_id(a) && list.iter().all(by_id),
        ExprNode::InSet(a, _) | ExprNode::Not(a) if by_id(a) => true,
        ExprNode::Not(a) => gives_text_where_ids_do(a),
        ExprNode::Or(list) => list.iter().all(gives_text_where_ids_do),
        node => by_id(node),
    }
}

/// The order in which values are in that of texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextOrder {
    /// as terms, of one language or datatype
    OfTerm,
    /// as strings
    OfText,
}

/// The order in which an expression gives values that are in the order of texts.
pub(super) fn order_of(node: &ExprNode) -> Option<TextOrder> {
    match node {
        ExprNode::Slot(_) => Some(TextOrder::OfTerm),
        ExprNode::Str(inner) if matches!(**inner, ExprNode::Slot(_)) => Some(TextOrder::OfText),
        _ => None,
    }
}

/// An operation on the value of one term.
pub(super) enum TextNode<'e> {
    Term,
    Const(Option<Value<'static>>),
    /// STR of the term as it is written
    TextOfTerm,
    Str(Box<Self>),
    Contains(Box<Self>, Searched),
    /// in lower or upper case
    ContainsFolded(Box<Self>, Folded),
    Call(Func, Vec<Self>),
    Static(Option<&'e TextPattern>, Vec<Self>),
    Equal(Box<[Self; 2]>),
    Compare(Order, Box<[Self; 2]>),
    Arithmetic(Arithmetic, Box<[Self; 2]>),
    Plus(Box<Self>),
    Minus(Box<Self>),
    IsA(IsA, Box<Self>),
    Cast(Cast, Box<Self>),
    In(Box<Self>, Vec<Self>),
    InSet(Box<Self>, &'e Members),
    Not(Box<Self>),
    Or(Vec<Self>),
    Key(Box<Self>),
}

impl<'e> TextNode<'e> {
    /// Of a node that was marked; its constants have been read.
    pub fn new(node: &'e ExprNode, terms: &Terms) -> Self {
        let made = Self::of(node, terms);
        // what is the same for all terms is worked out once
        if matches!(made, Self::Const(_)) || !made.is_constant() {
            return made;
        }
        Self::Const(made.value(TermRef::Iri(""), terms).map(Value::into_owned))
    }

    /// Whether its parts are constants.
    fn is_constant(&self) -> bool {
        let all = |list: &[Self]| list.iter().all(|part| matches!(part, Self::Const(_)));
        let one = |part: &Self| matches!(part, Self::Const(_));
        match self {
            Self::Call(_, list) | Self::Static(_, list) | Self::Or(list) => all(list),
            Self::Equal(pair) | Self::Compare(_, pair) | Self::Arithmetic(_, pair) => all(&**pair),
            Self::ContainsFolded(a, _)
            | Self::Str(a)
            | Self::Contains(a, _)
            | Self::Plus(a)
            | Self::Minus(a)
            | Self::Not(a) => one(a),
            Self::IsA(_, a) | Self::Cast(_, a) | Self::InSet(a, _) | Self::Key(a) => one(a),
            Self::In(a, list) => one(a) && all(list),
            Self::Term | Self::TextOfTerm | Self::Const(_) => false,
        }
    }

    fn of(node: &'e ExprNode, terms: &Terms) -> Self {
        let one = |node: &'e ExprNode| Box::new(Self::new(node, terms));
        let two = |a: &'e ExprNode, b: &'e ExprNode| Box::new([Self::new(a, terms), Self::new(b, terms)]);
        let all = |list: &'e [ExprNode]| list.iter().map(|node| Self::new(node, terms)).collect();
        match node {
            ExprNode::Slot(_) => Self::Term,
            ExprNode::Const(id) => Self::Const(terms.value(*id).map(Value::into_owned)),
            ExprNode::Str(a) if matches!(**a, ExprNode::Slot(_)) => Self::TextOfTerm,
            ExprNode::Str(a) => Self::Str(one(a)),
            ExprNode::Call(Func::Contains, args) => Self::contains(&args[0], &args[1], terms),
            ExprNode::Call(func, args) => Self::Call(*func, all(args)),
            ExprNode::Static(_, pattern, args) => Self::Static(pattern.as_deref(), all(args)),
            ExprNode::Equal(a, b) => Self::Equal(two(a, b)),
            ExprNode::Compare(order, a, b) => Self::Compare(*order, two(a, b)),
            ExprNode::Arithmetic(op, a, b) => Self::Arithmetic(*op, two(a, b)),
            ExprNode::Plus(a) => Self::Plus(one(a)),
            ExprNode::Minus(a) => Self::Minus(one(a)),
            ExprNode::IsA(what, a) => Self::IsA(*what, one(a)),
            ExprNode::Cast(to, a) => Self::Cast(*to, one(a)),
            ExprNode::In(a, list) => Self::In(one(a), all(list)),
            ExprNode::InSet(a, members) => Self::InSet(one(a), members),
            ExprNode::Not(a) => Self::Not(one(a)),
            ExprNode::Or(list) => Self::Or(all(list)),
            ExprNode::Key(a) => Self::Key(one(a)),
            other => unreachable!("{other:?} is not worked out term by term"),
        }
    }

    /// The beginning that it asks for, of the term or of its text.
    pub fn beginning(&self) -> Option<(TextOrder, Beginning)> {
        let order = |text: &Self| match text {
            Self::Term => Some(TextOrder::OfTerm),
            Self::TextOfTerm => Some(TextOrder::OfText),
            _ => None,
        };
        match self {
            Self::Call(Func::StrStarts, args) => match &args[..] {
                [text, Self::Const(Some(Value::String(part)))] => {
                    Some((order(text)?, Beginning { text: part.to_string(), is_all: true }))
                }
                _ => None,
            },
            Self::Static(Some(pattern), args) => match &args[..] {
                [text] => Some((order(text)?, pattern.beginning()?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// CONTAINS: of a constant plain string with a searcher that is made once.
    fn contains(text: &'e ExprNode, part: &'e ExprNode, terms: &Terms) -> Self {
        let part = match Self::new(part, terms) {
            Self::Const(Some(Value::String(part))) => part,
            part => return Self::Call(Func::Contains, vec![Self::new(text, terms), part]),
        };
        let case = match text {
            ExprNode::Call(Func::LCase, _) => Some(LetterCase::Lower),
            ExprNode::Call(Func::UCase, _) => Some(LetterCase::Upper),
            _ => None,
        };
        if let (Some(case), ExprNode::Call(_, args)) = (case, text)
            && let Some(folded) = Folded::new(&part, case)
        {
            return Self::ContainsFolded(Box::new(Self::new(&args[0], terms)), folded);
        }
        Self::Contains(Box::new(Self::new(text, terms)), Searched::new(&part))
    }

    /// The value for a term; None for the error.
    pub fn value<'v>(&'v self, term: TermRef<'v>, terms: &Terms) -> Option<Value<'v>> {
        let of = |node: &'v Self| node.value(term, terms);
        Some(match self {
            Self::Term => Value::of_term(term),
            Self::Const(value) => borrowed(value.as_ref()?),
            Self::TextOfTerm => match term {
                TermRef::Iri(text) | TermRef::Literal { lexical: text, .. } => Value::String(text.into()),
                TermRef::Blank(_) | TermRef::Triple(_) => return None,
            },
            Self::Str(a) => text_of(of(a)?)?,
            Self::Key(a) => Value::Integer(value::join_key(&of(a)?)?.into()),
            Self::Contains(text, searched) => match of(text)? {
                Value::String(text) | Value::LangString(text, _) => Value::Boolean(searched.is_in(&text)),
                _ => return None,
            },
            Self::ContainsFolded(text, folded) => match of(text)? {
                Value::String(text) | Value::LangString(text, _) => Value::Boolean(folded.is_in(&text)),
                _ => return None,
            },
            Self::Call(func, args) => call(args, term, terms, |args| functions::call(*func, args, terms))?,
            Self::Static(pattern, args) => {
                let pattern = (*pattern)?;
                call(args, term, terms, |args| functions::call_pattern(pattern, args, terms))?
            }
            Self::Arithmetic(op, pair) => value::arithmetic(*op, &of(&pair[0])?, &of(&pair[1])?)?,
            Self::Plus(a) => of(a).filter(Value::is_numeric)?,
            Self::Minus(a) => value::negate(&of(a)?)?,
            Self::Cast(to, a) => value::cast(*to, &of(a)?)?,
            _ => Value::Boolean(self.truth(term, terms)?),
        })
    }

    /// The effective boolean value for a term; None for the error.
    fn truth(&self, term: TermRef<'_>, terms: &Terms) -> Option<bool> {
        match self {
            Self::Equal(pair) => value::equals(&pair[0].value(term, terms)?, &pair[1].value(term, terms)?),
            Self::Compare(order, pair) => {
                let (a, b) = (pair[0].value(term, terms)?, pair[1].value(term, terms)?);
                value::holds(&a, &b, |ordering| order.holds(ordering))
            }
            Self::IsA(what, a) => Some(what.holds(&a.value(term, terms)?)),
            Self::In(a, list) => {
                let a = a.value(term, terms)?;
                let is_item = |item: &Self| value::equals(&a, &item.value(term, terms)?);
                any(list.iter().map(is_item))
            }
            Self::InSet(a, members) => as_truth(members.find_value(&a.value(term, terms)?)),
            Self::Not(a) => a.truth(term, terms).map(|truth| !truth),
            Self::Or(list) => any(list.iter().map(|part| part.truth(term, terms))),
            other => value::effective_boolean(&other.value(term, terms)?),
        }
    }
}

/// `||` of truth values: true wins over error. The first true one ends it.
fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut any = Some(false);
    for truth in truths {
        match truth {
            Some(true) => return truth,
            Some(false) => {}
            None => any = None,
        }
    }
    any
}

fn as_truth(id: TermId) -> Option<bool> {
    (!id.is_undef()).then_some(id == TRUE)
}

fn call<'v>(
    args: &'v [TextNode<'_>],
    term: TermRef<'v>,
    terms: &Terms,
    mut f: impl FnMut(&[Value<'_>]) -> Option<Value<'static>>,
) -> Option<Value<'static>> {
    match args {
        [a] => f(&[a.value(term, terms)?]),
        [a, b] => f(&[a.value(term, terms)?, b.value(term, terms)?]),
        args => f(&args.iter().map(|arg| arg.value(term, terms)).collect::<Option<Vec<_>>>()?),
    }
}

/// A value that borrows the text of another.
fn borrowed<'v>(value: &'v Value<'static>) -> Value<'v> {
    match value {
        Value::Iri(text) => Value::Iri(Cow::Borrowed(text)),
        Value::String(text) => Value::String(Cow::Borrowed(text)),
        Value::LangString(text, tag) => Value::LangString(Cow::Borrowed(text), Cow::Borrowed(tag)),
        value => value.clone(),
    }
}

/// STR of a computed value.
fn text_of(value: Value<'_>) -> Option<Value<'_>> {
    Some(Value::String(match value {
        Value::Blank(_) | Value::Triple(_) => return None,
        Value::Iri(text)
        | Value::String(text)
        | Value::LangString(text, _)
        | Value::Other { lexical: text, .. } => text,
        value => value.text().into_owned().into(),
    }))
}
