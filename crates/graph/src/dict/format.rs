//! Formats of a graph, recorded in the graph's catalog record.
//!
//! | format | strings and literals are texts |
//! |--------|--------------------------------|
//! | 1      | above 64 bytes                 |
//! | 2      | above 256 bytes                |
//!
//! Invariant: a dictionary keeps its format, since the ids of its terms depend on it. So the kind
//! of a literal is decided where the term meets a dictionary, never where it is parsed.

use crate::term::TermKind;

/// Format of a graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u32)]
pub enum GraphFormat {
    /// Labels are short, titles are texts.
    One = 1,
    /// Titles are short, too.
    #[default]
    Two = 2,
}

impl GraphFormat {
    /// All of them, in order.
    pub const ALL: [GraphFormat; 2] = [GraphFormat::One, GraphFormat::Two];

    /// Its number in the record.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The format of a number, if there is one.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.number() == number)
    }

    /// Longest lexical form, in bytes, of a short string or literal. Longer ones are texts, in a
    /// tree of their own, so that the tree of the short ones stays dense.
    #[inline]
    pub const fn short_bytes(self) -> usize {
        match self {
            GraphFormat::One => 64,
            GraphFormat::Two => 256,
        }
    }

    /// The kind of a term whose lexical form has this many bytes: long strings and literals are
    /// texts.
    #[inline]
    pub(crate) const fn kind_by_length(self, kind: TermKind, bytes: usize) -> TermKind {
        match kind {
            TermKind::String | TermKind::Literal if bytes > self.short_bytes() => TermKind::Text,
            kind => kind,
        }
    }
}
