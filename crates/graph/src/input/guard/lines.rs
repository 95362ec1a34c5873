//! Scans N-Triples and N-Quads for triple terms within each other, as far as their parser reads
//! them: up to the first fault.

use memchr::{memchr, memchr2, memchr3};

use crate::input::error::GuardError;
use crate::term::MOST_TRIPLE_LEVELS;

/// Position of the scanner in the syntax.
#[derive(Clone, Copy, Default)]
enum LineState {
    #[default]
    Open,
    /// After `<`, which may begin an IRI.
    Less,
    /// After `<<`.
    TwoLess,
    /// After `)`, and after `)>`.
    Close,
    CloseMore,
    Iri,
    String,
    Escaped,
    Comment,
}

/// Counts the levels of triple terms in text that comes in pieces.
#[derive(Default)]
pub(in crate::input) struct TripleLevels {
    at: LineState,
    open: usize,
}

impl TripleLevels {
    /// Scans the next piece.
    pub(in crate::input) fn scan(&mut self, text: &[u8]) -> Result<(), GuardError> {
        let mut rest = text;
        while let Some(skipped) = self.uninteresting(rest) {
            rest = &rest[skipped..];
            let Some((byte, behind)) = rest.split_first() else { break };
            rest = behind;
            self.byte(*byte)?;
        }
        Ok(())
    }

    /// Number of bytes that change nothing; none if the whole piece does not.
    fn uninteresting(&self, text: &[u8]) -> Option<usize> {
        match self.at {
            LineState::Open if self.open == 0 => memchr3(b'"', b'<', b'#', text),
            LineState::Iri => memchr(b'>', text),
            LineState::String => memchr2(b'"', b'\\', text),
            LineState::Comment => memchr2(b'\n', b'\r', text),
            _ => (!text.is_empty()).then_some(0),
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), GuardError> {
        self.at = match (self.at, byte) {
            (LineState::Less, b'<') => LineState::TwoLess,
            (LineState::Less | LineState::Iri, b'>') => LineState::Open,
            (LineState::Less | LineState::Iri, _) => LineState::Iri,
            (LineState::TwoLess, b'(') => {
                self.open += 1;
                if self.open > MOST_TRIPLE_LEVELS {
                    return Err(GuardError::NestedTriples { most: MOST_TRIPLE_LEVELS });
                }
                LineState::Open
            }
            (LineState::Close, b'>') => LineState::CloseMore,
            (LineState::CloseMore, b'>') => {
                self.open = self.open.saturating_sub(1);
                LineState::Open
            }
            (LineState::String, b'"') => LineState::Open,
            (LineState::String, b'\\') => LineState::Escaped,
            (LineState::String | LineState::Escaped, _) => LineState::String,
            (LineState::Comment, b'\n' | b'\r') => LineState::Open,
            (LineState::Comment, _) => LineState::Comment,
            // in the open, and where fewer signs came than a bracket has
            (_, b'"') => LineState::String,
            (_, b'<') => LineState::Less,
            (_, b')') => LineState::Close,
            (_, b'#') => LineState::Comment,
            _ => LineState::Open,
        };
        Ok(())
    }
}
