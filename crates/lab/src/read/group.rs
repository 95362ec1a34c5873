//! The repeats of each cell together, for the page.

use crate::read::cell::{CellResult, ReadCell};
use crate::stats::median;

/// All repeats of one cell.
pub(super) struct CellGroup<'a> {
    pub(super) cell: &'a ReadCell,
    pub(super) results: Vec<&'a CellResult>,
}

impl CellGroup<'_> {
    pub(super) fn median(&self, of: impl Fn(&CellResult) -> f64) -> f64 {
        median(&self.results.iter().map(|r| of(r)).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    pub(super) fn iops(&self) -> f64 {
        self.median(|r| r.iops)
    }
}

/// The results by cell, in the order in which cells first come.
pub(super) fn grouped(results: &[CellResult]) -> Vec<CellGroup<'_>> {
    let mut groups: Vec<CellGroup<'_>> = Vec::new();
    for result in results {
        match groups.iter_mut().find(|g| *g.cell == result.cell) {
            Some(group) => group.results.push(result),
            None => groups.push(CellGroup { cell: &result.cell, results: vec![result] }),
        }
    }
    groups
}
