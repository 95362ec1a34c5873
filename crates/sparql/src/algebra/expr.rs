//! Expressions over the algebra's variables.
//!
//! Functions and operators are those of the syntax tree. EXISTS is none of them: the translation
//! has made it an operator of the algebra. Operators of equal rank are lists, however the text
//! nests them.

use std::fmt;

use oxrdf::NamedNode;
use snowmelt_syntax::tree as syntax;

pub(crate) use syntax::{BinaryOperator, Function, UnaryOperator};

use super::consts::{ConstTerm, GroundTerm};
use super::{Var, VarSet};

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Expression {
    Var(Var),
    /// BOUND
    Bound(Var),
    Const(GroundTerm),
    Param(Param),
    /// two or more
    Or(Vec<Expression>),
    /// two or more
    And(Vec<Expression>),
    Unary(UnaryOperator, Box<Expression>),
    /// `a != b` is the negation of `a = b`
    Binary(BinaryOperator, Box<[Expression; 2]>),
    In(Box<Expression>, Vec<Expression>),
    /// all but BOUND
    Call(Function, Vec<Expression>),
    /// a function with an IRI for a name
    Custom(NamedNode, Vec<Expression>),
    /// the planner's own: a key that equal values share, see [`super::join_key`]
    Key(Box<Expression>),
}

/// The constant of a running query that stands in an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Param {
    pub number: u32,
    /// in all queries of the shape
    pub is_iri: bool,
}

/// An aggregate of a group.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct AggregateExpression {
    pub function: GroupFunction,
    pub is_distinct: bool,
    /// that of [`GroupFunction::CountRows`] is none
    pub argument: Option<Expression>,
}

/// A function of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum GroupFunction {
    /// COUNT(*)
    CountRows,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Sample,
    /// GROUP_CONCAT with its separator
    Concat(Box<str>),
}

/// The name of a function that is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Called<'e> {
    Keyword(Function),
    Iri(&'e NamedNode),
}

impl AggregateExpression {
    /// COUNT(*), or COUNT(DISTINCT *)
    pub fn count_rows(is_distinct: bool) -> Self {
        Self { function: GroupFunction::CountRows, is_distinct, argument: None }
    }
}

impl Expression {
    /// `!self`
    pub fn negated(self) -> Self {
        Self::Unary(UnaryOperator::Not, Box::new(self))
    }

    /// One of two values, by a condition.
    pub fn if_else(condition: Self, yes: Self, no: Self) -> Self {
        Self::Call(Function::If, vec![condition, yes, no])
    }

    /// Whether two values are one term.
    pub fn same_term(a: Self, b: Self) -> Self {
        Self::Call(Function::SameTerm, vec![a, b])
    }

    pub fn literal(literal: impl Into<oxrdf::Literal>) -> Self {
        Self::Const(GroundTerm::Literal(literal.into()))
    }

    /// Whether it has the same value in each solution of a query.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Const(_) | Self::Param(_))
    }

    /// The constant that it is.
    pub fn constant(&self) -> Option<ConstTerm> {
        match self {
            Self::Const(term) => Some(ConstTerm::Fixed(term.clone())),
            Self::Param(param) => Some(ConstTerm::Param(param.number)),
            _ => None,
        }
    }

    /// The term that it is, in a query with these parameters.
    pub fn term<'a>(&'a self, params: &'a [GroundTerm]) -> Option<&'a GroundTerm> {
        match self {
            Self::Const(term) => Some(term),
            Self::Param(param) => Some(&params[param.number as usize]),
            _ => None,
        }
    }

    /// Calls `f` for the expression and all its parts.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Self)) {
        f(self);
        match self {
            Self::Var(_) | Self::Bound(_) | Self::Const(_) | Self::Param(_) => {}
            Self::Or(list) | Self::And(list) | Self::Call(_, list) | Self::Custom(_, list) => {
                list.iter().for_each(|part| part.visit(f));
            }
            Self::Unary(_, part) | Self::Key(part) => part.visit(f),
            Self::Binary(_, pair) => pair.iter().for_each(|part| part.visit(f)),
            Self::In(value, list) => {
                value.visit(f);
                list.iter().for_each(|part| part.visit(f));
            }
        }
    }

    /// The variables that it reads.
    pub fn vars(&self) -> VarSet {
        let mut set = VarSet::default();
        self.visit(&mut |part| {
            if let Self::Var(v) | Self::Bound(v) = part {
                set.insert(*v);
            }
        });
        set
    }

    /// Puts other variables in the place of its own.
    pub fn rename(&mut self, to: &impl Fn(Var) -> Var) {
        match self {
            Self::Var(v) | Self::Bound(v) => *v = to(*v),
            Self::Const(_) | Self::Param(_) => {}
            Self::Or(list) | Self::And(list) | Self::Call(_, list) | Self::Custom(_, list) => {
                list.iter_mut().for_each(|part| part.rename(to));
            }
            Self::Unary(_, part) | Self::Key(part) => part.rename(to),
            Self::Binary(_, pair) => pair.iter_mut().for_each(|part| part.rename(to)),
            Self::In(value, list) => {
                value.rename(to);
                list.iter_mut().for_each(|part| part.rename(to));
            }
        }
    }
}

