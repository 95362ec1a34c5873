//! Pairs of subject and predicate, in the order of their quads in PSOG.

use snowmelt_store::{Columns, Keys, Matches};

use crate::error::GraphError;
use crate::index::Index;
use crate::session::Session;

/// Sorted pairs, as keys of a lookup in PSOG.
pub(crate) struct Pairs {
    predicates: Vec<u64>,
    subjects: Vec<u64>,
}

impl Pairs {
    /// Makes pairs of rows of SP.
    pub fn of_rows(rows: &Columns) -> Pairs {
        Pairs::new(rows.cols[1].iter().copied().zip(rows.cols[0].iter().copied()).collect())
    }

    /// Makes pairs of (predicate, subject).
    pub fn new(mut pairs: Vec<(u64, u64)>) -> Pairs {
        pairs.sort_unstable();
        let (predicates, subjects) = pairs.into_iter().unzip();
        Pairs { predicates, subjects }
    }

    /// The columns of the lookup's keys.
    pub fn columns(&self) -> [&[u64]; 2] {
        [&self.predicates, &self.subjects]
    }

    /// The subject of a key.
    pub fn subject(&self, key: u32) -> u64 {
        self.subjects[key as usize]
    }

    /// Looks the pairs up and calls `f` with their quads, about `at_once` at a time: subject,
    /// predicate, object, graph.
    pub fn each_part<E: From<GraphError>>(
        &self,
        session: &mut Session,
        at_once: usize,
        mut f: impl FnMut(&mut Session, &mut dyn Iterator<Item = [u64; 4]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let columns = self.columns();
        let mut lookup = session.lookup(Index::Psog, Keys::new(&columns, None));
        let mut found = Matches::new(4, 2);
        while lookup.next(session, &mut found, at_once)? {
            f(session, &mut self.quads(&found))?;
            found.clear();
        }
        Ok(())
    }

    fn quads<'a>(&'a self, found: &'a Matches) -> impl Iterator<Item = [u64; 4]> + 'a {
        let rows = found.key.iter().zip(found.cols[0].iter().zip(&found.cols[1]));
        rows.map(|(&key, (&object, &graph))| {
            [self.subjects[key as usize], self.predicates[key as usize], object, graph]
        })
    }
}
