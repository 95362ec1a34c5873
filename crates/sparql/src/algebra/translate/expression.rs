//! Expressions of a text as those of the algebra.

use oxrdf::NamedNode;
use snowmelt_syntax::tree::{self, Expr, GraphPattern, Term};

use crate::algebra::consts::GroundTerm;
use crate::algebra::{Expression, Function, Param};
use crate::error::QueryError;

/// A part of an expression whose meaning depends on its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScopedPart<'t> {
    Var(tree::Var),
    Bound(tree::Var),
    Exists(&'t GraphPattern),
}

type Converted = Result<Expression, QueryError>;

/// Converts an expression, given what to make of its variables and of EXISTS.
pub(crate) struct ExpressionConverter<'f, 't> {
    pub params: &'f [GroundTerm],
    pub scoped: &'f mut dyn FnMut(ScopedPart<'t>) -> Converted,
}

impl<'t> ExpressionConverter<'_, 't> {
    pub fn expression(&mut self, e: &'t Expr) -> Converted {
        Ok(match e {
            Expr::Var(v) => (self.scoped)(ScopedPart::Var(*v))?,
            Expr::Exists(pattern) => (self.scoped)(ScopedPart::Exists(pattern))?,
            Expr::Const(term) => constant(term),
            Expr::Param(number) => {
                let is_iri = matches!(self.params[*number as usize], GroundTerm::Iri(_));
                Expression::Param(Param { number: *number, is_iri })
            }
            Expr::Or(_) => Expression::Or(self.all(chained(e, or))?),
            Expr::And(_) => Expression::And(self.all(chained(e, and))?),
            Expr::Unary(operator, part) => Expression::Unary(*operator, Box::new(self.expression(part)?)),
            Expr::Binary(operator, pair) => {
                let pair = [self.expression(&pair[0])?, self.expression(&pair[1])?];
                Expression::Binary(*operator, Box::new(pair))
            }
            Expr::In(value, list) => Expression::In(Box::new(self.expression(value)?), self.all(list)?),
            Expr::Call(function, list) => match (function, &list[..]) {
                (Function::Bound, [Expr::Var(v)]) => (self.scoped)(ScopedPart::Bound(*v))?,
                _ => Expression::Call(*function, self.all(list)?),
            },
            Expr::Custom(iri, list) => Expression::Custom(NamedNode::new_unchecked(&**iri), self.all(list)?),
        })
    }

    fn all(&mut self, list: impl IntoIterator<Item = &'t Expr>) -> Result<Vec<Expression>, QueryError> {
        list.into_iter().map(|e| self.expression(e)).collect()
    }
}

fn constant(term: &Term) -> Expression {
    match term {
        Term::Triple(parts) => {
            let predicate = Expression::Const(GroundTerm::Iri(NamedNode::new_unchecked(&*parts.predicate)));
            let parts = vec![constant(&parts.subject), predicate, constant(&parts.object)];
            Expression::Call(Function::Triple, parts)
        }
        term => Expression::Const(GroundTerm::of_text(term)),
    }
}

/// The parts of `||`.
pub(super) fn or(e: &Expr) -> Option<&[Expr]> {
    if let Expr::Or(parts) = e { Some(parts) } else { None }
}

/// The parts of `&&`.
pub(super) fn and(e: &Expr) -> Option<&[Expr]> {
    if let Expr::And(parts) = e { Some(parts) } else { None }
}

/// The parts that one connective joins, in order, in whatever brackets.
pub(super) fn chained(expr: &Expr, parts: fn(&Expr) -> Option<&[Expr]>) -> Vec<&Expr> {
    let (mut all, mut open) = (Vec::new(), vec![expr]);
    while let Some(e) = open.pop() {
        match parts(e) {
            Some(parts) => open.extend(parts.iter().rev()),
            None => all.push(e),
        }
    }
    all
}
