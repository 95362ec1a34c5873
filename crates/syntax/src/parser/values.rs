//! VALUES: variables and rows of constants.

use std::collections::HashSet;

use super::terms::Rules;
use super::{Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::Sign;
use crate::tree::{Slot, Values};

const NO_VAR: &str = "VALUES has no variables in its rows";
const CONSTANTS: Rules =
    Rules { has_plain_subjects: true, ..Rules::simple(Some(NO_VAR), Some("VALUES has no blank nodes")) };

type Row = Box<[Option<Slot>]>;

impl Parser<'_> {
    /// The variables and rows after VALUES.
    pub(super) fn values(&mut self) -> Parsed<Values> {
        let start = self.cursor.span();
        let is_one = !self.cursor.takes(Sign::OpenParen);
        let mut vars = Vec::new();
        if is_one {
            vars.push(self.wanted_var()?);
        } else {
            let mut seen = HashSet::new();
            while let Some(var) = self.var()? {
                if !seen.insert(var) {
                    let message = format!("VALUES names {} twice", self.name(var));
                    return self.wrong(start, ErrorCode::Scope, message);
                }
                vars.push(var);
            }
            self.sign(Sign::CloseParen)?;
        }
        self.sign(Sign::OpenBrace)?;
        let rows = self.under(CONSTANTS, |parser| parser.rows(vars.len(), is_one))?;
        Ok(Values { vars, rows })
    }

    fn rows(&mut self, width: usize, is_one: bool) -> Parsed<Vec<Row>> {
        let mut rows = Vec::new();
        while !self.cursor.takes(Sign::CloseBrace) {
            if is_one {
                rows.push([self.cell()?].into());
                continue;
            }
            let start = self.cursor.span();
            self.sign(Sign::OpenParen)?;
            let mut row = Vec::with_capacity(width);
            while !self.cursor.takes(Sign::CloseParen) {
                row.push(self.cell()?);
            }
            if row.len() != width {
                let found = row.len();
                let message = format!(
                    "a row of VALUES has {found} values for {width} variables; UNDEF stands for no value"
                );
                return self.wrong(start, ErrorCode::Unexpected, message);
            }
            rows.push(row.into());
        }
        Ok(rows)
    }

    /// An IRI, a literal, a triple term of constants, or UNDEF.
    fn cell(&mut self) -> Parsed<Option<Slot>> {
        if self.cursor.takes_word("UNDEF") {
            return Ok(None);
        }
        let value = self.simple_term()?;
        self.wanted(value, "a value").map(Some)
    }
}
