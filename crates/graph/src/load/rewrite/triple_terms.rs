//! Triple terms in a rewrite. A live one keeps the terms in it alive. Ids of objects are lower than
//! those of the terms they are in, so one sweep from the last to the first marks all.
//!
//! Rows of triple terms never change and never go, so the session may be newer than the others.

use snowmelt_store::{Columns, ScanBounds};

use super::live::{LiveTerms, NewNumbers};
use super::sweep::Sweep;
use crate::error::GraphError;
use crate::index::triple::TripleIndex;
use crate::input::cancelled;
use crate::input::error::LoadError;
use crate::term::TermId;

/// Rows read together.
const STEP_ROWS: u64 = 8192;

/// The row of a triple term.
pub(super) type TripleRow = [TermId; 4];

impl Sweep<'_> {
    /// Marks the terms in live triple terms.
    pub(super) fn mark_triples(&self, live: &mut LiveTerms) -> Result<(), LoadError> {
        let mut end = live.triple_terms();
        while end > 0 {
            let first = end.saturating_sub(STEP_ROWS);
            for row in self.rows(first, end)?.into_iter().rev() {
                if live.has_triple(row[0]) {
                    row[1..].iter().for_each(|part| live.mark(*part));
                }
            }
            end = first;
        }
        Ok(())
    }

    /// Hands on the rows of live triple terms, in the order of their ids.
    pub(super) fn live_triples(
        &self,
        mut f: impl FnMut(&mut NewNumbers, &[TripleRow]) -> Result<(), LoadError>,
        numbers: &mut NewNumbers,
    ) -> Result<(), LoadError> {
        let all = numbers.old_triple_terms();
        for first in (0..all).step_by(STEP_ROWS as usize) {
            let mut rows = self.rows(first, all.min(first + STEP_ROWS))?;
            rows.retain(|row| numbers.triple(row[0]).is_some());
            f(numbers, &rows)?;
        }
        Ok(())
    }

    /// The rows of consecutive triple terms.
    fn rows(&self, first: u64, end: u64) -> Result<Vec<TripleRow>, LoadError> {
        cancelled(self.cancel)?;
        let mut session = self.session()?;
        let state = session.state().clone();
        let missing =
            || GraphError::record(TripleIndex::Id.name(), format!("rows {first} to {end} are missing"));
        let tree = state.triple(TripleIndex::Id).ok_or_else(missing)?;
        let range = Some((TermId::triple(first).0, TermId::triple(end - 1).0));
        let mut scan = tree.scan(ScanBounds { prefix: &[], range });
        let mut columns = Columns::new(TripleIndex::ARITY);
        let reader = session.reader();
        while scan.next(reader, &mut columns, STEP_ROWS as usize).map_err(GraphError::from)? {}
        if columns.rows as u64 != end - first {
            return Err(missing().into());
        }
        Ok((0..columns.rows).map(|row| [0, 1, 2, 3].map(|c| TermId(columns.cols[c][row]))).collect())
    }
}
