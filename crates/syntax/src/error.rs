//! Errors with their place and what was expected there.
//!
//! An error says facts alone; crate `syntax-help` finds likely causes from them and shows them. All
//! fields are public: a page underlines the span and shows the rest.

use std::borrow::Cow;
use std::fmt;

use crate::lexer::{Span, Window};

/// The kinds of errors.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ErrorCode {
    /// Another token was expected.
    #[default]
    Unexpected,
    /// No token of the language: an open string, a wrong escape, a stray character.
    Token,
    /// The bytes are no UTF-8.
    Encoding,
    /// A prefix is not declared.
    Prefix,
    /// An IRI is none, or relative without a base.
    Iri,
    /// A language tag, a direction or a number is none.
    Literal,
    /// The text is an update where a query is wanted, or the other way.
    WrongLanguage,
    /// A variable gets a value that has one, or is named twice.
    Scope,
    /// A variable of SELECT is neither grouped nor aggregated.
    Ungrouped,
    /// An aggregate where there is no group, or within another.
    Aggregate,
    /// A label of a blank node is used in two patterns, or a blank node where none may be.
    Blank,
    /// The text goes beyond a limit.
    Limit,
}

/// A limit that a text goes beyond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimitReached {
    /// Its name, as in `query_depth`.
    pub name: &'static str,
    /// The most there may be.
    pub most: u64,
}

/// A bracket that is open where the text ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenBracket {
    /// `(`, `[` or `{`
    pub bracket: &'static str,
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
}

/// Why a text is no query or update.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SyntaxError {
    /// Where: offsets of bytes.
    pub span: Span,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The kind.
    pub code: ErrorCode,
    /// One sentence without the place.
    pub message: String,
    /// Words and signs of the language that could stand there; of a prefix, those declared.
    pub expected: Vec<Cow<'static, str>>,
    /// The token that stands there; empty at the end.
    pub found: String,
    /// The innermost open bracket, if the text ends too early.
    pub open: Option<OpenBracket>,
    /// The line of the text, or the part of a long one around the place.
    pub excerpt: String,
    /// Characters of the excerpt before the place, and those that are wrong, one at least.
    pub caret: (usize, usize),
    /// The limit, if the code is [`ErrorCode::Limit`].
    pub limit: Option<LimitReached>,
    /// Further errors of the same text, in its order.
    pub more: Vec<SyntaxError>,
}

/// Most words that a message lists.
const MOST_EXPECTED: usize = 8;

impl SyntaxError {
    /// `found …, expected …`
    pub(crate) fn unexpected_message(found: &str, expected: &[Cow<'static, str>]) -> String {
        let found = if found.is_empty() { "the end of the text".to_owned() } else { format!("\"{found}\"") };
        let is_word = |what: &str| what.starts_with(|c: char| c.is_ascii_alphabetic());
        let named = |what: &Cow<'static, str>| match is_word(what) {
            true => what.to_string(),
            false => format!("\"{what}\""),
        };
        let listed = expected.iter().take(MOST_EXPECTED).map(named).collect::<Vec<_>>().join(", ");
        match expected.len() {
            0 => format!("{found} cannot stand here"),
            1..=MOST_EXPECTED => format!("found {found}, expected {listed}"),
            _ => format!("found {found}, expected {listed}, …"),
        }
    }

    /// The error in `text` alone, where the text that was parsed had `head` before it, as
    /// declarations that are assumed. So are all errors after it.
    #[must_use]
    pub fn without_head(mut self: Box<Self>, head: &str, text: &str) -> Box<Self> {
        let window = Window::whole(text, usize::MAX);
        let lines = memchr::memchr_iter(b'\n', head.as_bytes()).count();
        let chars = head.rsplit('\n').next().unwrap_or_default().chars().count();
        self.move_back(&window, head.len(), lines, chars);
        self
    }

    fn move_back(&mut self, window: &Window<'_>, bytes: usize, lines: usize, chars: usize) {
        self.span.start = self.span.start.saturating_sub(bytes);
        self.span.end = self.span.end.saturating_sub(bytes);
        (self.line, self.column) = window.place(self.span.start);
        let (excerpt, before) = window.line(self.span.start);
        let room = excerpt.chars().count().saturating_sub(before);
        self.caret = (before, self.caret.1.min(room).max(1));
        self.excerpt = excerpt;
        if let Some(open) = &mut self.open {
            open.column -= if open.line == lines + 1 { chars } else { 0 };
            open.line -= lines;
        }
        self.more.iter_mut().for_each(|error| error.move_back(window, bytes, lines, chars));
    }

    /// Changes each error of the text.
    pub fn each_mut(&mut self, change: &mut dyn FnMut(&mut SyntaxError)) {
        change(self);
        self.more.iter_mut().for_each(|error| error.each_mut(change));
    }

    /// All errors of the text.
    pub fn all(&self) -> impl Iterator<Item = &SyntaxError> {
        std::iter::once(self).chain(&self.more)
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.all().enumerate() {
            let between = if number > 0 { "\n" } else { "" };
            write!(f, "{between}line {}, column {}: {}", error.line, error.column, error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for SyntaxError {}
