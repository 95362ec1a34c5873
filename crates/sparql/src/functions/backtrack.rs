//! The second engine: patterns with back-references, which no automaton matches.
//!
//! It backtracks and may take exponential time, so its steps are bounded: a match is tried at one
//! place of the text after the other, with so many steps each, and between two places the query
//! may end. A search that needs more is an error of the query, never a wrong answer.

use std::ops::Range;

use fancy_regex::{RegexBuilder, RegexInput};

use super::search::Stopped;

/// Steps back at one place of the text: some milliseconds.
const STEPS: usize = 50_000;

/// Bytes of a text that a step may look at without being more work.
const STEP_BYTES: usize = 1 << 10;

/// Bytes of a text up to which it is searched. A step may look at the whole text, so that the
/// steps of one place take a second at worst.
pub(super) const LONGEST_TEXT: usize = 64 << 10;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Backtracking {
    regex: fancy_regex::Regex,
}

impl Backtracking {
    /// `None` for a pattern that compiles to more.
    pub fn new(pattern: &str, compiled_bytes: usize) -> Option<Self> {
        let mut builder = RegexBuilder::new(pattern);
        builder.backtrack_limit(STEPS).delegate_size_limit(compiled_bytes).max_prog_size(compiled_bytes / 16);
        Some(Self { regex: builder.build().ok()? })
    }

    /// Groups, that of the whole match included.
    pub fn groups(&self) -> usize {
        self.regex.captures_len()
    }

    /// The groups of the leftmost match that begins at `from` or later, by number. Groups that
    /// matched nothing are empty. `look` says whether the query may go on, and is told the work
    /// that comes, in bytes.
    pub fn find(
        &self,
        text: &str,
        from: usize,
        mut look: impl FnMut(usize) -> Option<()>,
    ) -> Result<Option<Vec<Range<usize>>>, Stopped> {
        if text.len() > LONGEST_TEXT {
            return Err(Stopped::Unsearchable);
        }
        let work = STEPS * (1 + text.len() / STEP_BYTES);
        let mut places = text[from..].char_indices().map(|(at, _)| from + at).chain([text.len()]);
        let found = places.find_map(|at| {
            if look(work).is_none() {
                return Some(Err(Stopped::Query));
            }
            let input = RegexInput::new(text).from_pos(at).anchored(true);
            match self.regex.captures_input(input) {
                Ok(None) => None,
                Ok(Some(found)) => {
                    let group = |number| found.get(number).map_or(at..at, |group| group.range());
                    Some(Ok((0..self.groups()).map(group).collect()))
                }
                Err(_) => Some(Err(Stopped::Unsearchable)),
            }
        });
        found.transpose()
    }
}
