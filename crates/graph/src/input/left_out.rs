//! Statements that a lenient load leaves out.

/// Most statements listed; all are counted.
pub(crate) const MOST_LISTED: usize = 100;

/// Line of a fault whose place the reader does not know.
pub(crate) const NO_LINE: u64 = u64::MAX;

/// A statement that was left out, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The file, or `-` for standard input.
    pub file: String,
    /// Line, from 1; 0 if the reader of the format does not know it.
    pub line: u64,
    /// Column in characters, from 1; 0 if the reader does not know it.
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
