//! Functions with keywords for names, and aggregates.

use super::{Aggregating, Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Sign, Span};
use crate::tree::{Aggregate, AggregateFunction, Expr, Function, GraphPattern};

/// The longest name of a function.
const LONGEST_NAME: usize = 14;

impl Parser<'_> {
    /// Takes a call, if the present word is the name of a function.
    pub(super) fn built_in(&mut self) -> Parsed<Option<Expr>> {
        let span = self.cursor.span();
        if span.end - span.start > LONGEST_NAME {
            return Ok(None);
        }
        let name = self.cursor.text().to_ascii_uppercase();
        if let Some(call) = self.special(&name)? {
            return Ok(Some(call));
        }
        if let Some(function) = aggregate_function(&name) {
            return self.aggregate(function, span).map(Some);
        }
        let name = match name.as_str() {
            "URI" => "IRI",
            "ISURI" => "ISIRI",
            name => name,
        };
        let Ok(found) = Function::ALL.binary_search_by_key(&name, |function| function.0) else {
            return Ok(None);
        };
        let (name, function, least, most) = &Function::ALL[found];
        self.cursor.advance();
        let arguments = self.called_with(span, name, *least, *most)?;
        Ok(Some(Expr::Call(function.clone(), arguments)))
    }

    /// Functions that are expressions of their own.
    fn special(&mut self, name: &str) -> Parsed<Option<Expr>> {
        let span = self.cursor.span();
        Ok(Some(match name {
            "BOUND" => {
                self.cursor.advance();
                self.sign(Sign::OpenParen)?;
                let var = self.wanted_var()?;
                self.sign(Sign::CloseParen)?;
                Expr::Bound(var)
            }
            "IF" => {
                self.cursor.advance();
                let parts = <[Expr; 3]>::try_from(self.called_with(span, "IF", 3, 3)?);
                match parts {
                    Ok(parts) => Expr::If(Box::new(parts)),
                    Err(_) => return self.unexpected(),
                }
            }
            "COALESCE" => {
                self.cursor.advance();
                Expr::Coalesce(self.arguments()?)
            }
            "SAMETERM" => {
                self.cursor.advance();
                match <[Expr; 2]>::try_from(self.called_with(span, "sameTerm", 2, 2)?) {
                    Ok(pair) => Expr::SameTerm(Box::new(pair)),
                    Err(_) => return self.unexpected(),
                }
            }
            "EXISTS" => {
                self.cursor.advance();
                Expr::Exists(Box::new(self.existing()?))
            }
            "NOT" => {
                self.cursor.advance();
                self.word("EXISTS")?;
                Expr::Not(Box::new(Expr::Exists(Box::new(self.existing()?))))
            }
            _ => return Ok(None),
        }))
    }

    /// The group of EXISTS. Its variables and aggregates are its own.
    fn existing(&mut self) -> Parsed<GraphPattern> {
        let uses = self.uses.take();
        let aggregating = std::mem::replace(&mut self.aggregating, Aggregating::Never);
        let pattern = self.labels.pattern;
        let group = self.group_pattern();
        // A filter does not end the pattern that it stands in.
        self.labels.pattern = pattern;
        (self.uses, self.aggregating) = (uses, aggregating);
        Ok(group?.0)
    }

    /// Arguments, of a right number.
    fn called_with(&mut self, span: Span, name: &str, least: usize, most: usize) -> Parsed<Vec<Expr>> {
        let arguments = self.arguments()?;
        if !(least..=most).contains(&arguments.len()) {
            let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let noun = if most == 1 { "argument" } else { "arguments" };
            let message = format!("{name} has {wanted} {noun}, here {}", arguments.len());
            return self.wrong(span, ErrorCode::Unexpected, message);
        }
        Ok(arguments)
    }

    fn aggregate(&mut self, function: AggregateFunction, span: Span) -> Parsed<Expr> {
        match self.aggregating {
            Aggregating::Here => {}
            Aggregating::Inside => {
                let message = "an aggregate cannot stand within another".to_owned();
                return self.wrong(span, ErrorCode::Aggregate, message);
            }
            Aggregating::Never => {
                let message = "an aggregate can stand in SELECT, HAVING and ORDER BY alone".to_owned();
                return self.wrong(span, ErrorCode::Aggregate, message);
            }
        }
        self.cursor.advance();
        let uses = self.uses.take();
        self.aggregating = Aggregating::Inside;
        let aggregate = self.nested(|parser| parser.aggregate_body(function));
        self.aggregating = Aggregating::Here;
        self.uses = uses;
        self.aggregated(aggregate?)
    }

    fn aggregate_body(&mut self, function: AggregateFunction) -> Parsed<Aggregate> {
        self.sign(Sign::OpenParen)?;
        let is_distinct = self.cursor.takes_word("DISTINCT");
        let argument = match function == AggregateFunction::Count && self.cursor.takes(Sign::Star) {
            true => None,
            false => Some(self.expr()?),
        };
        let mut function = function;
        if matches!(function, AggregateFunction::GroupConcat(_)) && self.cursor.takes(Sign::Semicolon) {
            self.word("SEPARATOR")?;
            self.sign(Sign::Equal)?;
            function = AggregateFunction::GroupConcat(Some(self.plain_string("a string")?));
        }
        self.sign(Sign::CloseParen)?;
        Ok(Aggregate { function, is_distinct, argument })
    }

    /// The variable of an aggregate: one for equal ones.
    fn aggregated(&mut self, aggregate: Aggregate) -> Parsed<Expr> {
        if let Some(var) = self.groupings.last().and_then(|grouping| grouping.vars.get(&aggregate)) {
            return Ok(Expr::Var(*var));
        }
        let var = self.fresh_var()?;
        if let Some(grouping) = self.groupings.last_mut() {
            grouping.vars.insert(aggregate.clone(), var);
            grouping.aggregates.push((var, aggregate));
        }
        Ok(Expr::Var(var))
    }

    /// A variable without a name.
    pub(super) fn fresh_var(&mut self) -> Parsed<crate::tree::Var> {
        let var = self.names.fresh();
        if self.names.len() > self.options.limits.variables {
            return self.too_much("query_variables", self.options.limits.variables);
        }
        Ok(var)
    }
}

fn aggregate_function(name: &str) -> Option<AggregateFunction> {
    Some(match name {
        "COUNT" => AggregateFunction::Count,
        "SUM" => AggregateFunction::Sum,
        "MIN" => AggregateFunction::Min,
        "MAX" => AggregateFunction::Max,
        "AVG" => AggregateFunction::Avg,
        "SAMPLE" => AggregateFunction::Sample,
        "GROUP_CONCAT" => AggregateFunction::GroupConcat(None),
        _ => return None,
    })
}
