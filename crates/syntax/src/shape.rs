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
//!
//! The hash is XXH3 with a seed of the process, so that clients cannot choose texts of one key.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use snowmelt_base::iri::scheme;
use twox_hash::XxHash3_128;

use crate::lexer::{Kind, Lexer, Sign, Span, Token, Window, iri_text, string_text};
use crate::tree::{Literal, Term};

static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(()));

/// The shape of a text and its constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Equal for texts of equal shape, in this process.
    pub key: u128,
    /// The constants: [`Expr::Param`](crate::tree::Expr::Param) n stands for the n-th.
    pub params: Vec<Term>,
    /// Where they stand, in the order of the text.
    places: Vec<(Span, u32)>,
    /// bytes of the text
    bytes: usize,
}

impl Shape {
    /// The shape of this text alone: all of it is in the key, nothing is a parameter.
    #[must_use]
    pub fn whole(text: &str) -> Self {
        let mut hash = XxHash3_128::with_seed(*SEED);
        hash.write(b"t");
        hash.write(text.as_bytes());
        Self { key: hash.finish_128(), params: Vec::new(), places: Vec::new(), bytes: text.len() }
    }

    /// The places of the constants, in the text that the shape was made of.
    pub(crate) fn places_in(&self, text: &str) -> &[(Span, u32)] {
        assert_eq!(text.len(), self.bytes, "the shape is that of another text");
        &self.places
    }
}

/// The shape of a query's text: one pass over the tokens. `None` where a token is wrong; a text
/// that is no query may have a shape, which is that of no query.
#[must_use]
pub fn shape_of(text: &str) -> Option<Shape> {
    let mut lexer = Lexer::new(Window::whole(text, usize::MAX));
    let ahead = [lexer.next(), lexer.next(), lexer.next()];
    let mut shaper = Shaper { text, lexer, ahead, kept: Kept::Nothing, hash: XxHash3_128::with_seed(*SEED) };
    let (mut params, mut places) = (Vec::new(), Vec::new());
    let mut numbers = HashMap::<Term, u32>::new();
    loop {
        match shaper.ahead[0].kind {
            Kind::End => {
                let key = shaper.hash.finish_128();
                return Some(Shape { key, params, places, bytes: text.len() });
            }
            Kind::Bad(_) => return None,
            _ => {}
        }
        let Some((term, tokens)) = shaper.constant() else {
            shaper.token();
            continue;
        };
        let span = Span { start: shaper.ahead[0].span.start, end: shaper.ahead[tokens - 1].span.end };
        let next = u32::try_from(params.len()).ok()?;
        let number = *numbers.entry(term?).or_insert_with_key(|term| {
            params.push(term.clone());
            next
        });
        places.push((span, number));
        let tag = match shaper.ahead[0].kind {
            Kind::Iri => b'i',
            Kind::Str => b's',
            _ => b'n',
        };
        shaper.write(tag, &number.to_le_bytes());
        shaper.kept = Kept::Nothing;
        (0..tokens).for_each(|_| shaper.skip());
    }
}

/// Which tokens stay in the shape because of the ones before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    Iri,
    Number,
    Str,
}

struct Shaper<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// the present token and those after it
    ahead: [Token; 3],
    kept: Kept,
    hash: XxHash3_128,
}

impl<'a> Shaper<'a> {
    /// The text of the present token or one after it.
    fn token_text(&self, number: usize) -> &'a str {
        let span = self.ahead[number].span;
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    fn skip(&mut self) {
        self.ahead = [self.ahead[1], self.ahead[2], self.lexer.next()];
    }

    /// The constant that begins here, and the number of its tokens. A term that is none has no
    /// shape.
    fn constant(&self) -> Option<(Option<Term>, usize)> {
        let text = self.token_text(0);
        let [_, next, datatype] = self.ahead.map(|token| token.kind);
        match self.ahead[0].kind {
            Kind::Iri if self.kept != Kept::Iri && next != Kind::Sign(Sign::OpenParen) => {
                let iri = absolute(text)?;
                Some((oxiri::Iri::parse(iri).ok().map(|iri| Term::Iri(iri.into_inner().into())), 1))
            }
            Kind::Number(number) if self.kept != Kept::Number && !text.starts_with(['+', '-']) => {
                Some((Some(Term::Literal(Literal::number(text, number))), 1))
            }
            Kind::Str if self.kept != Kept::Str && !is_long(text) => {
                let value = string_text(text);
                match (next, datatype) {
                    (Kind::Lang, _) => {
                        let literal = value.and_then(|value| Literal::tagged(value, self.token_text(1)));
                        Some((literal.map(Term::Literal), 2))
                    }
                    (Kind::Sign(Sign::Datatype), Kind::Iri) => {
                        let datatype = oxiri::Iri::parse(absolute(self.token_text(2))?).ok();
                        let literal = value
                            .zip(datatype)
                            .map(|(value, datatype)| Literal::typed(value, datatype.into_inner()));
                        Some((literal.map(Term::Literal), 3))
                    }
                    (Kind::Sign(Sign::Datatype), _) => None,
                    _ => Some((value.map(|value| Term::Literal(Literal::simple(value))), 1)),
                }
            }
            _ => None,
        }
    }

    /// Takes the present token as a part of the shape.
    fn token(&mut self) {
        let (kind, text) = (self.ahead[0].kind, self.token_text(0));
        self.kept = match kind {
            Kind::Word => self.after_word(text),
            Kind::Name if text.ends_with(':') => self.kept,
            Kind::Sign(Sign::Equal) => self.kept,
            Kind::Sign(Sign::Datatype) => Kept::Iri,
            _ => Kept::Nothing,
        };
        match kind {
            // keywords are of either case, but `a` is no `A`
            Kind::Word if text.len() > 1 => self.write(b'w', text.to_ascii_uppercase().as_bytes()),
            Kind::Word => self.write(b'w', text.as_bytes()),
            // `$x` is `?x`
            Kind::Var => self.write(b'v', &text.as_bytes()[1..]),
            _ => self.write(b'o', text.as_bytes()),
        }
        self.skip();
    }

    /// Each part of the key has its kind and its length before it.
    fn write(&mut self, tag: u8, bytes: &[u8]) {
        self.hash.write(&[tag]);
        self.hash.write(&(bytes.len() as u64).to_le_bytes());
        self.hash.write(bytes);
    }

    fn after_word(&self, word: &str) -> Kept {
        let is_one_of = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        match word {
            _ if is_one_of(&["PREFIX", "BASE", "FROM", "USING"]) => Kept::Iri,
            _ if is_one_of(&["NAMED"]) => self.kept,
            _ if is_one_of(&["LIMIT", "OFFSET"]) => Kept::Number,
            _ if is_one_of(&["SEPARATOR", "VERSION"]) => Kept::Str,
            _ => Kept::Nothing,
        }
    }
}

/// An IRI that means the same under every base.
fn absolute(token: &str) -> Option<String> {
    let iri = iri_text(token)?;
    (scheme(&iri).is_some() && !iri.contains("/.")).then(|| iri.into_owned())
}

fn is_long(token: &str) -> bool {
    token.starts_with("\"\"\"") || token.starts_with("'''")
}

#[cfg(test)]
mod tests;
