//! Equalities of computed values that can join two sides: `STR(?a) = STR(?b)`.
//!
//! [`Expression::Key`] gives equal values the same key, of the values that are compared here:
//! strings and IRIs, or xsd:integer on both sides. Unequal values may share one, so the equality
//! stays as a condition over the join.

use super::{BinaryOperator, Expression, Function, Node, Var};

/// Kinds of values, each of which has keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keyed {
    /// strings, with or without language, or IRIs: equal to nothing else
    Text,
    /// xsd:integer: may equal other numbers
    Integer,
}

/// The two sides of a condition that holds only for values with the same key, if they are that.
pub(crate) fn sides(
    condition: &Expression,
    kind: impl Fn(&Expression) -> Option<Keyed>,
) -> Option<[&Expression; 2]> {
    let [a, b] = operands(condition)?;
    if !gives_the_same(a) || !gives_the_same(b) {
        return None;
    }
    match (kind(a), kind(b)) {
        (Some(Keyed::Text), _) | (_, Some(Keyed::Text)) => Some([a, b]),
        (Some(Keyed::Integer), Some(Keyed::Integer)) => Some([a, b]),
        _ => None,
    }
}

/// Whether a condition compares two values, computed ones or variables.
pub(crate) fn is_equality(condition: &Expression) -> bool {
    let is_constant = |sides: [&Expression; 2]| sides.iter().any(|side| side.is_constant());
    operands(condition).is_some_and(|sides| !is_constant(sides))
}

/// The operands of an equality.
fn operands(condition: &Expression) -> Option<[&Expression; 2]> {
    match condition {
        Expression::Binary(BinaryOperator::Equal, pair) => Some([&pair[0], &pair[1]]),
        Expression::Call(Function::SameTerm, list) => Some([&list[0], &list[1]]),
        _ => None,
    }
}

/// The kind of all values of an expression, errors apart; `defined` tells that of a variable.
pub(crate) fn kind(e: &Expression, defined: &dyn Fn(Var) -> Option<Keyed>) -> Option<Keyed> {
    use Function as F;
    Some(match e {
        Expression::Var(v) => return defined(*v),
        Expression::Call(function, _) => match function {
            F::Str | F::Lang | F::LCase | F::UCase | F::SubStr | F::StrBefore | F::StrAfter => Keyed::Text,
            F::Concat | F::Replace | F::EncodeForUri | F::Iri | F::Datatype => Keyed::Text,
            F::Md5 | F::Sha1 | F::Sha256 | F::Sha384 | F::Sha512 | F::StrLang => Keyed::Text,
            F::StrLen | F::Year | F::Month | F::Day | F::Hours | F::Minutes => Keyed::Integer,
            _ => return None,
        },
        _ => return None,
    })
}

/// Whether it gives the same value wherever, and however often, it is worked out for a solution.
pub(crate) fn gives_the_same(e: &Expression) -> bool {
    let mut same = true;
    e.visit(&mut |part| match part {
        Expression::Call(Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode, _)
        | Expression::Custom(..) => same = false,
        _ => {}
    });
    same
}

/// The expression that BIND gives a variable in a node, if nothing else there may bind it.
pub(crate) fn definition(mut node: &Node, v: Var) -> Option<&Expression> {
    loop {
        node = match node {
            Node::Extend { var, expr, .. } if *var == v => return Some(expr),
            Node::Extend { inner, .. }
            | Node::Filter { inner, .. }
            | Node::Project { inner, .. }
            | Node::Distinct(inner)
            | Node::Reduced(inner) => inner,
            Node::Join(nodes) => {
                let mut binding = nodes.iter().filter(|n| n.scope().possible.contains(v));
                let only = binding.next()?;
                if binding.next().is_some() {
                    return None;
                }
                only
            }
            _ => return None,
        }
    }
}
