//! Errors with carets and causes, as text and as JSON.

use std::fmt;

use serde_json::{Value, json};
use snowmelt_syntax::{ErrorCode, SyntaxError};

use crate::likely_cause;

/// All errors of a text, with their likely causes.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    error: &'a SyntaxError,
    prefixes: &'a [(String, String)],
}

impl<'a> Report<'a> {
    /// A report. `prefixes`: prefixes that the data have, with their namespaces, for the causes.
    #[must_use]
    pub fn new(error: &'a SyntaxError, prefixes: &'a [(String, String)]) -> Self {
        Self { error, prefixes }
    }

    /// An array of an object for each error, in the order of the text:
    ///
    /// | member | |
    /// |---|---|
    /// | `code` | the kind: `unexpected`, `token`, `prefix`, … |
    /// | `message` | one sentence without the place |
    /// | `line`, `column` | both from 1; columns count characters |
    /// | `start`, `end` | offsets of bytes |
    /// | `excerpt` | the line of the text, or the part of a long one around the place |
    /// | `caret` | `start` and `length` in characters of the excerpt |
    /// | `found` | the token at the place; `null` at the end, or where another thing is wrong |
    /// | `expected` | words and signs that could stand there |
    /// | `cause` | the likely cause, or `null` |
    /// | `limit` | `name` and `most` of a limit that the text goes beyond, or `null` |
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.error.all().map(|error| self.one(error)).collect()
    }

    fn one(&self, error: &SyntaxError) -> Value {
        let (start, length) = error.caret;
        json!({
            "code": code_name(error.code),
            "message": error.message,
            "line": error.line,
            "column": error.column,
            "start": error.span.start,
            "end": error.span.end,
            "excerpt": error.excerpt,
            "caret": { "start": start, "length": length },
            "found": (!error.found.is_empty()).then_some(&error.found),
            "expected": error.expected,
            "cause": likely_cause(error, self.prefixes),
            "limit": error.limit.map(|limit| json!({ "name": limit.name, "most": limit.most })),
        })
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.error.all().enumerate() {
            let between = if number > 0 { "\n" } else { "" };
            write!(f, "{between}line {}, column {}: {}", error.line, error.column, error.message)?;
            if let Some(cause) = likely_cause(error, self.prefixes) {
                write!(f, "; {cause}")?;
            }
            if !error.excerpt.trim().is_empty() {
                let (before, wide) = error.caret;
                write!(f, "\n  {}\n  {:before$}{:^<wide$}", error.excerpt, "", "")?;
            }
        }
        Ok(())
    }
}

fn code_name(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unexpected => "unexpected",
        ErrorCode::Token => "token",
        ErrorCode::Encoding => "encoding",
        ErrorCode::Prefix => "prefix",
        ErrorCode::Iri => "iri",
        ErrorCode::Literal => "literal",
        ErrorCode::WrongLanguage => "wrong-language",
        ErrorCode::Scope => "scope",
        ErrorCode::Ungrouped => "ungrouped",
        ErrorCode::Aggregate => "aggregate",
        ErrorCode::Blank => "blank",
        ErrorCode::Limit => "limit",
    }
}
