//! The four forms of queries, and the tree of a query's solutions.

use super::errors::{FORMS, OPERATIONS};
use super::group::scope_of;
use super::modifiers::Modifiers;
use super::select::Selection;
use super::terms::Rules;
use super::{Grouping, Parsed, Parser, Scope, Unit};
use crate::error::ErrorCode;
use crate::lexer::Sign;
use crate::tree::{Dataset, Expr, GraphPattern, Query, QueryForm, TriplePattern, Var};

impl Parser<'_> {
    /// A whole text.
    pub fn query(&mut self) -> Parsed<Query> {
        let parsed = self.whole_query();
        self.finished(parsed)
    }

    fn whole_query(&mut self) -> Parsed<Query> {
        self.set_base()?;
        self.prologue()?;
        let Some(word) = self.cursor.takes_one(&FORMS) else {
            return self.no_beginning(&OPERATIONS, "this is an update, not a query");
        };
        self.unit.groupings.push(Grouping::new());
        let mut selection = Selection::default();
        let mut form = match word {
            "SELECT" => QueryForm::Select,
            "DESCRIBE" => QueryForm::Describe(Vec::new()),
            "ASK" => QueryForm::Ask,
            _ => QueryForm::Construct(Vec::new()),
        };
        let is_short = word == "CONSTRUCT" && !self.cursor.sees(Sign::OpenBrace);
        match &mut form {
            QueryForm::Select => selection = self.selection()?,
            QueryForm::Describe(named) => (selection, *named) = self.described()?,
            QueryForm::Construct(template) if !is_short => {
                *template = self.template(Rules::template(None))?;
                // Labels of the template are its own.
                self.labels.patterns.clear();
            }
            QueryForm::Construct(_) | QueryForm::Ask => {}
        }
        let dataset = self.dataset("FROM")?;
        let found = match &mut form {
            QueryForm::Construct(template) if is_short => {
                self.word("WHERE")?;
                *template = self.template(Rules::simple(None, None))?;
                let pattern = GraphPattern::Bgp(template.clone());
                let scope = scope_of(&pattern);
                (pattern, scope)
            }
            QueryForm::Describe(_) if !self.begins_where() => Default::default(),
            _ => self.where_clause()?,
        };
        let modifiers = self.modifiers()?;
        // Before the rules of grouping: a misspelt GROUP BY is told as such.
        self.end()?;
        let (pattern, _) = self.solutions(selection, found, modifiers)?;
        let base = self.base.as_ref().map(|base| base.as_str().into());
        let (version, names) = (self.version.take(), std::mem::take(&mut self.unit.names));
        let Unit { first, measure, .. } = self.unit;
        Ok(Query { form, dataset, pattern, base, version, names, first, measure })
    }

    /// SELECT within a group: the pattern and its columns.
    pub(super) fn sub_select(&mut self) -> Parsed<(GraphPattern, Scope)> {
        self.word("SELECT")?;
        self.unit.groupings.push(Grouping::new());
        let selection = self.selection()?;
        let found = self.where_clause()?;
        let modifiers = self.modifiers()?;
        if !self.cursor.sees(Sign::CloseBrace) {
            return self.unexpected();
        }
        self.solutions(selection, found, modifiers)
    }

    /// `{ triples }`
    fn template(&mut self, rules: Rules) -> Parsed<Vec<TriplePattern>> {
        self.sign(Sign::OpenBrace)?;
        self.labels.next_pattern();
        let triples = self.under(rules, Self::simple_triples)?;
        self.sign(Sign::CloseBrace)?;
        self.labels.next_pattern();
        Ok(triples)
    }

    /// FROM or USING, as often as it stands here.
    pub(super) fn dataset(&mut self, word: &'static str) -> Parsed<Option<Dataset>> {
        let (mut default, mut named) = (Vec::new(), Vec::new());
        while self.cursor.takes_word(word) {
            let to = if self.cursor.takes_word("NAMED") { &mut named } else { &mut default };
            to.push(self.iri()?);
        }
        let is_given = !default.is_empty() || !named.is_empty();
        Ok(is_given.then_some(Dataset { default, named: Some(named) }))
    }

    fn begins_where(&mut self) -> bool {
        self.cursor.sees_word("WHERE") || self.cursor.sees(Sign::OpenBrace)
    }

    fn where_clause(&mut self) -> Parsed<(GraphPattern, Scope)> {
        self.cursor.takes_word("WHERE");
        self.group_pattern()
    }

    /// The tree of a query's solutions, and its columns.
    fn solutions(
        &mut self,
        selection: Selection,
        (mut pattern, mut scope): (GraphPattern, Scope),
        modifiers: Modifiers,
    ) -> Parsed<(GraphPattern, Scope)> {
        let grouping = self.unit.groupings.pop().unwrap_or_default();
        let group = modifiers.group.or_else(|| (!grouping.is_empty()).then(Vec::new));
        let is_grouped = group.is_some();
        if let Some(group) = group {
            (pattern, scope) = grouped(pattern, scope, group, grouping);
        }
        if let Some(condition) = modifiers.having {
            pattern = GraphPattern::Filter { condition, inner: Box::new(pattern) };
        }
        if let Some(values) = modifiers.values {
            values.vars.iter().for_each(|var| scope.define(*var));
            pattern = pattern.joined(GraphPattern::Values(values));
        }
        if selection.is_star && is_grouped {
            let message = "SELECT * cannot stand with GROUP BY: name the columns";
            return self.wrong(self.cursor.span(), ErrorCode::Ungrouped, message);
        }
        let is_star = selection.columns.is_none();
        let vars = match selection.columns {
            Some(columns) => self.columns(columns, &mut pattern, &mut scope, is_grouped)?,
            None => self.named(&scope),
        };
        if !modifiers.order.is_empty() {
            pattern = GraphPattern::OrderBy { inner: Box::new(pattern), keys: modifiers.order };
        }
        let scope = seen(scope, &vars);
        pattern = GraphPattern::Project { inner: Box::new(pattern), vars, is_star };
        if let Some(without) = selection.duplicates {
            pattern = without(Box::new(pattern));
        }
        if let Some((start, length)) = modifiers.slice {
            pattern = GraphPattern::Slice { inner: Box::new(pattern), start, length };
        }
        Ok((pattern, scope))
    }

    /// Variables with names, in the order of the text.
    fn named(&self, scope: &Scope) -> Vec<Var> {
        let has_name = |var: &Var| self.unit.names.name(*var).is_some();
        let mut vars: Vec<Var> = scope.vars.iter().copied().filter(has_name).collect();
        vars.sort_unstable();
        vars
    }
}

/// Some variables of a scope.
fn seen(scope: Scope, vars: &[Var]) -> Scope {
    let defined = vars.iter().filter(|var| scope.defined.contains(*var)).copied().collect();
    Scope { vars: vars.iter().copied().collect(), defined }
}

/// A pattern as groups: their variables and aggregates.
fn grouped(
    mut pattern: GraphPattern,
    mut scope: Scope,
    group: Vec<(Var, Option<Expr>)>,
    grouping: Grouping,
) -> (GraphPattern, Scope) {
    let vars: Vec<Var> = group.iter().map(|(var, _)| *var).collect();
    for (var, expr) in group {
        if let Some(expr) = expr {
            scope.define(var);
            pattern = pattern.extended(var, expr);
        }
    }
    let mut scope = seen(scope, &vars);
    let mut aggregates: Vec<_> = grouping.into_iter().map(|(aggregate, var)| (var, aggregate)).collect();
    // Their variables follow the order of the text.
    aggregates.sort_unstable_by_key(|(var, _)| *var);
    aggregates.iter().for_each(|(var, _)| scope.define(*var));
    (GraphPattern::Group { inner: Box::new(pattern), vars, aggregates }, scope)
}
