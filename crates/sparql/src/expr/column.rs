//! Columns of ids, as the nodes of an expression take and give them.

use snowmelt_graph::TermId;

/// A column of ids: one for all rows, borrowed from the batch, or computed.
pub(crate) enum Col<'b> {
    One(TermId),
    Ref(&'b [TermId]),
    Own(Vec<TermId>),
}

impl Col<'_> {
    /// The column's ids, or the one id it has in every row.
    pub fn slice(&self) -> std::result::Result<&[TermId], TermId> {
        match self {
            Col::One(id) => Err(*id),
            Col::Ref(ids) => Ok(ids),
            Col::Own(ids) => Ok(ids),
        }
    }

    /// Asserts that it has an id for each of so many rows.
    pub(super) fn check(&self, rows: usize) {
        let len = self.slice().map_or(rows, <[TermId]>::len);
        assert_eq!(len, rows, "a column has an id for each row it was asked for");
    }

    pub fn get(&self, row: usize) -> TermId {
        match self {
            Col::One(id) => *id,
            Col::Ref(ids) => ids[row],
            Col::Own(ids) => ids[row],
        }
    }

    /// The ids to read before the rows' values can be had.
    pub(super) fn ids(&self) -> &[TermId] {
        match self {
            Col::One(id) => std::slice::from_ref(id),
            Col::Ref(ids) => ids,
            Col::Own(ids) => ids,
        }
    }
}
