//! The statements that a lenient load leaves out: all counted, the first ones listed.

use crate::input::error::LoadError;
use crate::input::intern::Parsed;
use crate::input::left_out::{LeftOut, MOST_LISTED, NO_LINE};

/// Statements that a load left out.
#[derive(Debug, Default)]
pub(super) struct AllLeftOut {
    pub(super) count: u64,
    /// The first ones.
    pub(super) listed: Vec<LeftOut>,
}

impl AllLeftOut {
    /// Fails if more statements were left out than the share `most` of all, rounded up to whole
    /// statements. `statements` is the number of those that were read.
    pub(super) fn check(&mut self, statements: u64, most: f64) -> Result<(), LoadError> {
        let all = statements + self.count;
        if self.count as f64 <= (most * all as f64).ceil() {
            return Ok(());
        }
        let listed = std::mem::take(&mut self.listed);
        Err(LoadError::TooManyLeftOut { count: self.count, all, most, listed })
    }

    /// Adds the faults of a chunk that begins after `lines` lines of its file.
    pub(super) fn add(&mut self, chunk: &mut Parsed, file: &str, lines: u64) {
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
