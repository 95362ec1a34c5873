//! SELECT, and the tree of a query's solutions.

use super::modifiers::{GroupBy, Modifiers};
use super::{Aggregating, Grouping, Parsed, Parser, Scope};
use crate::error::ErrorCode;
use crate::lexer::{Sign, Span};
use crate::tree::{Expr, GraphPattern, Var, Visitor, walk_expr};

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Duplicates {
    #[default]
    Kept,
    Distinct,
    Reduced,
}

/// The columns of a query.
pub(super) enum Columns {
    /// all variables, as `*`, or as CONSTRUCT and ASK need them
    All {
        may_group: bool,
    },
    Listed(Vec<Column>),
}

pub(super) struct Column {
    pub var: Var,
    pub span: Span,
    pub expr: Option<Expr>,
    /// variables of the expression outside of aggregates, with their places
    pub uses: Vec<(Var, Span)>,
}

pub(super) struct Selection {
    pub duplicates: Duplicates,
    pub columns: Columns,
}

impl Selection {
    pub fn all(may_group: bool) -> Self {
        Self { duplicates: Duplicates::Kept, columns: Columns::All { may_group } }
    }
}

impl Parser<'_> {
    /// A whole SELECT within a group: the pattern and its columns.
    pub(super) fn select(&mut self) -> Parsed<(GraphPattern, Vec<Var>)> {
        let selection = self.select_clause()?;
        let found = self.where_clause()?;
        let modifiers = self.modifiers()?;
        self.solutions(selection, found, modifiers)
    }

    pub(super) fn select_clause(&mut self) -> Parsed<Selection> {
        self.word("SELECT")?;
        self.groupings.push(Grouping::default());
        let duplicates = if self.cursor.takes_word("DISTINCT") {
            Duplicates::Distinct
        } else if self.cursor.takes_word("REDUCED") {
            Duplicates::Reduced
        } else {
            Duplicates::Kept
        };
        if self.cursor.takes(Sign::Star) {
            return Ok(Selection { duplicates, columns: Columns::All { may_group: false } });
        }
        let aggregating = std::mem::replace(&mut self.aggregating, Aggregating::Here);
        let mut columns = Vec::new();
        while let Some(column) = self.column()? {
            columns.push(column);
        }
        self.aggregating = aggregating;
        if columns.is_empty() {
            return self.unexpected();
        }
        Ok(Selection { duplicates, columns: Columns::Listed(columns) })
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
        self.nested(|parser| {
            parser.cursor.advance();
            parser.uses = Some(Vec::new());
            let expr = parser.expr()?;
            let uses = parser.uses.take().unwrap_or_default();
            parser.word("AS")?;
            let span = parser.cursor.span();
            let var = parser.wanted_var()?;
            parser.sign(Sign::CloseParen)?;
            Ok(Some(Column { var, span, expr: Some(expr), uses }))
        })
    }

    pub(super) fn where_clause(&mut self) -> Parsed<(GraphPattern, Scope)> {
        self.cursor.takes_word("WHERE");
        self.group_pattern()
    }

    /// The tree of a query's solutions, and its columns.
    pub(super) fn solutions(
        &mut self,
        selection: Selection,
        (mut pattern, mut scope): (GraphPattern, Scope),
        modifiers: Modifiers,
    ) -> Parsed<(GraphPattern, Vec<Var>)> {
        let aggregates = self.groupings.pop().unwrap_or_default().aggregates;
        let group = modifiers.group.or_else(|| (!aggregates.is_empty()).then(GroupBy::default));
        let is_grouped = group.is_some();
        if let Some(GroupBy { vars, values }) = group {
            for (var, expr) in values {
                pattern = pattern.extended(var, expr);
            }
            scope = vars.iter().copied().chain(aggregates.iter().map(|(var, _)| *var)).collect();
            pattern = GraphPattern::Group { inner: Box::new(pattern), vars, aggregates };
        }
        if let Some(condition) = modifiers.having {
            pattern = GraphPattern::Filter { condition, inner: Box::new(pattern) };
        }
        if let Some(values) = modifiers.values {
            scope.extend(&values.vars);
            pattern = pattern.joined(GraphPattern::Values(values));
        }
        let is_star = matches!(selection.columns, Columns::All { .. });
        let vars = match selection.columns {
            Columns::All { may_group: false } if is_grouped => {
                let span = self.cursor.span();
                let message = "SELECT * cannot stand with GROUP BY: name the columns".to_owned();
                return self.wrong(span, ErrorCode::Ungrouped, message);
            }
            Columns::All { .. } => self.named(&scope),
            Columns::Listed(columns) => self.columns(columns, &mut pattern, scope, is_grouped)?,
        };
        if !modifiers.order.is_empty() {
            pattern = GraphPattern::OrderBy { inner: Box::new(pattern), keys: modifiers.order };
        }
        pattern = GraphPattern::Project { inner: Box::new(pattern), vars: vars.clone(), is_star };
        pattern = match selection.duplicates {
            Duplicates::Kept => pattern,
            Duplicates::Distinct => GraphPattern::Distinct(Box::new(pattern)),
            Duplicates::Reduced => GraphPattern::Reduced(Box::new(pattern)),
        };
        if let Some((start, length)) = modifiers.slice {
            pattern = GraphPattern::Slice { inner: Box::new(pattern), start, length };
        }
        Ok((pattern, vars))
    }

    /// Variables with names, in the order of the text.
    fn named(&self, scope: &Scope) -> Vec<Var> {
        let mut vars: Vec<Var> =
            scope.iter().filter(|var| self.names.name(**var).is_some()).copied().collect();
        vars.sort_unstable();
        vars
    }

    fn columns(
        &mut self,
        columns: Vec<Column>,
        pattern: &mut GraphPattern,
        mut scope: Scope,
        is_grouped: bool,
    ) -> Parsed<Vec<Var>> {
        let mut vars = Vec::with_capacity(columns.len());
        let mut seen = Scope::default();
        for Column { var, span, expr, uses } in columns {
            match expr {
                None if is_grouped && !scope.contains(&var) => return self.ungrouped(var, span),
                None => {}
                Some(_) if scope.contains(&var) => return self.has_value(var, span, "SELECT"),
                Some(expr) => {
                    let mut ungrouped = Ungrouped { scope: &scope, found: None };
                    ungrouped.expr(&expr);
                    if let Some(wrong) = ungrouped.found.filter(|_| is_grouped) {
                        let place = uses.iter().find(|(used, _)| *used == wrong);
                        return self.ungrouped(wrong, place.map_or(span, |(_, place)| *place));
                    }
                    *pattern = std::mem::take(pattern).extended(var, expr);
                    scope.insert(var);
                }
            }
            if !seen.insert(var) {
                let name = self.names.name(var).unwrap_or_default().to_owned();
                return self.wrong(span, ErrorCode::Scope, format!("SELECT names ?{name} twice"));
            }
            vars.push(var);
        }
        Ok(vars)
    }

    fn ungrouped<T>(&mut self, var: Var, span: Span) -> Parsed<T> {
        let name = self.names.name(var).unwrap_or_default().to_owned();
        let message = format!("?{name} is neither grouped nor in an aggregate");
        let hint = format!("add ?{name} to GROUP BY, or take an aggregate such as SAMPLE(?{name})");
        self.hinted(span, ErrorCode::Ungrouped, message, Some(hint))
    }
}

/// The first variable of an expression that a group does not have. BOUND, COALESCE and EXISTS ask
/// whether a variable has a value, so there it may have none.
struct Ungrouped<'a> {
    scope: &'a Scope,
    found: Option<Var>,
}

impl Visitor for Ungrouped<'_> {
    fn expr(&mut self, expr: &Expr) {
        if !matches!(expr, Expr::Bound(_) | Expr::Coalesce(_) | Expr::Exists(_)) {
            walk_expr(self, expr);
        }
    }

    fn var(&mut self, var: Var) {
        if self.found.is_none() && !self.scope.contains(&var) {
            self.found = Some(var);
        }
    }
}
