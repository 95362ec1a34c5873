//! VALUES: variables and rows of constants.

use super::{Parsed, Parser, TermRules, repeated};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign};
use crate::tree::{Slot, Term, TriplePattern, Values};

const CONSTANTS: TermRules = TermRules {
    no_var: Some("VALUES has no variables in its rows"),
    no_blank: Some("VALUES has no blank nodes"),
};

type Row = Box<[Option<Slot>]>;

impl Parser<'_> {
    /// The variables and rows after VALUES.
    pub(super) fn values(&mut self) -> Parsed<Values> {
        let mut vars = Vec::new();
        let start = self.cursor.span();
        let is_one = !self.cursor.takes(Sign::OpenParen);
        if is_one {
            vars.push(self.wanted_var()?);
        } else {
            while let Some(var) = self.var()? {
                vars.push(var);
            }
            self.sign(Sign::CloseParen)?;
        }
        if let Some(var) = repeated(&vars) {
            let name = self.names.name(var).unwrap_or_default().to_owned();
            return self.wrong(start, ErrorCode::Scope, format!("VALUES names ?{name} twice"));
        }
        self.sign(Sign::OpenBrace)?;
        let rules = std::mem::replace(&mut self.rules, CONSTANTS);
        let rows = self.rows(vars.len(), is_one);
        self.rules = rules;
        Ok(Values { vars, rows: rows? })
    }

    fn rows(&mut self, width: usize, is_one: bool) -> Parsed<Vec<Row>> {
        let mut rows = Vec::new();
        while !self.cursor.takes(Sign::CloseBrace) {
            if is_one {
                rows.push(Box::new([self.wanted_cell()?]) as Row);
                continue;
            }
            let start = self.cursor.span();
            self.sign(Sign::OpenParen)?;
            let mut row = Vec::with_capacity(width);
            while !self.cursor.takes(Sign::CloseParen) {
                row.push(self.wanted_cell()?);
            }
            if row.len() != width {
                let message = format!("a row of VALUES has {} values for {width} variables", row.len());
                let hint = "UNDEF stands for no value".to_owned();
                return self.hinted(start, ErrorCode::Unexpected, message, Some(hint));
            }
            rows.push(row.into());
        }
        Ok(rows)
    }

    fn wanted_cell(&mut self) -> Parsed<Option<Slot>> {
        if self.cursor.takes_word("UNDEF") {
            return Ok(None);
        }
        match self.cell()? {
            Some(cell) => Ok(Some(cell)),
            None => self.unexpected(),
        }
    }

    /// Takes an IRI, a literal or a triple term of constants.
    fn cell(&mut self) -> Parsed<Option<Slot>> {
        if self.cursor.kind() == Kind::Sign(Sign::OpenTriple) {
            return self.constant_triple().map(Some);
        }
        match self.iri_slot()? {
            Some(iri) => Ok(Some(iri)),
            None => match self.simple_term()? {
                Some(literal) => Ok(Some(literal)),
                None => {
                    self.cursor.expect("a value");
                    Ok(None)
                }
            },
        }
    }

    fn constant_triple(&mut self) -> Parsed<Slot> {
        let span = self.cursor.span();
        self.first.triple_term.get_or_insert(span);
        self.nested(|parser| {
            parser.cursor.advance();
            let Some(subject) = parser.iri_slot()? else { return parser.unexpected() };
            let predicate = match parser.verb()? {
                Some(verb @ (Slot::Term(Term::Iri(_)) | Slot::Param(_))) => verb,
                _ => return parser.unexpected(),
            };
            let Some(object) = parser.cell()? else { return parser.unexpected() };
            parser.sign(Sign::CloseTriple)?;
            Ok(Slot::Triple(Box::new(TriplePattern { subject, predicate, object })))
        })
    }
}
