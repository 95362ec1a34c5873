//! Columns of SELECT and DESCRIBE.

use super::{Aggregating, Parsed, Parser, Scope};
use crate::error::ErrorCode;
use crate::lexer::{Sign, Span};
use crate::tree::{Expr, GraphPattern, Slot, Var};

/// Columns of a query, and how it treats duplicates.
#[derive(Default)]
pub(super) struct Selection {
    /// DISTINCT or REDUCED
    pub duplicates: Option<fn(Box<GraphPattern>) -> GraphPattern>,
    /// `None`: all variables, as `*`, or as CONSTRUCT and ASK need them
    pub columns: Option<Vec<Column>>,
    /// `*` of SELECT, which cannot be grouped
    pub is_star: bool,
}

pub(super) struct Column {
    pub var: Var,
    pub span: Span,
    pub expr: Option<Expr>,
    /// variables of the expression that need a value, with their places
    pub uses: Vec<(Var, Span)>,
}

impl Parser<'_> {
    /// The columns after SELECT.
    pub(super) fn selection(&mut self) -> Parsed<Selection> {
        let duplicates: Option<fn(_) -> _> = match self.cursor.takes_one(&["DISTINCT", "REDUCED"]) {
            Some("DISTINCT") => Some(GraphPattern::Distinct),
            Some(_) => Some(GraphPattern::Reduced),
            None => None,
        };
        let is_star = self.cursor.takes(Sign::Star);
        let mut selection = Selection { duplicates, columns: None, is_star };
        if !selection.is_star {
            let aggregating = std::mem::replace(&mut self.unit.aggregating, Aggregating::Here);
            selection.columns = Some(self.list_of_columns()?);
            self.unit.aggregating = aggregating;
        }
        Ok(selection)
    }

    /// The variables and IRIs after DESCRIBE.
    pub(super) fn described(&mut self) -> Parsed<(Selection, Vec<Slot>)> {
        let (mut columns, mut named) = (Vec::new(), Vec::new());
        if self.cursor.takes(Sign::Star) {
            return Ok((Selection::default(), named));
        }
        loop {
            let span = self.cursor.span();
            if let Some(var) = self.var()? {
                columns.push(Column { var, span, expr: None, uses: Vec::new() });
                named.push(Slot::Var(var));
            } else if let Some(iri) = self.iri_slot()? {
                named.push(iri);
            } else if named.is_empty() {
                return self.unexpected();
            } else {
                return Ok((Selection { columns: Some(columns), ..Selection::default() }, named));
            }
        }
    }

    /// The columns of a SELECT that names them.
    fn list_of_columns(&mut self) -> Parsed<Vec<Column>> {
        let mut columns = Vec::new();
        while let Some(column) = self.column()? {
            columns.push(column);
        }
        if columns.is_empty() { self.unexpected() } else { Ok(columns) }
    }

    /// Takes a column: a variable, or `( expression AS ?name )`.
    fn column(&mut self) -> Parsed<Option<Column>> {
        let span = self.cursor.span();
        if let Some(var) = self.var()? {
            return Ok(Some(Column { var, span, expr: None, uses: Vec::new() }));
        }
        if !self.cursor.sees(Sign::OpenParen) {
            return Ok(None);
        }
        self.link()?;
        self.unit.uses = Some(Vec::new());
        let (expr, name) = self.named_expr(true)?;
        let (var, span) = self.wanted(name, "AS")?;
        let mut uses = self.unit.uses.take().unwrap_or_default();
        uses.pop(); // the name itself
        Ok(Some(Column { var, span, expr: Some(expr), uses }))
    }

    /// Gives the columns their values; the variables.
    pub(super) fn columns(
        &mut self,
        columns: Vec<Column>,
        pattern: &mut GraphPattern,
        scope: &mut Scope,
        is_grouped: bool,
    ) -> Parsed<Vec<Var>> {
        let mut vars = Vec::with_capacity(columns.len());
        let mut seen = Scope::default();
        for Column { var, span, expr, uses } in columns {
            let mut needed = uses.into_iter().chain(expr.is_none().then_some((var, span)));
            let ungrouped = needed.find(|(var, _)| is_grouped && !scope.vars.contains(var));
            if let Some((var, span)) = ungrouped {
                return self.ungrouped(var, span);
            }
            if let Some(expr) = expr {
                if scope.vars.contains(&var) {
                    return self.has_value(var, span, "SELECT");
                }
                *pattern = std::mem::take(pattern).extended(var, expr);
                scope.define(var);
            }
            if !seen.vars.insert(var) {
                let message = format!("SELECT names {} twice", self.name(var));
                return self.wrong(span, ErrorCode::Scope, message);
            }
            vars.push(var);
        }
        Ok(vars)
    }

    fn ungrouped<T>(&mut self, var: Var, span: Span) -> Parsed<T> {
        let name = self.name(var);
        let message = format!(
            "{name} is neither grouped nor in an aggregate: \
             add {name} to GROUP BY, or take an aggregate such as SAMPLE({name})"
        );
        self.wrong(span, ErrorCode::Ungrouped, message)
    }
}
