//! Functions with keywords for names, and aggregates.

use super::{Aggregating, Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{Aggregate, AggregateFunction, Expr, Function};

impl Parser<'_> {
    /// Whether a call of a function or an aggregate begins here.
    pub(super) fn begins_call(&self) -> bool {
        let text = self.cursor.text();
        self.cursor.kind() == Kind::Word
            && (Function::of(text).is_some()
                || AggregateFunction::named(text).is_some()
                || self.cursor.is_word(&["EXISTS", "NOT"]))
    }

    /// Takes a call, if the present word is the name of a function.
    pub(super) fn built_in(&mut self) -> Parsed<Option<Expr>> {
        let span = self.cursor.span();
        if self.cursor.is_word(&["NOT"]) {
            self.cursor.advance();
            self.word("EXISTS")?;
            return Ok(Some(self.existing()?.negated()));
        }
        if self.cursor.is_word(&["EXISTS"]) {
            self.cursor.advance();
            return self.existing().map(Some);
        }
        if let Some(function) = AggregateFunction::named(self.cursor.text()) {
            return self.aggregate(function, span).map(Some);
        }
        let Some(function) = Function::of(self.cursor.text()) else { return Ok(None) };
        self.cursor.advance();
        // These ask whether a variable has a value, so a group need not give it one.
        let needs_none = matches!(function, Function::Bound | Function::Coalesce);
        let uses = if needs_none { self.unit.uses.take() } else { None };
        let arguments = match function {
            Function::Bound => self.bound()?,
            _ => self.arguments()?,
        };
        if needs_none {
            self.unit.uses = uses;
        }
        self.check_arity(function, arguments.len(), span)?;
        Ok(Some(Expr::Call(function, arguments)))
    }

    /// The group of EXISTS.
    fn existing(&mut self) -> Parsed<Expr> {
        self.count_exists()?;
        let pattern = self.labels.pattern;
        let group = self.group_pattern();
        // A filter does not end the pattern that it stands in.
        self.labels.pattern = pattern;
        Ok(Expr::Exists(Box::new(group?.0)))
    }

    /// `( variable )`
    fn bound(&mut self) -> Parsed<Vec<Expr>> {
        self.sign(Sign::OpenParen)?;
        let var = self.wanted_var()?;
        self.sign(Sign::CloseParen)?;
        Ok(vec![Expr::Var(var)])
    }

    fn check_arity(&mut self, function: Function, found: usize, span: Span) -> Parsed<()> {
        let arity = function.arity();
        if arity.contains(&found) {
            return Ok(());
        }
        let (name, least, most) = (function.text(), arity.start(), arity.end());
        let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let noun = if *most == 1 { "argument" } else { "arguments" };
        self.wrong(span, ErrorCode::Unexpected, format!("{name} has {wanted} {noun}, here {found}"))
    }

    /// The variable of an aggregate: one for equal ones.
    fn aggregate(&mut self, function: AggregateFunction, span: Span) -> Parsed<Expr> {
        match self.unit.aggregating {
            Aggregating::Here => {}
            Aggregating::Inside => {
                return self.wrong(span, ErrorCode::Aggregate, "an aggregate cannot stand within another");
            }
            Aggregating::Never => {
                let message = "an aggregate can stand in SELECT, HAVING and ORDER BY alone";
                return self.wrong(span, ErrorCode::Aggregate, message);
            }
        }
        self.cursor.advance();
        let uses = self.unit.uses.take();
        self.unit.aggregating = Aggregating::Inside;
        let aggregate = self.nested(|parser| parser.aggregate_body(function));
        self.unit.aggregating = Aggregating::Here;
        self.unit.uses = uses;
        let aggregate = aggregate?;
        if let Some(var) = self.unit.groupings.last().and_then(|grouping| grouping.get(&aggregate)) {
            return Ok(Expr::Var(*var));
        }
        let var = self.fresh_var()?;
        if let Some(grouping) = self.unit.groupings.last_mut() {
            grouping.insert(aggregate, var);
        }
        Ok(Expr::Var(var))
    }

    fn aggregate_body(&mut self, function: AggregateFunction) -> Parsed<Aggregate> {
        self.sign(Sign::OpenParen)?;
        let is_distinct = self.cursor.takes_word("DISTINCT");
        let is_star = function == AggregateFunction::Count && self.cursor.takes(Sign::Star);
        let argument = if is_star { None } else { Some(self.expr()?) };
        let mut separator = None;
        if function == AggregateFunction::GroupConcat && self.cursor.takes(Sign::Semicolon) {
            self.word("SEPARATOR")?;
            self.sign(Sign::Equal)?;
            separator = Some(self.plain_string()?);
        }
        self.sign(Sign::CloseParen)?;
        Ok(Aggregate { function, is_distinct, argument, separator })
    }
}
