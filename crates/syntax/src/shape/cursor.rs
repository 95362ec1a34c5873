//! The present token, and the constants that begin with it.
//!
//! The cursor notes which tokens were asked for since the last one was taken: where none of them
//! stands, they are what was expected.

use crate::lexer::{Kind, Lexer, Number, Sign, Span, Token, iri_text, string_text};
use crate::shape::{Kept, Shape, Shaper};
use crate::tree::{Direction, Literal, LiteralKind, Term};
use snowmelt_base::iri::scheme;

/// A constant that was read.
pub(crate) enum Constant<T> {
    /// a part of the tree
    Fixed(T),
    /// a constant of the shape
    Param(u32),
}

/// A string with what follows it.
pub(crate) enum Datatype {
    /// the literal is whole
    Whole(Literal),
    /// the value; the datatype, a prefixed name or an IRI of the tree, is the present token
    Follows(Box<str>),
}

pub(crate) struct Cursor<'a> {
    pub lexer: Lexer<'a>,
    token: Token,
    /// the end of the token before
    pub last_end: usize,
    shaper: Option<Shaper>,
    expected: Vec<&'static str>,
    /// brackets that are open: their places
    pub open: Vec<(Sign, Span)>,
}

const MOST_NOTED: usize = 80;

impl<'a> Cursor<'a> {
    pub fn new(mut lexer: Lexer<'a>, shaper: Option<Shaper>) -> Self {
        let token = lexer.next();
        Self { lexer, token, last_end: 0, shaper, expected: Vec::new(), open: Vec::new() }
    }

    pub fn kind(&self) -> Kind {
        self.token.kind
    }

    pub fn span(&self) -> Span {
        self.token.span
    }

    pub fn text(&self) -> &str {
        self.lexer.text(self.token.span)
    }

    pub fn shape(self) -> Option<Shape> {
        self.shaper.map(Shaper::finish)
    }

    /// Takes the present token as a part of the shape.
    pub fn advance(&mut self) {
        if let Some(shaper) = &mut self.shaper {
            shaper.token(self.token.kind, self.lexer.text(self.token.span));
        }
        self.skip();
    }

    /// Goes on to the next token.
    fn skip(&mut self) {
        self.expected.clear();
        if let Kind::Sign(sign) = self.token.kind {
            match sign {
                Sign::OpenBrace | Sign::OpenParen | Sign::OpenBracket => {
                    self.open.push((sign, self.token.span))
                }
                Sign::CloseBrace | Sign::CloseParen | Sign::CloseBracket => drop(self.open.pop()),
                _ => {}
            }
        }
        self.last_end = self.token.span.end;
        self.token = self.lexer.next();
    }

    /// Notes what could stand here.
    pub fn expect(&mut self, what: &'static str) {
        if self.expected.len() < MOST_NOTED && !self.expected.contains(&what) {
            self.expected.push(what);
        }
    }

    pub fn expected(&self) -> &[&'static str] {
        &self.expected
    }

    /// Whether a keyword stands here.
    pub fn sees_word(&mut self, word: &'static str) -> bool {
        if self.token.kind == Kind::Word && self.text().eq_ignore_ascii_case(word) {
            return true;
        }
        self.expect(word);
        false
    }

    pub fn sees(&mut self, sign: Sign) -> bool {
        if self.token.kind == Kind::Sign(sign) {
            return true;
        }
        self.expect(sign.text());
        false
    }

