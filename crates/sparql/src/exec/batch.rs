//! A batch: some solutions, column by column, as term ids.
//!
//! Columns are numbered by the operator that made the batch; which variable a column holds is
//! fixed when the query is planned. Invariant: every column has `rows` entries (a batch without
//! columns still has rows).

use std::ops::Range;

use snowmelt_graph::TermId;

/// Some solutions.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// One vector of ids per variable; [`TermId::UNDEF`] where it is unbound.
    pub cols: Vec<Vec<TermId>>,
    /// Number of solutions.
    pub rows: usize,
}

impl Batch {
    /// The one solution that binds nothing.
    pub fn unit() -> Self {
        Self { cols: Vec::new(), rows: 1 }
    }

    /// No solution in this many columns.
    pub fn empty(cols: usize) -> Self {
        Self { cols: vec![Vec::new(); cols], rows: 0 }
    }

    /// A batch of one or more columns of equal length.
    pub fn from_cols(cols: Vec<Vec<TermId>>) -> Self {
        assert!(!cols.is_empty(), "without a column the number of rows is not known");
        let rows = cols[0].len();
        let batch = Self { cols, rows };
        batch.check();
        batch
    }

    /// The rows of a selection, in its order, of some columns.
    pub fn gather(&self, cols: &[u16], rows: &[u32]) -> Self {
        debug_assert!(rows.iter().all(|r| (*r as usize) < self.rows), "a selection is of the batch's rows");
        let pick = |c: &u16| gather(&self.cols[*c as usize], rows);
        Self { cols: cols.iter().map(pick).collect(), rows: rows.len() }
    }

    /// A copy of some rows that follow each other.
    pub(crate) fn slice(&self, rows: Range<usize>) -> Self {
        assert!(rows.end <= self.rows, "{rows:?} are not rows of a batch of {}", self.rows);
        let len = rows.len();
        Self { cols: self.cols.iter().map(|c| c[rows.clone()].to_vec()).collect(), rows: len }
    }

    /// Keeps the rows of an ascending selection.
    pub fn retain(&mut self, rows: &[u32]) {
        debug_assert!(rows.is_sorted_by(|a, b| a < b), "a selection ascends");
        assert!(rows.len() <= self.rows, "a selection has no more rows than the batch");
        if rows.len() == self.rows {
            return;
        }
        for col in &mut self.cols {
            for (to, from) in rows.iter().enumerate() {
                col[to] = col[*from as usize];
            }
            col.truncate(rows.len());
        }
        self.rows = rows.len();
    }

    /// Only these columns, in this order; a column may be taken more than once.
    pub fn project(mut self, cols: &[u16]) -> Self {
        debug_assert!(cols.iter().all(|c| usize::from(*c) < self.cols.len()), "a column of the batch");
        let identity =
            cols.len() == self.cols.len() && cols.iter().enumerate().all(|(i, c)| i == *c as usize);
        if identity {
            return self;
        }
        let mut out = Vec::with_capacity(cols.len());
        for (i, c) in cols.iter().enumerate() {
            let again = cols[i + 1..].contains(c);
            let col = &mut self.cols[*c as usize];
            out.push(if again { col.clone() } else { std::mem::take(col) });
        }
        Self { cols: out, rows: self.rows }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.cols.iter().map(|c| c.capacity() * size_of::<TermId>()).sum()
    }

    /// Asserts the invariant.
    pub(crate) fn check(&self) {
        assert!(self.cols.iter().all(|c| c.len() == self.rows), "a column's length is the number of rows");
    }
}

/// The entries of a column at these rows.
pub(crate) fn gather(col: &[TermId], rows: &[u32]) -> Vec<TermId> {
    rows.iter().map(|r| col[*r as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch {
        Batch::from_cols(vec![(1..=4).map(TermId).collect(), (11..=14).map(TermId).collect()])
    }

    #[test]
    fn gather_retain_and_project_agree() {
        let rows = [0, 2, 3];
        let gathered = batch().gather(&[1, 0], &rows);
        let mut retained = batch();
        retained.retain(&rows);
        let retained = retained.project(&[1, 0]);
        assert_eq!(gathered.cols, retained.cols);
        assert_eq!(gathered.cols[0], [11, 13, 14].map(TermId));
        assert_eq!(retained.rows, 3);
    }

    #[test]
    fn a_column_may_be_projected_twice() {
        let twice = batch().project(&[1, 1]);
        assert_eq!(twice.cols[0], twice.cols[1]);
    }
}
