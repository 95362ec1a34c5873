//! Statistics made anew, by reading three indexes.
//!
//! An old snapshot would hold the checkpointer back, so after [`RENEW_ROWS`] rows the reading goes
//! on in a new one. Changes in between are counted or not: statistics only estimate.

use std::sync::Arc;

use snowmelt_store::Columns;

use crate::database::GraphDatabase;
use crate::error::Result;
use crate::index::Index;
use crate::index::statistics::GraphStatistics;
use crate::index::statistics::degrees::DegreeCounts;
use crate::index::statistics::predicate_sets::PredicateSets;
use crate::session::Session;
use crate::term::TermId;

/// Rows read together.
const STEP_ROWS: usize = 8192;

/// Rows after which a newer snapshot is read.
const RENEW_ROWS: u64 = 1 << 22;

/// The account that is charged for the reads.
const ACCOUNT: &str = "statistics";

impl GraphDatabase {
    /// Statistics of what is stored now, made anew: reads three indexes whole. `None` as soon as
    /// `go_on` says no, which is asked now and then.
    ///
    /// # Errors
    /// Fails if an index cannot be read.
    pub fn make_statistics(self: &Arc<Self>, go_on: &dyn Fn() -> bool) -> Result<Option<GraphStatistics>> {
        let (mut subjects, mut objects) = (DegreeCounts::default(), DegreeCounts::default());
        let mut sets = PredicateSets::default();
        let is_whole = self
            .each_pair(Index::Psog, go_on, &mut |rows| subjects.add(&rows.cols[0], &rows.cols[1]))?
            && self.each_pair(Index::Posg, go_on, &mut |rows| objects.add(&rows.cols[0], &rows.cols[1]))?
            && self.each_pair(Index::Sp, go_on, &mut |rows| sets.add(&rows.cols[0], &rows.cols[1]))?;
        subjects.end();
        objects.end();
        sets.end();
        Ok(is_whole.then(|| GraphStatistics {
            subjects: subjects.into(),
            objects: objects.into(),
            sets: sets.into(),
            age: 0,
        }))
    }

    fn statistics_session(self: &Arc<Self>) -> Result<Session> {
        Ok(self.session()?.charged_to(&self.database().account(ACCOUNT)))
    }

    /// Hands on the first two columns of an index, in its order; false if it was ended before.
    fn each_pair(
        self: &Arc<Self>,
        index: Index,
        go_on: &dyn Fn() -> bool,
        f: &mut dyn FnMut(&Columns),
    ) -> Result<bool> {
        let mut session = self.statistics_session()?;
        let mut columns = Columns::with_wanted(index.arity(), 0b11);
        let mut rows = 0;
        // the first column's value within which a newer snapshot goes on
        let mut scan = session.scan(index, &[], None);
        let mut within: Option<u64> = None;
        loop {
            if !go_on() {
                return Ok(false);
            }
            columns.clear();
            let more = scan.next(&mut session, &mut columns, STEP_ROWS)?;
            if !more && columns.rows == 0 {
                // the predicates after the one that was read to its end
                let Some(next) = within.take().and_then(|first| first.checked_add(1)) else {
                    return Ok(true);
                };
                scan = session.scan(index, &[], Some((next, u64::MAX)));
                continue;
            }
            f(&columns);
            rows += columns.rows as u64;
            if rows >= RENEW_ROWS {
                rows = 0;
                session = self.statistics_session()?;
                let last = [0, 1].map(|c| columns.cols[c].last().copied().unwrap_or(u64::MAX));
                let Some(next) = last[1].checked_add(1) else { continue };
                scan = session.scan(index, &[TermId(last[0])], Some((next, u64::MAX)));
                within = Some(last[0]);
            }
        }
    }
}
