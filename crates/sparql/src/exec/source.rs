//! The graph, as a query sees it: the one place that names session calls.

use snowmelt_graph::{
    AnyIndex, Columns, Keys, Levels, Lookup, LookupWay, Matches, MergeKeys, MergeWay, Scan, Session, TermId,
    TermRef,
};

use crate::algebra::consts::GroundTerm;
use crate::bounds::Limits;
use crate::error::QueryError;

/// Constants looked up between two checks of the limits.
const RESOLVED_TOGETHER: usize = 4096;

/// A session.
pub(crate) struct GraphSource {
    pub session: Session,
}

impl GraphSource {
    pub fn new(session: Session) -> Self {
        Self { session }
    }

    /// The transaction it reads as of.
    pub fn txn(&self) -> u64 {
        self.session.state().txn()
    }

    pub fn count(
        &mut self,
        index: impl Into<AnyIndex>,
        prefix: &[TermId],
        range: Option<(u64, u64)>,
    ) -> Result<u64, QueryError> {
        Ok(self.session.count(index, prefix, range)?)
    }

    pub fn scan(&self, index: impl Into<AnyIndex>, prefix: &[TermId], range: Option<(u64, u64)>) -> Scan {
        self.session.scan(index, prefix, range)
    }

    pub fn scan_next(
        &mut self,
        scan: &mut Scan,
        out: &mut Columns,
        max_rows: usize,
    ) -> Result<bool, QueryError> {
        Ok(scan.next(&mut self.session, out, max_rows)?)
    }

    pub fn lookup<'k>(&self, index: impl Into<AnyIndex>, keys: Keys<'k>) -> Lookup<'k> {
        self.session.lookup(index, keys)
    }

    pub fn lookup_next(
        &mut self,
        lookup: &mut Lookup<'_>,
        out: &mut Matches,
        max_rows: usize,
    ) -> Result<bool, QueryError> {
        Ok(lookup.next(&mut self.session, out, max_rows)?)
    }

    /// A look-up whose keys the operator owns.
    pub fn lookup_way(&self, index: impl Into<AnyIndex>, keys: &Keys<'_>) -> LookupWay {
        self.session.lookup_way(index, keys)
    }

    pub fn lookup_way_next(
        &mut self,
        way: &mut LookupWay,
        keys: &Keys<'_>,
        out: &mut Matches,
        max_rows: usize,
    ) -> Result<bool, QueryError> {
        Ok(way.next(&mut self.session, keys, out, max_rows)?)
    }

    /// A merge whose keys the operator owns.
    pub fn merge_way(&self, index: impl Into<AnyIndex>, keys: &MergeKeys<'_>) -> MergeWay {
        self.session.merge_way(index, keys)
    }

    pub fn merge_way_next(
        &mut self,
        way: &mut MergeWay,
        keys: &MergeKeys<'_>,
        out: &mut Matches,
        max_rows: usize,
    ) -> Result<bool, QueryError> {
        Ok(way.next(&mut self.session, keys, out, max_rows)?)
    }

    /// Whether pages of an index may have to be read from the device: only then does it pay to look
    /// ahead.
    pub fn is_cold(&mut self, index: impl Into<AnyIndex>) -> bool {
        !self.session.is_resident(index)
    }

    /// Starts the reads that these look-ups will need.
    pub fn announce(&mut self, lookups: &[(AnyIndex, Keys<'_>)]) -> Result<(), QueryError> {
        Ok(self.session.announce(lookups, Levels::Leaves)?)
    }

    /// The stored ids of constants. Each call of the dictionary takes many; the limits are checked
    /// between calls.
    pub fn resolve_constants(
        &mut self,
        terms: &[GroundTerm],
        limits: &Limits,
    ) -> Result<Vec<Option<TermId>>, QueryError> {
        let mut ids = Vec::with_capacity(terms.len());
        for part in terms.chunks(RESOLVED_TOGETHER) {
            limits.check()?;
            let refs: Vec<TermRef<'_>> = part.iter().map(term_ref).collect();
            ids.extend(self.session.resolve(&refs)?);
        }
        assert_eq!(ids.len(), terms.len(), "the dictionary answers for each constant");
        Ok(ids)
    }
}

/// A constant as the dictionary takes it.
pub(crate) fn term_ref(term: &GroundTerm) -> TermRef<'_> {
    match term {
        GroundTerm::Iri(iri) => TermRef::Iri(iri.as_str()),
        GroundTerm::Literal(literal) => literal.as_ref().into(),
        GroundTerm::Triple(triple) => TermRef::Triple(triple),
    }
}
