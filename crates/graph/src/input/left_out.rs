//! Statements that a lenient load leaves out.

use super::error::LoadError;
use super::intern::Parsed;

/// Statements that are listed; all are counted.
pub(crate) const MOST_LISTED: usize = 100;

/// The line of a fault whose reader does not say.
pub(crate) const NO_LINE: u64 = u64::MAX;

/// A statement that was left out, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The file, or `-` for standard input.
    pub file: String,
    /// Line, from 1; 0 when the reader of the format does not say.
    pub line: u64,
    /// Column in characters, from 1; 0 when it does not say.
    pub column: u64,
    /// The fault, in words.
    pub message: String,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}: {}", self.file, self.message),
            (line, 0) => write!(f, "{}:{line}: {}", self.file, self.message),
            (line, column) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
        }
    }
}

/// Those of a load.
#[derive(Debug, Default)]
pub(crate) struct AllLeftOut {
    pub(crate) count: u64,
    /// The first ones.
    pub(crate) listed: Vec<LeftOut>,
}

impl AllLeftOut {
    /// Whether it is no more than the share `most` of these and so many statements, rounded up: a
    /// share of a few is at least one of them.
    pub(crate) fn check(&mut self, statements: u64, most: f64) -> Result<(), LoadError> {
        let all = statements + self.count;
        if self.count as f64 <= (most * all as f64).ceil() {
            return Ok(());
        }
        let listed = std::mem::take(&mut self.listed);
        Err(LoadError::TooManyLeftOut { count: self.count, all, most, listed })
    }

    /// Adds those of a chunk that begins behind so many lines of its file.
    pub(crate) fn add(&mut self, chunk: &mut Parsed, file: &str, lines: u64) {
        self.count += chunk.skipped;
        for fault in chunk.left_out.drain(..) {
            if self.listed.len() < MOST_LISTED {
                let line = if fault.line == NO_LINE { 0 } else { lines + fault.line + 1 };
                let column = fault.column;
                self.listed.push(LeftOut { file: file.to_owned(), line, column, message: fault.message });
            }
        }
    }
}
