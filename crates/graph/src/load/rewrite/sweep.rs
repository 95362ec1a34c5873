//! Sweeps over the trees that sessions see, with renewed snapshots.
//!
//! After a number of rows a sweep takes a new session and continues at the same place, repeating
//! the last subject whole. So it meets each row that exists throughout, some rows twice, and some
//! of those inserted or deleted meanwhile.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_store::Columns;

use crate::database::GraphDatabase;
use crate::dict::Tree;
use crate::error::GraphError;
use crate::index::Index;
use crate::input::cancelled;
use crate::input::error::LoadError;
use crate::session::Session;
use crate::session::pairs::Pairs;
use crate::term::TermId;

/// The account that is charged for the reads of a rewrite.
const ACCOUNT: &str = "compact";

/// Rows read together.
const STEP_ROWS: usize = 8192;
/// Quads handed on together.
const PART: usize = 65_536;

/// Start of a range of an index.
struct Begin {
    index: Index,
    /// the first two columns
    from: [u64; 2],
    /// only rows with that first column
    is_within: bool,
}

impl Begin {
    fn at(index: Index, from: [u64; 2]) -> Self {
        Self { index, from, is_within: false }
    }

    fn within(index: Index, from: [u64; 2]) -> Self {
        Self { index, from, is_within: true }
    }
}

/// A sweep; see the head of the file.
#[derive(Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub(super) database: &'a Arc<GraphDatabase>,
    pub(super) renew_rows: u64,
    pub(super) cancel: &'a AtomicBool,
}

impl Sweep<'_> {
    /// A session on the newest state.
    pub(super) fn session(&self) -> Result<Session, LoadError> {
        Ok(self.database.session()?.charged_to(&self.database.database().account(ACCOUNT)))
    }

    /// All quads in the order of PSOG.
    pub(super) fn quads(
        &self,
        mut f: impl FnMut(&mut Session, &Columns) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let mut from = [0, 0];
        loop {
            let mut session = self.session()?;
            let mut rows = 0;
            // The rest of a predicate, then the predicates after it.
            let mut at = self.range(Begin::within(Index::Psog, from), &mut session, &mut rows, &mut f)?;
            if at.is_none() && from[0] < u64::MAX {
                let behind = [from[0] + 1, 0];
                at = self.range(Begin::at(Index::Psog, behind), &mut session, &mut rows, &mut f)?;
            }
            match at {
                Some(at) => from = at,
                None => return Ok(()),
            }
        }
    }

    /// All quads (subject, predicate, object, graph), subject by subject, in parts that are sorted.
    pub(super) fn by_subject(
        &self,
        mut f: impl FnMut(&[[u64; 4]]) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let mut from = [0, 0];
        loop {
            let mut session = self.session()?;
            let mut rows = 0;
            let at = self.range(Begin::at(Index::Sp, from), &mut session, &mut rows, |session, pairs| {
                quads_of(session, pairs, &mut f)
            })?;
            match at {
                // Repeat the whole subject.
                Some([subject, _]) => from = [subject, 0],
                None => return Ok(()),
            }
        }
    }

    /// Reads the rows of an index from a place on. If a new session is due, returns the place where
    /// it stopped, which is beyond the beginning.
    fn range(
        &self,
        begin: Begin,
        session: &mut Session,
        rows: &mut u64,
        mut f: impl FnMut(&mut Session, &Columns) -> Result<(), LoadError>,
    ) -> Result<Option<[u64; 2]>, LoadError> {
        let Begin { index, from, is_within } = begin;
        let mut scan = match is_within {
            true => session.scan(index, &[TermId(from[0])], Some((from[1], u64::MAX))),
            false => session.scan(index, &[], Some((from[0], u64::MAX))),
        };
        let step = STEP_ROWS.min(self.renew_rows as usize).max(1);
        let mut columns = Columns::new(index.arity());
        while scan.next(session, &mut columns, step)? {
            cancelled(self.cancel)?;
            f(session, &columns)?;
            *rows += columns.rows as u64;
            let last = [0, 1].map(|c| columns.cols[c][columns.rows - 1]);
            columns.clear();
            let is_beyond = if index == Index::Sp { last[0] > from[0] } else { last > from };
            if *rows >= self.renew_rows && is_beyond {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// All rows of a hash tree. Rows are only ever added, and the added ones do not matter here.
    pub(super) fn hashes(
        &self,
        tree: Tree,
        mut f: impl FnMut(&Columns) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let mut session = self.session()?;
        let state = session.state().clone();
        let Some(hashes) = state.hashes(tree) else { return Ok(()) };
        let mut scan = hashes.scan(Default::default());
        let mut columns = Columns::new(tree.hash_arity());
        while scan.next(session.reader(), &mut columns, STEP_ROWS).map_err(GraphError::from)? {
            cancelled(self.cancel)?;
            f(&columns)?;
            columns.clear();
        }
        Ok(())
    }
}

/// The quads of some pairs of subject and predicate.
fn quads_of(
    session: &mut Session,
    pairs: &Columns,
    f: &mut impl FnMut(&[[u64; 4]]) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    let mut sorted = Vec::new();
    Pairs::of_rows(pairs).each_part(session, PART, |_, quads| {
        sorted.clear();
        sorted.extend(quads);
        sorted.sort_unstable();
        f(&sorted)
    })
}
