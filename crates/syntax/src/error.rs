//! Errors with their place, what was expected there, and the likely cause.
//!
//! | file | what it knows |
//! |---|---|
//! | [`keywords`] | words of the language, and which of them a misspelt one is near |
//! | [`known`] | well-known prefixes |
//!
//! All fields are public: a page underlines the span and shows the rest.

mod keywords;
mod known;

use std::fmt;

use crate::lexer::Span;

pub(crate) use keywords::{begins_query, begins_update, nearest};
pub use known::{KNOWN_PREFIXES, known_namespace};

/// The kinds of errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorCode {
    /// Another token was expected.
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

/// Why a text is no query or update.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// Words and signs of the language that could stand there.
    pub expected: Vec<&'static str>,
    /// The token that stands there; empty at the end.
    pub found: String,
    /// The likely cause.
    pub hint: Option<String>,
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
    pub(crate) fn unexpected_message(found: &str, expected: &[&'static str]) -> String {
        let found = match found {
            "" => "the end of the text".to_owned(),
            found => format!("\"{found}\""),
        };
        let named = |what: &&'static str| match what.starts_with(|c: char| c.is_ascii_alphabetic()) {
            true => (*what).to_owned(),
            false => format!("\"{what}\""),
        };
        let listed = expected.iter().take(MOST_EXPECTED).map(named).collect::<Vec<_>>().join(", ");
        let more = if expected.len() > MOST_EXPECTED { ", …" } else { "" };
        match listed.as_str() {
            "" => format!("{found} cannot stand here"),
            listed => format!("found {found}, expected {listed}{more}"),
        }
    }

    /// All errors of the text.
    pub fn all(&self) -> impl Iterator<Item = &SyntaxError> {
        std::iter::once(self).chain(&self.more)
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.all().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "line {}, column {}: {}", error.line, error.column, error.message)?;
            if let Some(hint) = &error.hint {
                write!(f, "; {hint}")?;
            }
            if !error.excerpt.trim().is_empty() {
                let (before, wide) = error.caret;
                write!(f, "\n  {}\n  {:before$}{:^<wide$}", error.excerpt, "", "")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for SyntaxError {}