/// An expression as text.
pub(crate) struct ExpressionText<'a> {
    pub expression: &'a Expression,
    /// of its variables
    pub names: &'a [String],
    pub params: &'a [GroundTerm],
}

impl ExpressionText<'_> {
    fn of<'a>(&'a self, expression: &'a Expression) -> ExpressionText<'a> {
        ExpressionText { expression, ..*self }
    }

    fn list(&self, f: &mut fmt::Formatter<'_>, list: &[Expression], between: &str) -> fmt::Result {
        f.write_str("(")?;
        for (n, part) in list.iter().enumerate() {
            let between = if n > 0 { between } else { "" };
            write!(f, "{between}{}", self.of(part))?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for ExpressionText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Expression as E;
        // the planner's own variables have no names
        let name = |v: &Var| self.names.get(v.0 as usize).map_or("#", String::as_str);
        match self.expression {
            E::Var(v) => write!(f, "?{}", name(v)),
            E::Bound(v) => write!(f, "BOUND(?{})", name(v)),
            E::Const(term) => write!(f, "{term}"),
            E::Param(param) => write!(f, "{}", self.params[param.number as usize]),
            E::Or(list) => self.list(f, list, " || "),
            E::And(list) => self.list(f, list, " && "),
            E::Unary(operator, part) => write!(f, "{}{}", operator.text(), self.of(part)),
            E::Binary(operator, pair) => self.list(f, &**pair, &format!(" {} ", operator.text())),
            E::In(value, list) => {
                write!(f, "({} IN ", self.of(value))?;
                self.list(f, list, ", ")?;
                f.write_str(")")
            }
            E::Call(function, list) => {
                f.write_str(function.text())?;
                self.list(f, list, ", ")
            }
            E::Key(part) => write!(f, "key of {}", self.of(part)),
            E::Custom(iri, list) => {
                write!(f, "{iri}")?;
                self.list(f, list, ", ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(operator: BinaryOperator, a: Expression, b: Expression) -> Expression {
        Expression::Binary(operator, Box::new([a, b]))
    }

    /// `(?a + 1 > the first parameter) && !BOUND(?b) && ?a IN (<e:f>(?b))`
    fn example() -> Expression {
        let sum = binary(BinaryOperator::Add, Expression::Var(Var(0)), Expression::literal(1));
        let param = Expression::Param(Param { number: 0, is_iri: false });
        let call = Expression::Custom(NamedNode::new_unchecked("e:f"), vec![Expression::Var(Var(1))]);
        Expression::And(vec![
            binary(BinaryOperator::Greater, sum, param),
            Expression::Bound(Var(1)).negated(),
            Expression::In(Box::new(Expression::Var(Var(0))), vec![call]),
        ])
    }

    fn text(expression: &Expression) -> String {
        let names = ["a", "b", "c"].map(str::to_owned);
        let params = [GroundTerm::Literal("x".into())];
        ExpressionText { expression, names: &names, params: &params }.to_string()
    }

    #[test]
    fn a_text_has_names_and_the_constants_of_a_query() {
        let one = "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>";
        let expected = format!("(((?a + {one}) > \"x\") && !BOUND(?b) && (?a IN (<e:f>(?b))))");
        assert_eq!(text(&example()), expected);
    }

    #[test]
    fn each_variable_is_found_and_renamed() {
        let mut expression = example();
        assert_eq!(expression.vars(), [Var(0), Var(1)].into_iter().collect());
        expression.rename(&|v| if v == Var(1) { Var(2) } else { v });
        assert_eq!(text(&expression), text(&example()).replace("?b", "?c"));
    }
}
