//! Conditions on one variable that a scan can take as ranges of ids.

use snowmelt_graph::CompareOp;

use crate::algebra::consts::GroundTerm;
use crate::algebra::{BinaryOperator, Expression, Function, UnaryOperator, Var};

/// Most constants of an IN that are compared range by range.
const MOST_CONSTANTS: usize = 64;

/// The way in which a condition has ranges.
pub(crate) enum Ranged<'e> {
    /// all of these hold
    All(&'e [Expression]),
    /// one of these holds
    Any(&'e [Expression]),
    /// the variable compares so with one of these
    Compared(CompareOp, &'e [Expression]),
    /// It depends on a term's kind, language and datatype.
    OfClass(Asks),
}

impl Ranged<'_> {
    /// Whether the ranges are of values that are compared, and so may leave most ids out.
    pub fn compares(&self, var: Var) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().filter_map(|part| ranged(part, var)).all(|part| part.compares(var))
            }
            Self::Compared(..) => true,
            Self::OfClass(_) => false,
        }
    }
}

/// Questions of a condition on a class of terms, besides the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asks {
    /// whether a number has a valid form
    pub is_numeric: bool,
    /// language or datatype
    pub annotation: bool,
}

/// How a condition on a variable has ranges of ids, if it has.
pub(crate) fn ranged(condition: &Expression, var: Var) -> Option<Ranged<'_>> {
    if is_of_class(condition, var) {
        let mut asks = Asks { is_numeric: false, annotation: false };
        condition.visit(&mut |part| {
            if let Expression::Call(function, _) = part {
                asks.is_numeric |= *function == Function::IsNumeric;
                asks.annotation |= matches!(function, Function::Lang | Function::Datatype);
            }
        });
        return Some(Ranged::OfClass(asks));
    }
    match condition {
        Expression::And(parts) if parts.iter().all(|part| ranged(part, var).is_some()) => {
            Some(Ranged::All(parts))
        }
        Expression::Or(parts) if parts.iter().all(|part| ranged(part, var).is_some()) => {
            Some(Ranged::Any(parts))
        }
        Expression::In(value, list) if **value == Expression::Var(var) => {
            let fits = list.len() <= MOST_CONSTANTS && list.iter().all(is_literal);
            fits.then_some(Ranged::Compared(CompareOp::Eq, list))
        }
        Expression::Binary(operator, pair) => {
            let (op, turned) = compare_op(*operator)?;
            match &**pair {
                [Expression::Var(v), constant] if *v == var && is_literal(constant) => {
                    Some(Ranged::Compared(op, std::slice::from_ref(constant)))
                }
                [constant, Expression::Var(v)] if *v == var && is_literal(constant) => {
                    Some(Ranged::Compared(turned, std::slice::from_ref(constant)))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a condition is the same for all terms of one kind, language and datatype.
fn is_of_class(condition: &Expression, var: Var) -> bool {
    let is_var = |args: &[Expression]| args == [Expression::Var(var)];
    match condition {
        Expression::And(parts) | Expression::Or(parts) => parts.iter().all(|part| is_of_class(part, var)),
        Expression::Unary(UnaryOperator::Not, part) => is_of_class(part, var),
        Expression::Call(Function::LangMatches, args) => args.iter().all(|arg| is_class(arg, var)),
        Expression::Call(function, args) => {
            use Function as F;
            let is_test =
                matches!(function, F::IsIri | F::IsBlank | F::IsLiteral | F::IsNumeric | F::IsTriple);
            is_test && is_var(args)
        }
        Expression::Binary(BinaryOperator::Equal, pair) => pair.iter().all(|side| is_class(side, var)),
        Expression::In(value, list) => {
            is_class(value, var)
                && list.len() <= MOST_CONSTANTS
                && list.iter().all(|side| is_class(side, var))
        }
        _ => false,
    }
}

/// Whether an expression is a constant, or the language or datatype of the variable.
fn is_class(side: &Expression, var: Var) -> bool {
    match side {
        Expression::Const(_) | Expression::Param(_) => true,
        Expression::Call(Function::Lang | Function::Datatype, args) => args[..] == [Expression::Var(var)],
        _ => false,
    }
}

fn is_literal(constant: &Expression) -> bool {
    match constant {
        Expression::Const(term) => matches!(term, GroundTerm::Literal(_)),
        Expression::Param(param) => !param.is_iri,
        _ => false,
    }
}

/// The comparison of an operator, and that with its sides exchanged.
pub(crate) fn compare_op(operator: BinaryOperator) -> Option<(CompareOp, CompareOp)> {
    use BinaryOperator as B;
    Some(match operator {
        B::Less => (CompareOp::Lt, CompareOp::Gt),
        B::LessOrEqual => (CompareOp::Le, CompareOp::Ge),
        B::Greater => (CompareOp::Gt, CompareOp::Lt),
        B::GreaterOrEqual => (CompareOp::Ge, CompareOp::Le),
        B::Equal => (CompareOp::Eq, CompareOp::Eq),
        B::Add | B::Subtract | B::Multiply | B::Divide => return None,
    })
}
