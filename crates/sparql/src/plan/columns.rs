//! All indexes that a plan may visit, of quads and of triple terms: their places and columns.

use snowmelt_graph::{AnyIndex, Column, Index, TripleIndex};

/// The columns of an index; a triple term's own id stands where quads have their graph.
pub(crate) fn columns_of(index: AnyIndex) -> &'static [Column] {
    use Column::{Graph, Object, Predicate, Subject};
    match index {
        AnyIndex::Quads(index) => index.columns(),
        AnyIndex::Triples(TripleIndex::Id) => &[Graph, Subject, Predicate, Object],
        AnyIndex::Triples(TripleIndex::Spo) => &[Subject, Predicate, Object, Graph],
        AnyIndex::Triples(TripleIndex::Pos) => &[Predicate, Object, Subject, Graph],
        AnyIndex::Triples(TripleIndex::Osp) => &[Object, Subject, Predicate, Graph],
    }
}

/// Indexes that a query may visit.
pub(crate) const INDEXES: usize = Index::ALL.len() + TripleIndex::ALL.len();

/// The place of an index among all.
pub(crate) fn index_place(index: AnyIndex) -> usize {
    match index {
        AnyIndex::Quads(index) => index as usize,
        AnyIndex::Triples(index) => Index::ALL.len() + index as usize,
    }
}
