//! Statements that a lenient load leaves out.

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
