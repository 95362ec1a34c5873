//! The present token.
//!
//! The cursor notes which tokens were asked for since the last one was taken: where none of them
//! stands, they are what was expected.

use crate::lexer::{Kind, Lexer, Sign, Span, Token, Window};

pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    token: Token,
    /// the end of the token before
    pub last_end: usize,
    expected: Vec<&'static str>,
    /// brackets that are open: their places
    pub open: Vec<(Sign, Span)>,
}

/// Most tokens that are noted as expected.
const MOST_NOTED: usize = 80;

impl<'a> Cursor<'a> {
    pub fn new(window: Window<'a>) -> Self {
        let mut lexer = Lexer::new(window);
        let token = lexer.next();
        Self { lexer, token, last_end: 0, expected: Vec::new(), open: Vec::new() }
    }

    pub fn window(&mut self) -> &mut Window<'a> {
        self.lexer.window()
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

    /// Goes on to the next token.
    pub fn advance(&mut self) {
        self.expected.clear();
        match self.token.kind {
            Kind::Sign(sign @ (Sign::OpenBrace | Sign::OpenParen | Sign::OpenBracket)) => {
                self.open.push((sign, self.token.span));
            }
            Kind::Sign(Sign::CloseBrace | Sign::CloseParen | Sign::CloseBracket) => drop(self.open.pop()),
            _ => {}
        }
        self.last_end = self.token.span.end;
        self.token = self.lexer.next();
    }

    /// Notes what could stand here.
    pub fn expect<const N: usize>(&mut self, all: [&'static str; N]) {
        for what in all {
            if self.expected.len() < MOST_NOTED && !self.expected.contains(&what) {
                self.expected.push(what);
            }
        }
    }

    pub fn expected(&self) -> &[&'static str] {
        &self.expected
    }

    /// Whether a sign stands here, without a note.
    pub fn is(&self, sign: Sign) -> bool {
        self.token.kind == Kind::Sign(sign)
    }

    /// Whether one of some keywords stands here, without a note.
    pub fn is_word(&self, words: &[&str]) -> bool {
        self.token.kind == Kind::Word && words.iter().any(|word| word.eq_ignore_ascii_case(self.text()))
    }

    pub fn sees(&mut self, sign: Sign) -> bool {
        if !self.is(sign) {
            self.expect([sign.text()]);
        }
        self.is(sign)
    }

    pub fn sees_word(&mut self, word: &'static str) -> bool {
        let found = self.is_word(&[word]);
        if !found {
            self.expect([word]);
        }
        found
    }

    /// Takes a sign, if it stands here.
    pub fn takes(&mut self, sign: Sign) -> bool {
        let found = self.sees(sign);
        if found {
            self.advance();
        }
        found
    }

    /// Takes a keyword, if it stands here.
    pub fn takes_word(&mut self, word: &'static str) -> bool {
        self.takes_one(&[word]).is_some()
    }

    /// Takes one of some keywords, if it stands here.
    pub fn takes_one(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().copied().find(|word| self.sees_word(word));
        if found.is_some() {
            self.advance();
        }
        found
    }
}
