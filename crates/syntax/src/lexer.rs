//! From bytes to tokens with places.
//!
//! 1. [`window`] holds the text: all of it, or of a stream as much as one token needs.
//! 2. [`scan`] finds the longest token at a place, as the terminals of SPARQL 1.2 define them.
//! 3. [`decode`] takes escapes out of strings and IRIs.
//!
//! The lexer has no state but its place: a token is the same wherever the parser stands. Each byte
//! is looked at a fixed number of times.

mod chars;
mod decode;
mod kind;
mod scan;
mod window;

pub(crate) use decode::{iri_text, local_text, string_text};
pub use kind::Span;
pub(crate) use kind::{Fault, Kind, Number, Sign, Token};
pub(crate) use window::Window;

/// Tokens of a text, one after the other.
pub(crate) struct Lexer<'a> {
    window: Window<'a>,
    at: usize,
    /// No prefixed name begins before: a run of names without a colon is looked through once.
    plain_until: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(window: Window<'a>) -> Self {
        Self { window, at: 0, plain_until: 0 }
    }

    /// The next token; at the end [`Kind::End`], again and again.
    pub fn next(&mut self) -> Token {
        self.skip_blanks();
        loop {
            let rest = self.window.rest(self.at);
            if rest.is_empty() {
                if self.window.more(self.at) {
                    continue;
                }
                return self.ended();
            }
            let found = scan::token(rest, self.at < self.plain_until);
            let may_be_longer = found.hit_end && self.window.may_have_more();
            if may_be_longer && rest.len() <= self.window.token_bytes() && self.window.more(self.at) {
                continue;
            }
            let start = self.at;
            self.at += found.len;
            let span = Span { start, end: self.at };
            if found.len > self.window.token_bytes() {
                return Token { kind: Kind::Bad(Fault::LongToken), span };
            }
            if found.kind == Kind::Bad(Fault::OpenString) && self.window.fault().is_some() {
                // The string is open because the text cannot be read on.
                return self.ended();
            }
            self.plain_until = self.plain_until.max(start + found.plain);
            return Token { kind: found.kind, span };
        }
    }

    fn ended(&self) -> Token {
        let span = Span { start: self.at, end: self.at };
        let kind = self.window.fault().map_or(Kind::End, Kind::Bad);
        Token { kind, span }
    }

    fn skip_blanks(&mut self) {
        let mut in_comment = false;
        loop {
            let rest = self.window.rest(self.at);
            let mut at = 0;
            while let Some(&byte) = rest.get(at) {
                if in_comment {
                    at = memchr::memchr2(b'\n', b'\r', &rest[at..]).map_or(rest.len(), |end| at + end);
                    in_comment = at == rest.len();
                } else if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                    at += 1;
                } else if byte == b'#' {
                    in_comment = true;
                } else {
                    self.at += at;
                    return;
                }
            }
            self.at += at;
            if !self.window.more(self.at) {
                return;
            }
        }
    }

    /// The text of the token read last.
    pub fn text(&self, span: Span) -> &str {
        self.window.text(span)
    }

    pub fn window(&mut self) -> &mut Window<'a> {
        &mut self.window
    }
}

#[cfg(test)]
mod tests;
