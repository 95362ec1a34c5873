//! Faults, and how the parser goes on after one.

use super::group::PARTS;
use super::{Parsed, Parser};
use crate::error::{ErrorCode, OpenBracket, SyntaxError};
use crate::lexer::{Fault, Kind, Sign, Span};
use crate::tree::{FirstUses, Place};

/// A note of something that could stand.
pub(super) const EXPRESSION: &str = "an expression";

/// Words that begin a query.
pub(super) const FORMS: [&str; 4] = ["SELECT", "CONSTRUCT", "DESCRIBE", "ASK"];

/// Words that begin an operation of an update.
pub(super) const OPERATIONS: [&str; 10] =
    ["INSERT", "DELETE", "WITH", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "COPY", "MOVE"];

/// Most brackets that are opened while the parser looks for where to go on.
const MOST_OPEN: usize = 1 << 12;

/// Most characters of a token in a message.
const MOST_FOUND: usize = 40;

impl Parser<'_> {
    pub(super) fn error(
        &mut self,
        span: Span,
        code: ErrorCode,
        message: impl Into<String>,
    ) -> Box<SyntaxError> {
        let window = self.cursor.window();
        let (line, column) = window.place(span.start);
        let (excerpt, before) = window.line(span.start);
        let wrong = window.text(span).chars().take_while(|c| !matches!(c, '\n' | '\r')).count();
        let room = excerpt.chars().count().saturating_sub(before);
        let caret = (before, wrong.min(room).max(1));
        let message = message.into();
        Box::new(SyntaxError { span, line, column, code, message, excerpt, caret, ..SyntaxError::default() })
    }

    /// Notes where a construct stands, if that is its first place.
    pub(super) fn first_use(&mut self, of: fn(&mut FirstUses) -> &mut Option<Place>, span: Span) {
        if of(&mut self.unit.first).is_none() {
            let (line, column) = self.cursor.window().place(span.start);
            *of(&mut self.unit.first) = Some(Place { line, column });
        }
    }

    pub(super) fn wrong<T>(&mut self, span: Span, code: ErrorCode, message: impl Into<String>) -> Parsed<T> {
        Err(self.error(span, code, message))
    }

    /// A part that must stand here.
    pub(super) fn wanted<T>(&mut self, part: Option<T>, what: &'static str) -> Parsed<T> {
        match part {
            Some(part) => Ok(part),
            None => {
                self.cursor.expect([what]);
                self.unexpected()
            }
        }
    }

    /// Takes a sign that must stand here.
    pub(super) fn sign(&mut self, sign: Sign) -> Parsed<()> {
        if self.cursor.takes(sign) { Ok(()) } else { self.unexpected() }
    }

    /// Takes a keyword that must stand here.
    pub(super) fn word(&mut self, word: &'static str) -> Parsed<()> {
        if self.cursor.takes_word(word) { Ok(()) } else { self.unexpected() }
    }

    /// The present token is none of those that were asked for.
    pub(super) fn unexpected<T>(&mut self) -> Parsed<T> {
        Err(self.unexpected_token())
    }

    fn unexpected_token(&mut self) -> Box<SyntaxError> {
        let (span, kind) = (self.cursor.span(), self.cursor.kind());
        if let Kind::Bad(fault) = kind {
            return self.bad_token(span, fault);
        }
        let found: String = self.cursor.text().chars().take(MOST_FOUND).collect();
        let expected: Vec<_> = self.cursor.expected().iter().map(|what| (*what).into()).collect();
        let message = SyntaxError::unexpected_message(&found, &expected);
        let mut error = self.error(span, ErrorCode::Unexpected, message);
        (error.found, error.expected) = (found, expected);
        let open = self.cursor.open.last().copied().filter(|_| kind == Kind::End);
        error.open = open.map(|(sign, span)| {
            let (line, column) = self.cursor.window().place(span.start);
            OpenBracket { bracket: sign.text(), line, column }
        });
        error
    }

    fn bad_token(&mut self, span: Span, fault: Fault) -> Box<SyntaxError> {
        let found: String = self.cursor.text().chars().take(MOST_FOUND).collect();
        let (code, message) = match fault {
            Fault::LongToken => return self.beyond(fault.text(), self.options.limits.token_bytes),
            Fault::LongText => return self.beyond(fault.text(), self.options.limits.bytes),
            Fault::Encoding | Fault::Read => (ErrorCode::Encoding, fault.text().to_owned()),
            Fault::Char => (ErrorCode::Token, format!("\"{}\" {}", found.escape_debug(), fault.text())),
            Fault::OpenString => (ErrorCode::Token, fault.text().to_owned()),
        };
        let mut error = self.error(span, code, message);
        error.found = found;
        error
    }

    /// No query or operation begins here, but perhaps one of the other language.
    pub(super) fn no_beginning<T>(&mut self, others: &[&str], message: &str) -> Parsed<T> {
        if self.cursor.is_word(others) {
            return self.wrong(self.cursor.span(), ErrorCode::WrongLanguage, message);
        }
        self.unexpected()
    }

    /// The text has more than it should.
    pub(super) fn end(&mut self) -> Parsed<()> {
        let is_end = self.cursor.kind() == Kind::End;
        self.wanted(is_end.then_some(()), "the end")
    }

    /// Notes an error and goes on where a pattern of the present group may begin. `open`: brackets
    /// that are open there. `start`: where the wrong part begins.
    pub(super) fn recover(&mut self, error: Box<SyntaxError>, open: usize, start: usize) -> Parsed<()> {
        if self.is_last(&error) {
            return Err(error);
        }
        if self.cursor.span().start == start && self.cursor.open.len() <= open {
            self.cursor.advance();
        }
        loop {
            let is_here = self.cursor.open.len() <= open;
            match self.cursor.kind() {
                Kind::End => return Err(error),
                Kind::Sign(Sign::Dot) if is_here => {
                    self.cursor.advance();
                    break;
                }
                Kind::Sign(Sign::CloseBrace | Sign::OpenBrace) if is_here => break,
                Kind::Word if is_here && self.cursor.is_word(&PARTS) => break,
                _ if self.is_lost() => return Err(error),
                _ => self.cursor.advance(),
            }
        }
        self.errors.push(*error);
        Ok(())
    }

    /// Whether no error after this one is told.
    pub(super) fn is_last(&self, error: &SyntaxError) -> bool {
        let is_final =
            matches!(error.code, ErrorCode::Limit | ErrorCode::Encoding | ErrorCode::WrongLanguage);
        let is_stopped = self.output.as_ref().is_some_and(|output| output.is_stopped);
        is_final || is_stopped || self.errors.len() + 1 >= self.options.limits.errors
    }

    /// Whether there is nothing to go on with: a text that cannot be read, brackets without end.
    pub(super) fn is_lost(&self) -> bool {
        let is_unread = matches!(
            self.cursor.kind(),
            Kind::Bad(Fault::Encoding | Fault::LongText | Fault::LongToken | Fault::Read)
        );
        is_unread || self.cursor.open.len() > MOST_OPEN
    }

    /// The error at the end of a text that is cut off within a character.
    pub fn encoding(mut self) -> Box<SyntaxError> {
        while !self.is_lost() && self.cursor.kind() != Kind::End {
            self.cursor.open.clear();
            self.cursor.advance();
        }
        self.unexpected_token()
    }

    /// The tree, unless there were errors on the way.
    pub(super) fn finished<T>(&mut self, parsed: Parsed<T>) -> Parsed<T> {
        let mut errors = std::mem::take(&mut self.errors);
        match parsed {
            Ok(tree) if errors.is_empty() => return Ok(tree),
            Ok(_) => {}
            Err(error) => errors.push(*error),
        }
        errors.sort_by_key(|error| error.span.start);
        let mut first = errors.remove(0);
        first.more = errors;
        Err(Box::new(first))
    }
}
