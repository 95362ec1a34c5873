//! Which conditions cannot hold while a variable is unbound.
//!
//! An expression that reads an unbound variable is an error, and a filter drops errors; only
//! BOUND, COALESCE, IF, IN, `||` and `&&` can turn an error into something else (SPARQL 1.1,
//! 17.2 and 17.4.1).

use spargebra::algebra::Expression as E;
use spargebra::term::Variable;

/// Whether a condition is never true while `v` is unbound.
pub(super) fn rejects_unbound(condition: &E, v: &Variable) -> bool {
    match condition {
        E::And(a, b) => rejects_unbound(a, v) || rejects_unbound(b, v),
        E::Or(a, b) => rejects_unbound(a, v) && rejects_unbound(b, v),
        E::Bound(b) => b == v,
        other => errs(other, v),
    }
}

/// Whether an expression is an error while `v` is unbound.
fn errs(e: &E, v: &Variable) -> bool {
    match e {
        E::Variable(x) => x == v,
        E::Equal(a, b)
        | E::SameTerm(a, b)
        | E::Greater(a, b)
        | E::GreaterOrEqual(a, b)
        | E::Less(a, b)
        | E::LessOrEqual(a, b)
        | E::Add(a, b)
        | E::Subtract(a, b)
        | E::Multiply(a, b)
        | E::Divide(a, b) => errs(a, v) || errs(b, v),
        E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => errs(a, v),
        E::In(a, _) => errs(a, v),
        E::FunctionCall(_, list) => list.iter().any(|a| errs(a, v)),
        _ => false,
    }
}

/// The variable of `!bound(?v)`.
pub(super) fn not_bound(condition: &E) -> Option<&Variable> {
    match condition {
        E::Not(inner) => {
            if let E::Bound(v) = &**inner {
                Some(v)
            } else {
                None
            }
        }
        _ => None,
    }
}
