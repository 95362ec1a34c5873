//! Property paths.

use super::prologue::RDF_TYPE;
use super::{Parsed, Parser};
use crate::lexer::Sign;
use crate::tree::{Path, Slot, Term};

impl Parser<'_> {
    /// Takes a path, if one stands here.
    pub(super) fn path(&mut self) -> Parsed<Option<Path>> {
        let Some(first) = self.path_sequence()? else { return Ok(None) };
        let mut parts = vec![first];
        while self.cursor.takes(Sign::Pipe) {
            self.branch()?;
            match self.path_sequence()? {
                Some(part) => parts.push(part),
                None => return self.unexpected(),
            }
        }
        Ok(Some(one_or(parts, Path::Alternative)))
    }

    fn path_sequence(&mut self) -> Parsed<Option<Path>> {
        let Some(first) = self.path_step()? else { return Ok(None) };
        let mut parts = vec![first];
        while self.cursor.takes(Sign::Slash) {
            self.branch()?;
            match self.path_step()? {
                Some(part) => parts.push(part),
                None => return self.unexpected(),
            }
        }
        Ok(Some(one_or(parts, Path::Sequence)))
    }

    fn path_step(&mut self) -> Parsed<Option<Path>> {
        let is_reverse = self.cursor.takes(Sign::Caret);
        let path = match self.path_primary()? {
            Some(path) => path,
            None if is_reverse => return self.unexpected(),
            None => return Ok(None),
        };
        let path = if self.cursor.takes(Sign::Star) {
            Path::ZeroOrMore(Box::new(path))
        } else if self.cursor.takes(Sign::Plus) {
            Path::OneOrMore(Box::new(path))
        } else if self.cursor.takes(Sign::Question) {
            Path::ZeroOrOne(Box::new(path))
        } else {
            path
        };
        Ok(Some(if is_reverse { Path::Reverse(Box::new(path)) } else { path }))
    }

    fn path_primary(&mut self) -> Parsed<Option<Path>> {
        if self.cursor.takes(Sign::Not) {
            return self.negated().map(Some);
        }
        if self.cursor.sees(Sign::OpenParen) {
            return self.nested(|parser| {
                parser.cursor.advance();
                let Some(path) = parser.path()? else { return parser.unexpected() };
                parser.sign(Sign::CloseParen)?;
                Ok(Some(path))
            });
        }
        Ok(self.path_predicate()?.map(Path::Predicate))
    }

    fn path_predicate(&mut self) -> Parsed<Option<Slot>> {
        if self.takes_a() {
            return Ok(Some(Slot::Term(Term::Iri(RDF_TYPE.into()))));
        }
        self.iri_slot()
    }

    /// Predicates and inverse ones after `!`.
    fn negated(&mut self) -> Parsed<Path> {
        let (mut direct, mut inverse) = (Vec::new(), Vec::new());
        if self.cursor.takes(Sign::OpenParen) {
            loop {
                self.negated_step(&mut direct, &mut inverse)?;
                if !self.cursor.takes(Sign::Pipe) {
                    break;
                }
                self.branch()?;
            }
            self.sign(Sign::CloseParen)?;
        } else {
            self.negated_step(&mut direct, &mut inverse)?;
        }
        let reverse = |inverse| Path::Reverse(Box::new(Path::Negated(inverse)));
        Ok(match (direct.is_empty(), inverse.is_empty()) {
            (_, true) => Path::Negated(direct),
            (true, false) => reverse(inverse),
            (false, false) => Path::Alternative(vec![Path::Negated(direct), reverse(inverse)]),
        })
    }

    fn negated_step(&mut self, direct: &mut Vec<Slot>, inverse: &mut Vec<Slot>) -> Parsed<()> {
        let to = if self.cursor.takes(Sign::Caret) { inverse } else { direct };
        match self.path_predicate()? {
            Some(predicate) => to.push(predicate),
            None => return self.unexpected(),
        }
        Ok(())
    }
}

/// The only part, or a list.
fn one_or(mut parts: Vec<Path>, list: fn(Vec<Path>) -> Path) -> Path {
    match (parts.pop(), parts.is_empty()) {
        (Some(part), true) => part,
        (Some(part), false) => {
            parts.push(part);
            list(parts)
        }
        (None, _) => list(parts),
    }
}
