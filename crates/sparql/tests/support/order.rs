//! ORDER BY and LIMIT: what a query's order leaves open is accepted, what it fixes is checked.
//!
//! Keys are looked at where they can be read off the projected columns: a variable, or a cast
//! or STR of one.

use std::cmp::Ordering;

use oxrdf::Term;
use spargebra::algebra::{Expression, Function, GraphPattern, OrderExpression};
use spargebra::{Query, SparqlParser};

use super::answer::{Row, Solutions, number};

/// Order and number of rows, by the outermost level of a query.
#[derive(Debug, Default)]
pub struct Shape {
    pub keys: Vec<OrderExpression>,
    pub limit: Option<usize>,
    pub offset: usize,
}

/// The shape of a SELECT query.
pub fn shape(text: &str) -> Shape {
    let Ok(Query::Select { mut pattern, .. }) = SparqlParser::new().parse_query(text) else {
        return Shape::default();
    };
    let mut shape = Shape::default();
    loop {
        pattern = match pattern {
            GraphPattern::Slice { inner, start, length } => {
                (shape.offset, shape.limit) = (start, length);
                *inner
            }
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner } => *inner,
            GraphPattern::OrderBy { expression, .. } => {
                shape.keys = expression;
                return shape;
            }
            _ => return shape,
        }
    }
}

impl Shape {
    /// Whether rows were cut off, so that ties decide which are there.
    pub fn is_cut(&self) -> bool {
        self.limit.is_some() || self.offset > 0
    }

    /// Compares two rows by the keys that can be read off the columns; None when one cannot.
    pub fn compare(&self, solutions: &Solutions, a: &Row, b: &Row) -> Option<Ordering> {
        for key in &self.keys {
            let (expression, descending) = match key {
                OrderExpression::Asc(e) => (e, false),
                OrderExpression::Desc(e) => (e, true),
            };
            let order = compare(&value(expression, solutions, a)?, &value(expression, solutions, b)?)?;
            let order = if descending { order.reverse() } else { order };
            if order.is_ne() {
                return Some(order);
            }
        }
        Some(Ordering::Equal)
    }

    /// Checks that rows come in the order asked for, as far as that can be seen.
    pub fn check(&self, solutions: &Solutions) -> Result<(), String> {
        for pair in solutions.rows.windows(2) {
            if self.compare(solutions, &pair[0], &pair[1]) == Some(Ordering::Greater) {
                let show = super::answer::show;
                return Err(format!("out of order:\n    {}\n    {}", show(&pair[0]), show(&pair[1])));
            }
        }
        Ok(())
    }
}

/// A query's text without the LIMIT and OFFSET it ends in.
pub fn uncut(text: &str) -> &str {
    let mut rest = text.trim_end();
    loop {
        let mut words = rest.rsplitn(3, char::is_whitespace);
        let (number, word, before) = (words.next(), words.next(), words.next());
        let is_cut =
            word.is_some_and(|w| w.eq_ignore_ascii_case("limit") || w.eq_ignore_ascii_case("offset"));
        match before {
            Some(before) if is_cut && number.is_some_and(|n| n.parse::<u64>().is_ok()) => {
                rest = before.trim_end()
            }
            _ => return rest,
        }
    }
}

/// The key of a row. Some(None) = unbound.
fn value(e: &Expression, solutions: &Solutions, row: &Row) -> Option<Option<Term>> {
    match e {
        Expression::Variable(v) => Some(row[solutions.column(v.as_str())?].clone()),
        Expression::FunctionCall(Function::Str, args) => {
            let text = match value(&args[0], solutions, row)? {
                Some(Term::Literal(l)) => l.value().to_owned(),
                Some(Term::NamedNode(n)) => n.into_string(),
                _ => return Some(None),
            };
            Some(Some(oxrdf::Literal::from(text).into()))
        }
        Expression::FunctionCall(Function::Custom(cast), args) => {
            let text = match value(&args[0], solutions, row)? {
                Some(Term::Literal(l)) => l.value().to_owned(),
                _ => return Some(None),
            };
            Some(Some(oxrdf::Literal::new_typed_literal(text, cast.clone()).into()))
        }
        _ => None,
    }
}

/// The order the standard fixes; None where it leaves the order open.
pub fn compare(a: &Option<Term>, b: &Option<Term>) -> Option<Ordering> {
    let class = |t: &Option<Term>| match t {
        None => 0,
        Some(Term::BlankNode(_)) => 1,
        Some(Term::NamedNode(_)) => 2,
        Some(_) => 3,
    };
    if class(a) != class(b) {
        return Some(class(a).cmp(&class(b)));
    }
    match (a.as_ref()?, b.as_ref()?) {
        (Term::NamedNode(a), Term::NamedNode(b)) => Some(a.as_str().cmp(b.as_str())),
        (ta @ Term::Literal(a), tb @ Term::Literal(b)) => match (number(ta), number(tb)) {
            (Some((a, _)), Some((b, _))) => a.partial_cmp(&b),
            (None, None) if a.datatype() == b.datatype() && a.language() == b.language() => {
                let local = a.datatype().as_str().rsplit('#').next().unwrap_or("").to_owned();
                // dates of four-digit years in one time zone order as text
                let as_text = ["string", "date", "dateTime", "boolean"].contains(&local.as_str());
                (as_text || a == b).then(|| a.value().cmp(b.value()))
            }
            _ => None,
        },
        (a, b) => (a == b).then_some(Ordering::Equal),
    }
}
