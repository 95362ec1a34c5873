//! Formats of a graph, recorded in the graph's catalog record.
//!
//! | format | strings and literals are texts | has had terms of RDF 1.2 |
//! |--------|--------------------------------|--------------------------|
//! | 1      | above 64 bytes                 | no                       |
//! | 2      | above 256 bytes                | no                       |
//! | 3      | above 64 bytes                 | yes                      |
//! | 4      | above 256 bytes                | yes                      |
//!
//! The first triple term or literal with a base direction turns 1 into 3 and 2 into 4, so that only
//! programs that know these terms open the graph from then on.
//!
//! Invariant: a dictionary keeps its limit, since the ids of its terms depend on it. So the kind of
//! a literal is decided where the term meets a dictionary, never where it is parsed.

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
    /// As one, with terms of RDF 1.2.
    Three = 3,
    /// As two, with terms of RDF 1.2.
    Four = 4,
}

impl GraphFormat {
    /// All of them, in order.
    pub const ALL: [GraphFormat; 4] =
        [GraphFormat::One, GraphFormat::Two, GraphFormat::Three, GraphFormat::Four];
    /// The newest one.
    pub const NEWEST: GraphFormat = GraphFormat::Four;

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
            GraphFormat::One | GraphFormat::Three => 64,
            GraphFormat::Two | GraphFormat::Four => 256,
        }
    }

    /// Whether the graph may have triple terms and literals with a base direction.
    pub const fn has_rdf_12(self) -> bool {
        matches!(self, GraphFormat::Three | GraphFormat::Four)
    }

    /// The format of this graph once it has terms of RDF 1.2.
    pub(crate) const fn with_rdf_12(self) -> Self {
        match self {
            GraphFormat::One | GraphFormat::Three => GraphFormat::Three,
            GraphFormat::Two | GraphFormat::Four => GraphFormat::Four,
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
