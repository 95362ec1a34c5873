//! The four forms of queries.

use super::select::{Column, Columns, Duplicates, Selection};
use super::{Grouping, Parsed, Parser, Scope};
use crate::lexer::Sign;
use crate::tree::{Dataset, Expr, GraphPattern, Query, QueryForm, Slot, TriplePattern, Var, Visitor};

impl Parser<'_> {
    /// A whole text.
    pub fn query(&mut self) -> Result<Query, Box<crate::SyntaxError>> {
        let parsed = self.whole_query();
        self.finished(parsed)
    }

    fn whole_query(&mut self) -> Parsed<Query> {
        self.set_base()?;
        self.prologue()?;
        let query = if self.cursor.sees_word("SELECT") {
            self.select_query()
        } else if self.cursor.takes_word("CONSTRUCT") {
            self.construct_query()
        } else if self.cursor.takes_word("DESCRIBE") {
            self.describe_query()
        } else if self.cursor.takes_word("ASK") {
            self.ask_query()
        } else {
            self.no_beginning(true)
        }?;
        self.end()?;
        Ok(query)
    }

    fn made(&mut self, form: QueryForm, dataset: Option<Dataset>, pattern: GraphPattern) -> Query {
        Query {
            form,
            dataset,
            pattern,
            base: self.base.as_ref().map(|base| base.as_str().into()),
            version: self.version.take(),
            names: std::mem::take(&mut self.names),
            first: self.first,
        }
    }

    fn select_query(&mut self) -> Parsed<Query> {
        let selection = self.select_clause()?;
        let dataset = self.dataset("FROM")?;
        let found = self.where_clause()?;
        let modifiers = self.modifiers()?;
        let (pattern, _) = self.solutions(selection, found, modifiers)?;
        Ok(self.made(QueryForm::Select, dataset, pattern))
    }

    fn ask_query(&mut self) -> Parsed<Query> {
        self.groupings.push(Grouping::default());
        let dataset = self.dataset("FROM")?;
        let found = self.where_clause()?;
        let modifiers = self.modifiers()?;
        let (pattern, _) = self.solutions(Selection::all(true), found, modifiers)?;
        Ok(self.made(QueryForm::Ask, dataset, pattern))
    }

    fn construct_query(&mut self) -> Parsed<Query> {
        self.groupings.push(Grouping::default());
        if self.cursor.sees(Sign::OpenBrace) {
            let template = self.template()?;
            // Labels of the template are its own.
            self.labels.patterns.clear();
            let dataset = self.dataset("FROM")?;
            let found = self.where_clause()?;
            let modifiers = self.modifiers()?;
            let (pattern, _) = self.solutions(Selection::all(true), found, modifiers)?;
            return Ok(self.made(QueryForm::Construct(template), dataset, pattern));
        }
        let dataset = self.dataset("FROM")?;
        self.word("WHERE")?;
        let template = self.template()?;
        let pattern = GraphPattern::Bgp(template.clone());
        let mut vars = AllVars(Scope::default());
        vars.pattern(&pattern);
        let modifiers = self.modifiers()?;
        let (pattern, _) = self.solutions(Selection::all(true), (pattern, vars.0), modifiers)?;
        Ok(self.made(QueryForm::Construct(template), dataset, pattern))
    }

    /// `{ triples }`
    fn template(&mut self) -> Parsed<Vec<TriplePattern>> {
        self.sign(Sign::OpenBrace)?;
        self.labels.next_pattern();
        let mut parts = Vec::new();
        self.template_triples(&mut parts)?;
        self.sign(Sign::CloseBrace)?;
        self.labels.next_pattern();
        self.simple(parts)
    }

    fn describe_query(&mut self) -> Parsed<Query> {
        self.groupings.push(Grouping::default());
        let selection = match self.cursor.takes(Sign::Star) {
            true => Selection::all(true),
            false => self.described()?,
        };
        let dataset = self.dataset("FROM")?;
        let has_where = self.cursor.sees_word("WHERE") || self.cursor.sees(Sign::OpenBrace);
        let found = if has_where { self.where_clause()? } else { Default::default() };
        let modifiers = self.modifiers()?;
        let (pattern, _) = self.solutions(selection, found, modifiers)?;
        Ok(self.made(QueryForm::Describe, dataset, pattern))
    }

    /// Variables and IRIs to be described.
    fn described(&mut self) -> Parsed<Selection> {
        let mut columns = Vec::new();
        loop {
            let span = self.cursor.span();
            let (var, expr) = match self.var()? {
                Some(var) => (var, None),
                None => match self.iri_slot()? {
                    Some(Slot::Term(term)) => (self.fresh_var()?, Some(Expr::Const(term))),
                    Some(Slot::Param(number)) => (self.fresh_var()?, Some(Expr::Param(number))),
                    _ if columns.is_empty() => return self.unexpected(),
                    _ => break,
                },
            };
            columns.push(Column { var, span, expr, uses: Vec::new() });
        }
        Ok(Selection { duplicates: Duplicates::Kept, columns: Columns::Listed(columns) })
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
}

/// All variables.
struct AllVars(Scope);

impl Visitor for AllVars {
    fn var(&mut self, var: Var) {
        self.0.insert(var);
    }
}
