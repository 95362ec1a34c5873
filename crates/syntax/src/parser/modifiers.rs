//! GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET and the VALUES after them.

use super::{Aggregating, Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Number, Sign};
use crate::tree::{Expr, OrderKey, Values, Var};

/// All that follows on WHERE.
#[derive(Default)]
pub(super) struct Modifiers {
    pub group: Option<GroupBy>,
    pub having: Option<Expr>,
    pub order: Vec<OrderKey>,
    pub slice: Option<(usize, Option<usize>)>,
    pub values: Option<Values>,
}

/// The variables to group by, and the expressions of those that have one.
#[derive(Default)]
pub(super) struct GroupBy {
    pub vars: Vec<Var>,
    pub values: Vec<(Var, Expr)>,
}

impl Parser<'_> {
    pub(super) fn modifiers(&mut self) -> Parsed<Modifiers> {
        let mut found = Modifiers::default();
        if self.cursor.takes_word("GROUP") {
            self.word("BY")?;
            found.group = Some(self.group_by()?);
        }
        let aggregating = std::mem::replace(&mut self.aggregating, Aggregating::Here);
        if self.cursor.takes_word("HAVING") {
            found.having = Some(self.having()?);
        }
        if self.cursor.takes_word("ORDER") {
            self.word("BY")?;
            found.order = self.order_by()?;
        }
        self.aggregating = aggregating;
        found.slice = self.slice()?;
        if self.cursor.takes_word("VALUES") {
            found.values = Some(self.values()?);
        }
        Ok(found)
    }

    fn group_by(&mut self) -> Parsed<GroupBy> {
        let mut found = GroupBy::default();
        loop {
            let (expr, name) = match self.cursor.kind() {
                Kind::Var => (Expr::Var(self.wanted_var()?), None),
                Kind::Sign(Sign::OpenParen) => self.named_expr()?,
                _ if found.vars.is_empty() || self.begins_constraint() => (self.constraint()?, None),
                _ => return Ok(found),
            };
            match (expr, name) {
                (Expr::Var(var), None) => found.vars.push(var),
                (expr, name) => {
                    let var = match name {
                        Some(name) => name,
                        None => self.fresh_var()?,
                    };
                    found.vars.push(var);
                    found.values.push((var, expr));
                }
            }
        }
    }

    /// `( expression )` or `( expression AS ?name )`
    fn named_expr(&mut self) -> Parsed<(Expr, Option<Var>)> {
        self.nested(|parser| {
            parser.sign(Sign::OpenParen)?;
            let expr = parser.expr()?;
            let name = if parser.cursor.takes_word("AS") { Some(parser.wanted_var()?) } else { None };
            parser.sign(Sign::CloseParen)?;
            Ok((expr, name))
        })
    }

    /// Whether a constraint goes on a list: a bracket, a function, but no keyword of a clause.
    fn begins_constraint(&mut self) -> bool {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenParen) | Kind::Iri | Kind::Name => true,
            Kind::Word => {
                const CLAUSES: [&str; 6] = ["HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES", "GROUP"];
                let text = self.cursor.text();
                let is_clause = CLAUSES.iter().any(|clause| clause.eq_ignore_ascii_case(text));
                if is_clause {
                    return false;
                }
                crate::tree::Function::is_keyword(text)
            }
            _ => false,
        }
    }

    fn having(&mut self) -> Parsed<Expr> {
        let mut all = vec![self.constraint()?];
        while self.begins_constraint() {
            self.branch()?;
            all.push(self.constraint()?);
        }
        match (all.len(), all.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                all.extend(last);
                Ok(Expr::And(all))
            }
        }
    }

    fn order_by(&mut self) -> Parsed<Vec<OrderKey>> {
        let mut keys = Vec::new();
        loop {
            let (expr, is_descending) = if self.cursor.takes_word("ASC") {
                (self.bracketed()?, false)
            } else if self.cursor.takes_word("DESC") {
                (self.bracketed()?, true)
            } else if self.cursor.kind() == Kind::Var {
                (Expr::Var(self.wanted_var()?), false)
            } else if keys.is_empty() || self.begins_constraint() {
                (self.constraint()?, false)
            } else {
                return Ok(keys);
            };
            keys.push(OrderKey { expr, is_descending });
        }
    }

    /// LIMIT and OFFSET in either order.
    fn slice(&mut self) -> Parsed<Option<(usize, Option<usize>)>> {
        let (mut start, mut length) = (None, None);
        for _ in 0..2 {
            if length.is_none() && self.cursor.takes_word("LIMIT") {
                length = Some(self.count()?);
            } else if start.is_none() && self.cursor.takes_word("OFFSET") {
                start = Some(self.count()?);
            }
        }
        Ok((start.is_some() || length.is_some()).then(|| (start.unwrap_or(0), length)))
    }

    fn count(&mut self) -> Parsed<usize> {
        let span = self.cursor.span();
        let text = self.cursor.text();
        if self.cursor.kind() != Kind::Number(Number::Integer) || text.starts_with(['+', '-']) {
            self.cursor.expect("a whole number");
            return self.unexpected();
        }
        match text.parse() {
            Ok(count) => {
                self.cursor.number();
                Ok(count)
            }
            Err(_) => self.wrong(span, ErrorCode::Literal, "the number is too large".to_owned()),
        }
    }
}
