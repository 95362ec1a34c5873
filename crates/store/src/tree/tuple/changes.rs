//! Changes of a tuple tree as its callers give them, and their outcome.

use crate::format::key::Key;

/// Rows to add to a tuple tree and rows to take from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// One vector per column of the tree; rows ascend strictly.
    pub cols: Vec<Vec<u64>>,
    /// For each row: added, or taken.
    pub insert: Vec<bool>,
}

impl Changes {
    /// No changes yet, for a tree of `arity` columns.
    pub fn new(arity: usize) -> Changes {
        Changes { cols: vec![Vec::new(); arity], insert: Vec::new() }
    }

    /// Appends a row, which must be above the last one.
    pub fn push(&mut self, row: &[u64], insert: bool) {
        assert_eq!(row.len(), self.cols.len(), "a row has as many columns as its tree");
        self.cols.iter_mut().zip(row).for_each(|(column, &v)| column.push(v));
        self.insert.push(insert);
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.insert.len()
    }

    /// True when there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.insert.is_empty()
    }

    /// Row `i`, unused columns 0.
    #[inline]
    pub(crate) fn row(&self, i: usize) -> Key {
        let mut row = Key::default();
        row.iter_mut().zip(&self.cols).for_each(|(v, column)| *v = column[i]);
        row
    }

    /// Asserts what the caller promised.
    pub(crate) fn check(&self, arity: usize) {
        assert_eq!(self.cols.len(), arity, "changes have as many columns as their tree");
        assert!(self.cols.iter().all(|c| c.len() == self.len()), "columns of one length");
        assert!((1..self.len()).all(|i| self.row(i - 1) < self.row(i)), "changes ascend strictly");
    }
}

/// Outcome of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Rows added that were not there.
    pub inserted: u64,
    /// Rows taken that were there.
    pub deleted: u64,
    /// For each change: it had an effect.
    pub effective: Vec<bool>,
}
