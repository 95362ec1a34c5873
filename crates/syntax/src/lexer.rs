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
use scan::Scan;

/// Some editors put it before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';
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
            let mut scan = Scan::new(rest, self.at < self.plain_until);
            let (kind, len) = scan.token();
            let (seen, hit_end, plain) = (rest.len(), scan.hit_end, scan.plain);
            let may_be_longer = hit_end && self.window.may_have_more();
            if may_be_longer && seen <= self.window.token_bytes() && self.window.more(self.at) {
                continue;
            }
            let span = Span { start: self.at, end: self.at + len };
            self.at = span.end;
            if len > self.window.token_bytes() {
                return Token { kind: Kind::Bad(Fault::LongToken), span };
            }
            if kind == Kind::Bad(Fault::OpenString) && self.window.fault().is_some() {
                // The string is open because the text cannot be read on.
                return self.ended();
            }
            self.plain_until = self.plain_until.max(span.start + plain);
            return Token { kind, span };
        }
    }

    fn ended(&self) -> Token {
        let span = Span { start: self.at, end: self.at };
        let kind = self.window.fault().map_or(Kind::End, Kind::Bad);
        Token { kind, span }
    }

    fn skip_blanks(&mut self) {
        let mut in_comment = false;
        let mut is_blank = |byte: &&u8| {
            in_comment = **byte == b'#' || in_comment && !matches!(**byte, b'\n' | b'\r');
            in_comment || matches!(**byte, b' ' | b'\t' | b'\n' | b'\r')
        };
        loop {
            if self.at == 0 && self.window.rest(0).starts_with(BYTE_ORDER_MARK) {
                self.at = BYTE_ORDER_MARK.len_utf8();
            }
            let rest = self.window.rest(self.at).as_bytes();
            let blanks = rest.iter().take_while(&mut is_blank).count();
            let is_over = blanks < rest.len();
            self.at += blanks;
            if is_over || !self.window.more(self.at) {
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
