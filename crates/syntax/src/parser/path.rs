//! Property paths.

use super::{Parsed, Parser};
use crate::lexer::Sign;
use crate::tree::{Path, Slot};

impl Parser<'_> {
    /// Takes a path, if one stands here.
    pub(super) fn path(&mut self) -> Parsed<Option<Path>> {
        self.beside(|parser| {
            parser.path_list(Sign::Pipe, Path::Alternative, |parser| {
                parser.path_list(Sign::Slash, Path::Sequence, Self::path_step)
            })
        })
    }

    /// Takes parts with a sign between them; a part alone is no list.
    fn path_list(
        &mut self,
        between: Sign,
        list: fn(Vec<Path>) -> Path,
        part: impl Fn(&mut Self) -> Parsed<Option<Path>>,
    ) -> Parsed<Option<Path>> {
        let Some(first) = part(self)? else { return Ok(None) };
        if !self.cursor.sees(between) {
            return Ok(Some(first));
        }
        let mut parts = vec![first];
        while self.cursor.takes(between) {
            self.link()?;
            let next = part(self)?;
            parts.push(self.wanted(next, "a path")?);
        }
        Ok(Some(list(parts)))
    }

    fn path_step(&mut self) -> Parsed<Option<Path>> {
        let is_reverse = self.cursor.takes(Sign::Caret);
        let path = match self.path_primary()? {
            None if is_reverse => return self.unexpected(),
            None => return Ok(None),
            Some(path) if self.cursor.takes(Sign::Star) => Path::ZeroOrMore(Box::new(path)),
            Some(path) if self.cursor.takes(Sign::Plus) => Path::OneOrMore(Box::new(path)),
            Some(path) if self.cursor.takes(Sign::Question) => Path::ZeroOrOne(Box::new(path)),
            Some(path) => path,
        };
        Ok(Some(if is_reverse { Path::Reverse(Box::new(path)) } else { path }))
    }

    fn path_primary(&mut self) -> Parsed<Option<Path>> {
        if self.cursor.takes(Sign::Not) {
            return self.negated().map(Some);
        }
        if !self.cursor.sees(Sign::OpenParen) {
            return Ok(self.path_predicate()?.map(Path::Predicate));
        }
        self.nested(|parser| {
            parser.cursor.advance();
            let path = parser.path()?;
            let path = parser.wanted(path, "a path")?;
            parser.sign(Sign::CloseParen)?;
            Ok(Some(path))
        })
    }

    /// Predicates and inverse ones after `!`.
    fn negated(&mut self) -> Parsed<Path> {
        let (mut direct, mut inverse) = (Vec::new(), Vec::new());
        if self.cursor.takes(Sign::OpenParen) {
            if self.cursor.takes(Sign::CloseParen) {
                return Ok(Path::Negated(direct));
            }
            self.negated_step(&mut direct, &mut inverse)?;
            while self.cursor.takes(Sign::Pipe) {
                self.branch()?;
                self.negated_step(&mut direct, &mut inverse)?;
            }
            self.sign(Sign::CloseParen)?;
        } else {
            self.negated_step(&mut direct, &mut inverse)?;
        }
        if inverse.is_empty() {
            return Ok(Path::Negated(direct));
        }
        let inverse = Path::Reverse(Box::new(Path::Negated(inverse)));
        if direct.is_empty() {
            return Ok(inverse);
        }
        Ok(Path::Alternative(vec![Path::Negated(direct), inverse]))
    }

    fn negated_step(&mut self, direct: &mut Vec<Slot>, inverse: &mut Vec<Slot>) -> Parsed<()> {
        let to = if self.cursor.takes(Sign::Caret) { inverse } else { direct };
        let predicate = self.path_predicate()?;
        to.push(self.wanted(predicate, "a predicate")?);
        Ok(())
    }
}
