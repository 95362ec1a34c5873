//! The quad indexes: two orders of whole quads, three of distinct pairs. The trees of triple terms
//! are in [`triple`].

pub(crate) mod statistics;
pub(crate) mod triple;
pub(crate) mod value_counts;

/// A quad index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Index {
    /// Predicate, subject, object, graph.
    Psog = 0,
    /// Predicate, object, subject, graph.
    Posg = 1,
    /// Distinct subject, predicate.
    Sp = 2,
    /// Distinct object, predicate.
    Op = 3,
    /// Distinct graph, subject.
    Gs = 4,
}

/// A column of a quad. The numbers are those of `[s, p, o, g]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Column {
    Subject = 0,
    Predicate = 1,
    Object = 2,
    Graph = 3,
}

impl Index {
    /// All of them, in order.
    pub const ALL: [Index; 5] = [Index::Psog, Index::Posg, Index::Sp, Index::Op, Index::Gs];

    /// Its columns, in order.
    pub const fn columns(self) -> &'static [Column] {
        use Column::{Graph, Object, Predicate, Subject};
        match self {
            Index::Psog => &[Predicate, Subject, Object, Graph],
            Index::Posg => &[Predicate, Object, Subject, Graph],
            Index::Sp => &[Subject, Predicate],
            Index::Op => &[Object, Predicate],
            Index::Gs => &[Graph, Subject],
        }
    }

    /// Columns of its tuple tree.
    pub const fn arity(self) -> usize {
        self.columns().len()
    }

    /// Name of its tree, and of its catalog record.
    pub const fn name(self) -> &'static str {
        match self {
            Index::Psog => "psog",
            Index::Posg => "posg",
            Index::Sp => "sp",
            Index::Op => "op",
            Index::Gs => "gs",
        }
    }

    /// The row of a quad `[s, p, o, g]`; two columns for pairs, the rest 0.
    #[inline]
    pub fn row(self, quad: [u64; 4]) -> [u64; 4] {
        let mut row = [0; 4];
        for (place, column) in self.columns().iter().enumerate() {
            row[place] = quad[*column as usize];
        }
        row
    }
}
