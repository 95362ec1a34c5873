//! Errors and their places.

use std::io;

/// Why reading ended.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The document is not what it should be.
    #[error("{0}")]
    Document(ReadFault),
}

/// Something in a document that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ReadFault {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// The fault, and a way out.
    pub message: String,
    /// True when something is longer than [`crate::Options::longest`] allows.
    pub is_too_long: bool,
    /// True when the document ends before its end.
    pub is_cut: bool,
}

/// The message of a fault whose place is not known yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FaultText {
    pub(crate) text: String,
    pub(crate) is_too_long: bool,
    pub(crate) is_cut: bool,
}

impl<T: Into<String>> From<T> for FaultText {
    fn from(text: T) -> Self {
        FaultText { text: text.into(), is_too_long: false, is_cut: false }
    }
}

/// Line and column, both from 0; columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextPlace {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl TextPlace {
    /// The place behind a text.
    pub(crate) fn pass(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let last_line = match memchr::memrchr(b'\n', bytes) {
            Some(end) => {
                self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
                self.column = 0;
                &text[end + 1..]
            }
            None => text,
        };
        self.column += last_line.chars().count() as u64;
    }

    /// A fault here.
    pub(crate) fn fault(self, message: impl Into<FaultText>) -> ReadFault {
        let FaultText { text: message, is_too_long, is_cut } = message.into();
        ReadFault { line: self.line + 1, column: self.column + 1, message, is_too_long, is_cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let mut place = TextPlace::default();
        place.pass("é水\n\nab");
        assert_eq!(place, TextPlace { line: 2, column: 2 });
        place.pass("水");
        assert_eq!(place.fault("x").to_string(), "3:4: x");
    }
}
