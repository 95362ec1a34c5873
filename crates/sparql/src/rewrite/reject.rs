//! Which conditions cannot hold while a variable is unbound.
//!
//! An expression that reads an unbound variable is an error, and a filter drops errors; only
//! BOUND, COALESCE, IF, IN, `||` and `&&` can turn an error into something else (SPARQL 1.1,
//! 17.2 and 17.4.1).

use crate::algebra::{Expression as E, Function, UnaryOperator, Var};

/// Whether a condition is never true while `v` is unbound.
pub(super) fn rejects_unbound(condition: &E, v: Var) -> bool {
    match condition {
        E::And(list) => list.iter().any(|part| rejects_unbound(part, v)),
        E::Or(list) => list.iter().all(|part| rejects_unbound(part, v)),
        E::Bound(b) => *b == v,
        other => errs(other, v),
    }
}

/// Whether an expression is an error while `v` is unbound.
fn errs(e: &E, v: Var) -> bool {
    match e {
        E::Var(x) => *x == v,
        E::Binary(_, pair) => pair.iter().any(|a| errs(a, v)),
        E::Unary(_, a) | E::In(a, _) | E::Key(a) => errs(a, v),
        E::Call(Function::If | Function::Coalesce, _) => false,
        E::Call(_, list) | E::Custom(_, list) => list.iter().any(|a| errs(a, v)),
        E::Bound(_) | E::Const(_) | E::Param(_) | E::Or(_) | E::And(_) => false,
    }
}

/// The variable of `!bound(?v)`.
pub(super) fn not_bound(condition: &E) -> Option<Var> {
    match condition {
        E::Unary(UnaryOperator::Not, inner) => {
            if let E::Bound(v) = **inner {
                Some(v)
            } else {
                None
            }
        }
        _ => None,
    }
}
