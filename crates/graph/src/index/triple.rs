//! The trees of triple terms: the parts of each by its number, and three orders to find it by its
//! parts.
//!
//! | tree         | columns                    | answers                                        |
//! |--------------|----------------------------|------------------------------------------------|
//! | `triple`     | id, subject, predicate, object | the components of an id; numbers are dense |
//! | `triple-spo` | subject, predicate, object, id | is there this term; all with this subject  |
//! | `triple-pos` | predicate, object, subject, id |                                            |
//! | `triple-osp` | object, subject, predicate, id |                                            |
//!
//! The columns are ids of terms; a triple term's own id is of the kind
//! [`TermKind::Triple`](crate::TermKind). The trees exist once the first triple term is stored.
//!
//! Invariants: the four trees have the same rows; equal terms have one id; an object that is a
//! triple term has a lower number than the term it is in, so there are no circles.

use crate::index::Index;

/// An order of triple terms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum TripleIndex {
    /// Id, subject, predicate, object.
    Id = 0,
    /// Subject, predicate, object, id.
    Spo = 1,
    /// Predicate, object, subject, id.
    Pos = 2,
    /// Object, subject, predicate, id.
    Osp = 3,
}

impl TripleIndex {
    /// All of them, in order.
    pub const ALL: [TripleIndex; 4] = [TripleIndex::Id, TripleIndex::Spo, TripleIndex::Pos, TripleIndex::Osp];
    /// Columns of its tuple tree.
    pub const ARITY: usize = 4;

    /// Name of its tree, and of its catalog record.
    pub const fn name(self) -> &'static str {
        match self {
            TripleIndex::Id => "triple",
            TripleIndex::Spo => "triple-spo",
            TripleIndex::Pos => "triple-pos",
            TripleIndex::Osp => "triple-osp",
        }
    }

    /// The row of a triple term, given as id, subject, predicate, object.
    #[inline]
    pub const fn row(self, [id, s, p, o]: [u64; 4]) -> [u64; 4] {
        match self {
            TripleIndex::Id => [id, s, p, o],
            TripleIndex::Spo => [s, p, o, id],
            TripleIndex::Pos => [p, o, s, id],
            TripleIndex::Osp => [o, s, p, id],
        }
    }

    /// The inverse of [`TripleIndex::row`].
    #[inline]
    pub const fn term(self, row: [u64; 4]) -> [u64; 4] {
        let [a, b, c, d] = row;
        match self {
            TripleIndex::Id => row,
            TripleIndex::Spo => [d, a, b, c],
            TripleIndex::Pos => [d, c, a, b],
            TripleIndex::Osp => [d, b, c, a],
        }
    }
}

/// An order of quads or of triple terms: a tree that can be counted, scanned and looked up in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AnyIndex {
    /// Of quads, or of pairs of their terms.
    Quads(Index),
    /// Of triple terms.
    Triples(TripleIndex),
}

impl AnyIndex {
    /// Name of its tree.
    pub const fn name(self) -> &'static str {
        match self {
            AnyIndex::Quads(index) => index.name(),
            AnyIndex::Triples(index) => index.name(),
        }
    }

    /// Columns of its tuple tree.
    pub const fn arity(self) -> usize {
        match self {
            AnyIndex::Quads(index) => index.arity(),
            AnyIndex::Triples(_) => TripleIndex::ARITY,
        }
    }

    /// The row of a quad, or of a triple term.
    #[inline]
    pub(crate) fn row(self, of: [u64; 4]) -> [u64; 4] {
        match self {
            AnyIndex::Quads(index) => index.row(of),
            AnyIndex::Triples(index) => index.row(of),
        }
    }
}

impl From<Index> for AnyIndex {
    #[inline]
    fn from(index: Index) -> Self {
        AnyIndex::Quads(index)
    }
}

impl From<TripleIndex> for AnyIndex {
    #[inline]
    fn from(index: TripleIndex) -> Self {
        AnyIndex::Triples(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lead_back() {
        for index in TripleIndex::ALL {
            assert_eq!(index.term(index.row([9, 1, 2, 3])), [9, 1, 2, 3], "{index:?}");
        }
        assert_eq!(TripleIndex::Pos.row([9, 1, 2, 3]), [2, 3, 1, 9]);
        assert_eq!(TripleIndex::Osp.row([9, 1, 2, 3]), [3, 1, 2, 9]);
    }
}
