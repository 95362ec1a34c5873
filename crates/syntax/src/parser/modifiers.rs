//! GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET and the VALUES after them.

use super::{Aggregating, Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Number, Sign};
use crate::tree::{Expr, OrderKey, Values, Var};

/// All that follows on WHERE.
#[derive(Default)]
pub(super) struct Modifiers {
    /// the variables to group by, and the expressions of those that have one
    pub group: Option<Vec<(Var, Option<Expr>)>>,
    pub having: Option<Expr>,
    pub order: Vec<OrderKey>,
    pub slice: Option<(usize, Option<usize>)>,
    pub values: Option<Values>,
}

impl Parser<'_> {
    pub(super) fn modifiers(&mut self) -> Parsed<Modifiers> {
        let mut found = Modifiers::default();
        if self.cursor.takes_word("GROUP") {
            self.word("BY")?;
            found.group = Some(self.group_by()?);
        }
        let aggregating = std::mem::replace(&mut self.unit.aggregating, Aggregating::Here);
        if self.cursor.takes_word("HAVING") {
            let mut having = self.constraint()?;
            while self.begins_constraint() {
                self.branch()?;
                having = having.and(self.constraint()?);
            }
            found.having = Some(having);
        }
        if self.cursor.takes_word("ORDER") {
            self.word("BY")?;
            found.order = self.order_by()?;
        }
        self.unit.aggregating = aggregating;
        found.slice = self.slice()?;
        if self.cursor.takes_word("VALUES") {
            found.values = Some(self.values()?);
        }
        Ok(found)
    }

    fn group_by(&mut self) -> Parsed<Vec<(Var, Option<Expr>)>> {
        let mut found = Vec::new();
        loop {
            let (expr, name) = match self.cursor.kind() {
                Kind::Var => (Expr::Var(self.wanted_var()?), None),
                Kind::Sign(Sign::OpenParen) => self.named_expr(false)?,
                _ if found.is_empty() || self.begins_constraint() => (self.constraint()?, None),
                _ => return Ok(found),
            };
            if !matches!((&expr, &name), (Expr::Var(_), None)) {
                self.link()?;
            }
            found.push(match (expr, name) {
                (Expr::Var(var), None) => (var, None),
                (expr, Some((name, _))) => (name, Some(expr)),
                (expr, None) => (self.fresh_var()?, Some(expr)),
            });
        }
    }

    fn order_by(&mut self) -> Parsed<Vec<OrderKey>> {
        let mut keys = Vec::new();
        loop {
            let direction = self.cursor.takes_one(&["ASC", "DESC"]);
            let expr = match self.cursor.kind() {
                _ if direction.is_some() => self.bracketed()?,
                Kind::Var => Expr::Var(self.wanted_var()?),
                _ if keys.is_empty() || self.begins_constraint() => self.constraint()?,
                _ => return Ok(keys),
            };
            keys.push(OrderKey { expr, is_descending: direction == Some("DESC") });
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
        let text = self.cursor.text();
        if self.cursor.kind() != Kind::Number(Number::Integer) || text.starts_with(['+', '-']) {
            return self.wanted(None, "a whole number");
        }
        let Ok(count) = text.parse() else {
            return self.wrong(self.cursor.span(), ErrorCode::Literal, "the number is too large");
        };
        self.cursor.advance();
        Ok(count)
    }
}
