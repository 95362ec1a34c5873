//! Errors and their places.

use std::fmt;
use std::io;

/// Why reading ended.
#[derive(Debug, thiserror::Error)]
pub enum ReadError<E> {
    /// The bytes cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The document is not what it should be.
    #[error(transparent)]
    Document(#[from] Fault),
    /// The caller ended it.
    #[error("ended by the caller")]
    Caller(E),
}

/// Something in a document that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// The error's name in the specification (JsonLdErrorCode), or `syntax` and `limit`.
    pub code: &'static str,
    /// The context the place is in; `None` for the document.
    pub context: Option<String>,
    /// The fault, in words.
    pub message: String,
}

/// Code of faults of contexts that are not in the document.
pub(crate) const REMOTE_CONTEXT: &str = "loading remote context failed";

impl Fault {
    /// True when a context that the document names is not known, or its file cannot be read.
    pub fn is_of_remote_context(&self) -> bool {
        self.code == REMOTE_CONTEXT
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    /// The message with the specification's name, and the context if it is in one. The place in
    /// the document is the caller's to tell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(context) = &self.context {
            write!(f, "in the context {context}, line {}: ", self.line)?;
        }
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// A place in one of the texts that are read: the document, or a context it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The document is 0.
    pub text: u32,
    /// Bytes before the end of what stands there.
    pub offset: u32,
}

impl Place {
    /// A fault here, with the specification's name for it.
    pub fn fault(self, code: &'static str, message: impl Into<String>) -> Misuse {
        Misuse::Fault { place: self, code, message: message.into() }
    }
}

/// A fault while its place is still an offset, or the caller's wish to end.
#[derive(Debug)]
pub(crate) enum Misuse {
    Fault { place: Place, code: &'static str, message: String },
    Stopped,
}

/// Line and column, from 1, of an offset.
pub(crate) fn line_and_column(text: &[u8], offset: u32) -> (u64, u64) {
    let before = &text[..text.len().min(offset as usize)];
    let line = before.iter().filter(|b| **b == b'\n').count() as u64 + 1;
    let begin = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let is_first_byte = |b: &&u8| **b & 0xC0 != 0x80;
    (line, (before[begin..].iter().filter(is_first_byte).count() as u64).max(1))
}
