//! The shape of a text: its tokens without the constants.
//!
//! Texts of one shape have one tree but for the terms of their constants, so a plan is made once
//! for each shape. The key of a shape hashes the tokens; equal constants have one number.
//!
//! Constants of the shape are, as the key must not depend on more than the text:
//!
//! * full IRIs that have a scheme and no dot segments, but not those of PREFIX, BASE, FROM and
//!   datatypes, and not the names of functions;
//! * strings in single quotes of either kind, with their language or full datatype;
//! * numbers without a sign, but not those of LIMIT and OFFSET.
//!
//! All other tokens are a part of the key, variables with their names and keywords in upper case.
//! The base IRI from outside of the text and the options of a query are not: a cache adds them.

mod cursor;

use std::collections::HashMap;

use twox_hash::XxHash3_128;

use crate::lexer::{Kind, Lexer, Sign, Window};
use crate::tree::Term;

pub(crate) use cursor::{Constant, Cursor, Datatype};

/// The shape of a text and its constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Equal for texts of equal shape.
    pub key: u128,
    /// The constants: [`Expr::Param`](crate::tree::Expr::Param) n stands for the n-th.
    pub params: Vec<Term>,
}

/// The shape of a query's text without its tree: one pass over the tokens. `None` where a token is
/// wrong; a text that is no query may have a shape, which is that of no query.
#[must_use]
pub fn shape_of(text: &str) -> Option<Shape> {
    let mut cursor = Cursor::new(Lexer::new(Window::whole(text, usize::MAX)), Some(Shaper::default()));
    loop {
        match cursor.kind() {
            Kind::End => return cursor.shape(),
            Kind::Bad(_) => return None,
            Kind::Iri => drop(cursor.iri()?),
            Kind::Str => drop(cursor.string()?),
            Kind::Number(_) => drop(cursor.number()),
            _ => cursor.advance(),
        }
    }
}

/// Which tokens stay in the shape because of the ones before.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Kept {
    #[default]
    Nothing,
    Iri,
    Number,
    Str,
}

/// Makes a shape of tokens.
#[derive(Default)]
pub(crate) struct Shaper {
    hash: XxHash3_128,
    params: Vec<Term>,
    numbers: HashMap<Term, u32>,
    kept: Kept,
}

impl Shaper {
    /// Takes a token that is no constant.
    fn token(&mut self, kind: Kind, text: &str) {
        let (tag, next) = match kind {
            Kind::Word => (1, self.after_word(text)),
            Kind::Var => (2, Kept::Nothing),
            Kind::Name if text.ends_with(':') => (3, self.kept),
            Kind::Sign(Sign::Equal) => (4, self.kept),
            _ => (4, Kept::Nothing),
        };
        self.kept = next;
        self.hash.write(&[tag]);
        match kind {
            Kind::Word if text.len() > 1 => self.hash.write(text.to_ascii_uppercase().as_bytes()),
            Kind::Var => self.hash.write(&text.as_bytes()[1..]),
            _ => self.hash.write(text.as_bytes()),
        }
        self.hash.write(&[0]);
    }

    fn after_word(&self, word: &str) -> Kept {
        let is_one_of = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        if is_one_of(&["PREFIX", "BASE", "FROM", "USING"]) || self.kept == Kept::Iri && is_one_of(&["NAMED"])
        {
            Kept::Iri
        } else if is_one_of(&["LIMIT", "OFFSET"]) {
            Kept::Number
        } else if is_one_of(&["SEPARATOR", "VERSION"]) {
            Kept::Str
        } else {
            Kept::Nothing
        }
    }

    /// Takes a constant; its number.
    fn constant(&mut self, tag: u8, term: Term) -> u32 {
        self.kept = Kept::Nothing;
        let next = u32::try_from(self.params.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(term).or_insert_with_key(|term| {
            self.params.push(term.clone());
            next
        });
        self.hash.write(&[tag]);
        self.hash.write(&number.to_le_bytes());
        number
    }

    fn finish(self) -> Shape {
        Shape { key: self.hash.finish_128(), params: self.params }
    }
}

#[cfg(test)]
mod tests;
