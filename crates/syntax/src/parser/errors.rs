//! Faults, and how the parser goes on after one.

use super::{Parsed, Parser};
use crate::error::{ErrorCode, LimitReached, SyntaxError, begins_query, begins_update, nearest};
use crate::lexer::{Fault, Kind, Sign, Span};
use crate::tree::Function;

/// A note of something that could stand, and the words behind it.
pub(super) const EXPRESSION: &str = "an expression";

/// Most brackets that are opened while the parser looks for where to go on.
const MOST_OPEN: usize = 1 << 12;

/// Most characters of a token in a message.
const MOST_FOUND: usize = 40;

impl Parser<'_> {
    pub(super) fn error(&mut self, span: Span, code: ErrorCode, message: String) -> Box<SyntaxError> {
        let window = self.cursor.lexer.window();
        let (line, column) = window.place(span.start);
        let (excerpt, before) = window.line(span.start);
        let wrong = window.text(span).chars().take_while(|c| !matches!(c, '\n' | '\r')).count();
        let room = excerpt.chars().count().saturating_sub(before);
        Box::new(SyntaxError {
            span,
            line,
            column,
            code,
            message,
            expected: Vec::new(),
            found: String::new(),
            hint: None,
            excerpt,
            caret: (before, wrong.min(room).max(1)),
            limit: None,
            more: Vec::new(),
        })
    }

    pub(super) fn wrong<T>(&mut self, span: Span, code: ErrorCode, message: String) -> Parsed<T> {
        Err(self.error(span, code, message))
    }

    pub(super) fn hinted<T>(
        &mut self,
        span: Span,
        code: ErrorCode,
        message: String,
        hint: Option<String>,
    ) -> Parsed<T> {
        let mut error = self.error(span, code, message);
        error.hint = hint;
        Err(error)
    }

    pub(super) fn too_much<T>(&mut self, name: &'static str, most: usize) -> Parsed<T> {
        let most = most as u64;
        let span = self.cursor.span();
        let mut error = self.error(span, ErrorCode::Limit, format!("more than {most}, the limit {name}"));
        error.limit = Some(LimitReached { name, most });
        Err(error)
    }

    /// The present token is none of those that were asked for.
    pub(super) fn unexpected<T>(&mut self) -> Parsed<T> {
        let (span, kind) = (self.cursor.span(), self.cursor.kind());
        if let Kind::Bad(fault) = kind {
            return self.bad_token(span, fault);
        }
        let found: String = self.cursor.text().chars().take(MOST_FOUND).collect();
        let expected = self.cursor.expected().to_vec();
        let hint = self.hint(kind, &found, &expected);
        let mut error =
            self.error(span, ErrorCode::Unexpected, SyntaxError::unexpected_message(&found, &expected));
        (error.found, error.expected, error.hint) = (found, expected, hint);
        Err(error)
    }

    fn bad_token<T>(&mut self, span: Span, fault: Fault) -> Parsed<T> {
        let limits = self.options.limits;
        let (code, message) = match fault {
            Fault::Char => {
                let found: String = self.cursor.text().chars().take(MOST_FOUND).collect();
                (ErrorCode::Token, format!("\"{}\" begins nothing in SPARQL", found.escape_debug()))
            }
            Fault::OpenString => (ErrorCode::Token, "this string has no end".to_owned()),
            Fault::Escape => {
                let message = "a string has an escape that is none; there are \\t \\b \\n \\r \\f \\\" \\' \\\\ \\u \\U";
                (ErrorCode::Token, message.to_owned())
            }
            Fault::Encoding => (ErrorCode::Encoding, "from here on the text is not UTF-8".to_owned()),
            Fault::Read => (ErrorCode::Encoding, "the text could not be read on".to_owned()),
            Fault::LongToken => return self.too_much("token_bytes", limits.token_bytes),
            Fault::LongText => return self.too_much("query_bytes", limits.bytes),
        };
        let hint = match (fault, self.cursor.text()) {
            (Fault::Char, "&") => Some("the sign of \"and\" is &&".to_owned()),
            _ => None,
        };
        self.hinted(span, code, message, hint)
    }

    /// The likely cause of a token that should not stand where it does.
    fn hint(&mut self, kind: Kind, found: &str, expected: &[&'static str]) -> Option<String> {
        let has = |word: &str| expected.contains(&word);
        match kind {
            Kind::End => self.unclosed(),
            Kind::Word => {
                let functions = Function::ALL.iter().map(|function| function.0).filter(|_| has(EXPRESSION));
                let others = ["COUNT", "SUM", "GROUP_CONCAT", "BOUND", "COALESCE", "EXISTS", "SAMETERM"];
                let others = others.into_iter().filter(|_| has(EXPRESSION));
                let known = nearest(found, expected.iter().copied().chain(functions).chain(others));
                if let Some(known) = known {
                    return Some(format!("is {known} meant?"));
                }
                match found.to_ascii_uppercase().as_str() {
                    "AND" if has("&&") => Some("the sign of \"and\" is &&".to_owned()),
                    "OR" if has("||") => Some("the sign of \"or\" is ||".to_owned()),
                    _ => None,
                }
            }
            Kind::Iri if has("<") => {
                Some("without blanks it reads as an IRI; a blank after < makes it a comparison".to_owned())
            }
            Kind::Var
            | Kind::Iri
            | Kind::Name
            | Kind::Blank
            | Kind::Str
            | Kind::Number(_)
            | Kind::Sign(Sign::OpenParen | Sign::OpenBracket | Sign::OpenReified)
                if has(".") =>
            {
                Some("is a . missing before it?".to_owned())
            }
            Kind::Sign(Sign::Equal) if has(EXPRESSION) => Some("the sign of equality is =".to_owned()),
            Kind::Sign(Sign::CloseBrace) if has("the end") => Some("there is one } too many".to_owned()),
            Kind::Sign(Sign::CloseBrace | Sign::Dot) if has("an object") => {
                Some("a triple is a subject, a predicate and an object".to_owned())
            }
            _ => None,
        }
    }

    /// The bracket that the end leaves open.
    fn unclosed(&mut self) -> Option<String> {
        let (sign, span) = *self.cursor.open.last()?;
        let (line, column) = self.cursor.lexer.window().place(span.start);
        Some(format!("the {} at line {line}, column {column} is not closed", sign.text()))
    }

    /// The text has more than it should.
    pub(super) fn end(&mut self) -> Parsed<()> {
        if self.cursor.kind() == Kind::End {
            return Ok(());
        }
        self.cursor.expect("the end");
        self.unexpected()
    }

    /// An error where a query or an operation should begin.
    pub(super) fn no_beginning<T>(&mut self, wants_query: bool) -> Parsed<T> {
        let span = self.cursor.span();
        let word =
            if self.cursor.kind() == Kind::Word { self.cursor.text().to_owned() } else { String::new() };
        if wants_query && begins_update(&word) {
            return self.wrong(span, ErrorCode::WrongLanguage, "this is an update, not a query".to_owned());
        }
        if !wants_query && begins_query(&word) {
            return self.wrong(span, ErrorCode::WrongLanguage, "this is a query, not an update".to_owned());
        }
        self.unexpected()
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
            let level = self.cursor.open.len();
            match self.cursor.kind() {
                Kind::End => return Err(error),
                Kind::Sign(Sign::Dot) if level <= open => {
                    self.cursor.advance();
                    break;
                }
                Kind::Sign(Sign::CloseBrace | Sign::OpenBrace) if level <= open => break,
                Kind::Word if level <= open && self.begins_part() => break,
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

    fn begins_part(&self) -> bool {
        const PARTS: [&str; 8] =
            ["BIND", "FILTER", "GRAPH", "LATERAL", "MINUS", "OPTIONAL", "SERVICE", "VALUES"];
        PARTS.iter().any(|part| part.eq_ignore_ascii_case(self.cursor.text()))
    }

    /// The tree, unless there were errors on the way.
    pub(super) fn finished<T>(&mut self, parsed: Parsed<T>) -> Result<T, Box<SyntaxError>> {
        let mut errors = std::mem::take(&mut self.errors);
        let tree = match parsed {
            Ok(tree) if errors.is_empty() => return Ok(tree),
            Ok(_) => None,
            Err(error) => Some(*error),
        };
        errors.extend(tree);
        errors.sort_by_key(|error| error.span.start);
        let mut first = errors.remove(0);
        first.more = errors;
        Err(Box::new(first))
    }
}