    /// Takes a keyword, if it stands here.
    pub fn takes_word(&mut self, word: &'static str) -> bool {
        let found = self.sees_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub fn takes(&mut self, sign: Sign) -> bool {
        let found = self.sees(sign);
        if found {
            self.advance();
        }
        found
    }

    /// Whether the present token of this kind stays a part of the shape.
    fn is_kept(&self, kind: Kept) -> bool {
        self.shaper.as_ref().is_none_or(|shaper| shaper.kept == kind)
    }

    /// Takes an IRI in angle brackets, as it is written; `None` where an escape is wrong.
    pub fn iri(&mut self) -> Option<Constant<Box<str>>> {
        let iri: Box<str> = iri_text(self.text())?.into();
        let is_fixed = self.is_kept(Kept::Iri) || scheme(&iri).is_none() || iri.contains("/.");
        self.take_iri(iri, is_fixed)
    }

    fn take_iri(&mut self, iri: Box<str>, is_fixed: bool) -> Option<Constant<Box<str>>> {
        if is_fixed {
            self.advance();
            return Some(Constant::Fixed(iri));
        }
        let written: Box<str> = self.text().into();
        self.skip();
        let is_called = self.token.kind == Kind::Sign(Sign::OpenParen);
        let Some(shaper) = &mut self.shaper else { return Some(Constant::Fixed(iri)) };
        if is_called {
            shaper.token(Kind::Iri, &written);
            return Some(Constant::Fixed(iri));
        }
        oxiri::Iri::parse(&*iri).ok()?;
        Some(Constant::Param(shaper.constant(10, Term::Iri(iri))))
    }

    /// Takes a number.
    pub fn number(&mut self) -> Constant<Literal> {
        let Kind::Number(number) = self.token.kind else { return Constant::Fixed(Literal::simple("")) };
        let datatype = match number {
            Number::Integer => "http://www.w3.org/2001/XMLSchema#integer",
            Number::Decimal => "http://www.w3.org/2001/XMLSchema#decimal",
            Number::Double => "http://www.w3.org/2001/XMLSchema#double",
        };
        let literal = Literal::typed(self.text(), datatype);
        if self.is_kept(Kept::Number) || literal.value.starts_with(['+', '-']) {
            self.advance();
            return Constant::Fixed(literal);
        }
        self.skip();
        self.constant(11, literal)
    }

    fn constant(&mut self, tag: u8, literal: Literal) -> Constant<Literal> {
        match &mut self.shaper {
            Some(shaper) => Constant::Param(shaper.constant(tag, Term::Literal(literal))),
            None => Constant::Fixed(literal),
        }
    }

    /// Takes a string, and what follows it unless that is a datatype the tree must resolve; `None`
    /// where an escape or a tag is wrong.
    pub fn string(&mut self) -> Option<Constant<Datatype>> {
        let written = self.text();
        let value: Box<str> = string_text(written)?.into();
        let is_long = written.len() > 2 && (written.starts_with("\"\"\"") || written.starts_with("'''"));
        let is_fixed = self.is_kept(Kept::Str) || is_long;
        let written: Box<str> = if self.shaper.is_some() { written.into() } else { Box::default() };
        self.skip();
        match self.token.kind {
            Kind::Lang => {
                let literal = tagged(value, self.text())?;
                self.end_string(&written, is_fixed, literal)
            }
            Kind::Sign(Sign::Datatype) => self.typed(&written, is_fixed, value),
            _ => {
                let literal = Literal::simple(value);
                match is_fixed {
                    true => self.fixed(Kind::Str, &written),
                    false => return Some(whole(self.constant(12, literal))),
                }
                Some(Constant::Fixed(Datatype::Whole(literal)))
            }
        }
    }

    /// Takes the language of a string.
    fn end_string(&mut self, written: &str, is_fixed: bool, literal: Literal) -> Option<Constant<Datatype>> {
        if is_fixed {
            self.fixed(Kind::Str, written);
            self.advance();
            return Some(Constant::Fixed(Datatype::Whole(literal)));
        }
        self.skip();
        Some(whole(self.constant(12, literal)))
    }

    fn typed(&mut self, written: &str, is_fixed: bool, value: Box<str>) -> Option<Constant<Datatype>> {
        self.skip();
        let iri = if self.token.kind == Kind::Iri { iri_text(self.text()) } else { None };
        let datatype: Option<Box<str>> =
            iri.filter(|iri| scheme(iri).is_some() && !iri.contains("/.")).map(Into::into);
        let Some(datatype) = datatype.filter(|_| self.shaper.is_some() && !is_fixed) else {
            self.fixed(Kind::Str, written);
            self.fixed(Kind::Sign(Sign::Datatype), "^^");
            if let Some(shaper) = &mut self.shaper {
                shaper.kept = Kept::Iri;
            }
            return Some(Constant::Fixed(Datatype::Follows(value)));
        };
        oxiri::Iri::parse(&*datatype).ok()?;
        let literal = Literal::typed(value, datatype);
        self.skip();
        Some(whole(self.constant(12, literal)))
    }

    fn fixed(&mut self, kind: Kind, written: &str) {
        if let Some(shaper) = &mut self.shaper {
            shaper.token(kind, written);
        }
    }
}

fn whole(literal: Constant<Literal>) -> Constant<Datatype> {
    match literal {
        Constant::Fixed(literal) => Constant::Fixed(Datatype::Whole(literal)),
        Constant::Param(number) => Constant::Param(number),
    }
}

/// A string with a token such as `@en` or `@en--ltr`; `None` if that is no tag.
fn tagged(value: Box<str>, token: &str) -> Option<Literal> {
    let tag = token.strip_prefix('@')?;
    let (tag, direction) = match tag.split_once("--") {
        Some((tag, "ltr")) => (tag, Some(Direction::LeftToRight)),
        Some((tag, "rtl")) => (tag, Some(Direction::RightToLeft)),
        Some(_) => return None,
        None => (tag, None),
    };
    let tag = oxilangtag::LanguageTag::parse(tag.to_ascii_lowercase()).ok()?.into_inner().into_boxed_str();
    let kind = direction.map_or_else(
        || LiteralKind::Tagged(tag.clone()),
        |direction| LiteralKind::Directed(tag.clone(), direction),
    );
    Some(Literal { value, kind })
}
