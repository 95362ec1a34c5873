//! A session: the database as of one moment, for one thread of a query. A thin layer over the
//! trees; terms are resolved in `session::resolve` and decoded in `session::decode`, triple terms
//! in `session::triple_terms`.

pub(crate) mod decode;
pub(crate) mod dump;
pub(crate) mod newer_terms;
pub(crate) mod pairs;
pub(crate) mod resolve;
pub(crate) mod statistics;
pub(crate) mod statistics_report;
pub(crate) mod stats;
pub(crate) mod subject_quads;
pub(crate) mod summary;
pub(crate) mod triple_terms;
pub(crate) mod veil;
pub(crate) mod view;

use std::ops::RangeInclusive;
use std::sync::Arc;

use snowmelt_store::{
    Account, Activity, AnyTree, Columns, Keys, Levels, Matches, MergeKeys, PageTimes, Reader, ScanBounds,
    ScanPlace, Snapshot, TupleLookup, TupleScan,
};

use crate::database::GraphDatabase;
use crate::database::classes::IdClass;
use crate::database::state::{Carried, GraphState};
use crate::dict::Tree;
use crate::error::Result;
use crate::index::Index;
use crate::index::triple::AnyIndex;
use crate::session::decode::DecodeScratch;
use crate::session::veil::Veil;
use crate::term::TermId;

/// The database as of one moment, with meters of the session's reads.
pub struct Session {
    pub(crate) db: Arc<GraphDatabase>,
    pub(crate) state: Arc<GraphState>,
    pub(crate) reader: Reader,
    pub(crate) scratch: DecodeScratch,
    /// set for a session that sees only some graphs
    veil: Option<Arc<Veil>>,
}

impl GraphDatabase {
    /// A session that sees the newest durable state. Each thread of a query has its own.
    ///
    /// # Errors
    /// Fails if a catalog record cannot be read.
    pub fn session(self: &Arc<Self>) -> Result<Session> {
        self.session_at(self.database().snapshot())
    }

    /// A session that sees a snapshot of the database, shared with sessions of other layers.
    ///
    /// # Errors
    /// Fails as [`GraphDatabase::session`] does.
    pub fn session_at(self: &Arc<Self>, snapshot: Snapshot) -> Result<Session> {
        let state = self.state_of(&snapshot)?;
        Ok(Session::new(self.clone(), state, snapshot))
    }
}

impl Session {
    pub(crate) fn new(db: Arc<GraphDatabase>, state: Arc<GraphState>, snapshot: Snapshot) -> Self {
        let reader = Reader::new(db.database().store(), snapshot);
        Session { db, state, reader, scratch: DecodeScratch::default(), veil: None }
    }

    /// A session for another thread that sees the same state, charged to the same account.
    pub fn sibling(&self) -> Session {
        let mut sibling = Session::new(self.db.clone(), self.state.clone(), self.reader.snapshot().clone());
        sibling.veil = self.veil.clone();
        sibling.charged_to(self.reader.account())
    }

    /// Charges the session's reads to `account`.
    pub fn charged_to(mut self, account: &Arc<Account>) -> Session {
        self.reader.charge_to(account);
        self
    }

    /// The state it sees.
    pub fn state(&self) -> &Arc<GraphState> {
        &self.state
    }

    /// The graph database that the session reads.
    pub fn graph(&self) -> &Arc<GraphDatabase> {
        &self.db
    }

    /// The reader of the trees.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Reads and time of this session since it was created or flushed.
    pub fn activity(&self) -> Activity {
        self.reader.meters
    }

    /// Counts threads that work for this session's query.
    pub fn count_forks(&mut self, threads: usize) {
        self.reader.meters.fork += threads as u64;
    }

    /// Whether all pages of an index are in memory, so that no access waits for a device.
    pub fn is_resident(&self, index: impl Into<AnyIndex>) -> bool {
        let id = self.state.any_index(index.into()).map(|tree| tree.id());
        id.is_none_or(|id| self.reader.resident(id))
    }

    /// Pages of an index, and how many of them are in memory.
    pub fn residency(&self, index: impl Into<AnyIndex>) -> (u64, u64) {
        self.state.any_index(index.into()).map_or((0, 0), |tree| self.reader.residency(tree.id()))
    }

    /// Pages of an index, and the expected share of leaf accesses that miss memory.
    pub fn expected_absent(&self, index: impl Into<AnyIndex>) -> (u64, f64) {
        self.state.any_index(index.into()).map_or((0, 0.0), |tree| self.reader.expected_absent(tree.id()))
    }

    /// Strings of the dictionary, their pages, and the expected share of accesses that miss memory.
    pub fn expected_absent_strings(&self) -> (u64, u64, f64) {
        let (mut strings, mut pages, mut absent) = (0, 0, 0.0);
        for tree in Tree::ALL.into_iter().filter_map(|tree| self.state.strings(tree)) {
            let (of_tree, share) = self.reader.expected_absent(tree.id());
            strings += tree.len();
            pages += of_tree;
            absent += share * of_tree as f64;
        }
        (strings, pages, if pages == 0 { 0.0 } else { absent / pages as f64 })
    }

    /// Times of reading pages that are not in memory.
    pub fn page_times(&self) -> PageTimes {
        self.db.database().store().page_times()
    }

    /// Adds the activity to its account and resets it; dropping the session does so, too.
    pub fn flush(&mut self) {
        self.reader.flush();
    }

    /// Whether all quads are in the default graph. The graph's record tells, or else GS is read
    /// once per state.
    ///
    /// # Errors
    /// Fails if GS cannot be read.
    pub fn is_plain(&mut self) -> Result<bool> {
        if let Some(known) = self.state.plain.get() {
            return Ok(*known);
        }
        // If the record does not tell, a row decides, not a count: a wrong count in an inner node
        // must not hide graphs.
        let plain = !self.any(Index::Gs, TermId::DEFAULT_GRAPH.0 + 1..=u64::MAX)?;
        Ok(*self.state.plain.get_or_init(|| plain))
    }

    /// The classes that ids of stored terms fall into, ascending.
    pub fn id_classes(&self) -> Vec<IdClass> {
        self.state.id_classes()
    }

    /// Language and datatype of a literal, as far as its id carries them; no I/O.
    pub fn annotation_of(&self, id: TermId) -> Carried<'_> {
        self.state.annotation_of(id)
    }

    /// The language tag of a literal, without I/O; `None` if it has none or the id does not carry
    /// it ([`Session::annotation_of`] distinguishes the two).
    pub fn lang_of(&self, id: TermId) -> Option<&str> {
        self.state.annotation_of(id).lang().flatten()
    }

    /// The datatype of a literal, without I/O; `None` if the id does not carry it.
    pub fn datatype_of(&self, id: TermId) -> Option<&str> {
        self.state.annotation_of(id).datatype()
    }

    /// Exact number of rows with these leading values and, if given, the next column within the
    /// range (inclusive).
    pub fn count(
        &mut self,
        index: impl Into<AnyIndex>,
        prefix: &[TermId],
        range: Option<(u64, u64)>,
    ) -> Result<u64> {
        let Some(tree) = self.state.any_index(index.into()) else { return Ok(0) };
        let arity = tree.arity();
        let (mut low, mut high, mut len) = ([0; 5], [0; 5], prefix.len());
        assert!(prefix.len() + usize::from(range.is_some()) <= arity, "a key is no longer than a row");
        for (place, id) in prefix.iter().enumerate() {
            (low[place], high[place]) = (id.0, id.0);
        }
        if let Some(range) = range {
            (low[len], high[len]) = range;
            len += 1;
        }
        Ok(tree.count(&mut self.reader, &low[..len], &high[..len])?)
    }

    /// Rows under a prefix by their places: 0 is the first. A place behind the last one has none.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn rows_at(
        &mut self,
        index: impl Into<AnyIndex>,
        prefix: &[TermId],
        places: &[u64],
    ) -> Result<Vec<Vec<u64>>> {
        let Some(tree) = self.state.any_index(index.into()) else { return Ok(Vec::new()) };
        let prefix: Vec<u64> = prefix.iter().map(|id| id.0).collect();
        let first = tree.rank(&mut self.reader, &prefix)?;
        let mut rows = Vec::with_capacity(places.len());
        for place in places {
            let row = tree.nth(&mut self.reader, first.saturating_add(*place))?;
            rows.extend(row.filter(|row| row.starts_with(&prefix)));
        }
        Ok(rows)
    }

    /// Whether there is a row whose first column is within the range (inclusive). Reads the row
    /// itself; counts of inner nodes are not trusted.
    pub fn any(&mut self, index: impl Into<AnyIndex>, range: RangeInclusive<u64>) -> Result<bool> {
        let Some(tree) = self.state.any_index(index.into()) else { return Ok(false) };
        Ok(tree.has_row_between(&mut self.reader, &[*range.start()], &[*range.end()])?)
    }

    /// Scans rows in index order; bounds as in [`Session::count`].
    pub fn scan(&self, index: impl Into<AnyIndex>, prefix: &[TermId], range: Option<(u64, u64)>) -> Scan {
        let prefix: Vec<u64> = prefix.iter().map(|id| id.0).collect();
        let index: AnyIndex = index.into();
        assert!(prefix.len() <= index.arity(), "a key is no longer than a row");
        let tree = self.state.any_index(index);
        Scan { inner: tree.map(|tree| tree.scan(ScanBounds { prefix: &prefix, range })) }
    }

    /// Splits the rows under a prefix into pieces of a number of leaves, for threads that share the
    /// scan. The order of pieces is free: the scan may join another one at that one's place.
    pub fn pieces(
        &self,
        index: impl Into<AnyIndex>,
        prefix: &[TermId],
        leaves: usize,
        joins: Option<ScanPlace>,
    ) -> ScanPieces {
        let prefix: Vec<u64> = prefix.iter().map(|id| id.0).collect();
        let index: AnyIndex = index.into();
        assert!(prefix.len() <= index.arity(), "a key is no longer than a row");
        let bounds = ScanBounds { prefix: &prefix, range: None };
        let tree = self.state.any_index(index);
        ScanPieces { inner: tree.map(|tree| tree.pieces(bounds, leaves, joins, &self.reader)) }
    }

    /// The share of the rows under a prefix that precede a place.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn share_before(
        &mut self,
        index: impl Into<AnyIndex>,
        prefix: &[TermId],
        place: ScanPlace,
    ) -> Result<f64> {
        let prefix: Vec<u64> = prefix.iter().map(|id| id.0).collect();
        let bounds = ScanBounds { prefix: &prefix, range: None };
        let Some(tree) = self.state.any_index(index.into()) else { return Ok(0.0) };
        Ok(tree.share_before(&mut self.reader, bounds, place)?)
    }

    /// Looks up the rows of many sorted keys, in key order.
    pub fn lookup<'k>(&self, index: impl Into<AnyIndex>, keys: Keys<'k>) -> Lookup<'k> {
        Lookup { inner: self.state.any_index(index.into()).map(|tree| tree.lookup(keys)) }
    }

    /// As [`Session::lookup`], for callers that own the keys and pass them at each call.
    pub fn lookup_way(&self, index: impl Into<AnyIndex>, keys: &Keys<'_>) -> LookupWay {
        LookupWay { inner: self.state.any_index(index.into()).map(|tree| tree.lookup_way(keys)) }
    }

    /// Merges many dense keys that differ in one column with an index, in key order.
    pub fn merge_way(&self, index: impl Into<AnyIndex>, keys: &MergeKeys<'_>) -> MergeWay {
        MergeWay { inner: self.state.any_index(index.into()).map(|tree| tree.merge_way(keys)) }
    }

    /// Starts the reads that these lookups will need, level by level over all trees together;
    /// free if everything is resident. Only a hint: it waits for inner nodes at most.
    pub fn announce<I: Into<AnyIndex> + Copy>(
        &mut self,
        lookups: &[(I, Keys<'_>)],
        levels: Levels,
    ) -> Result<()> {
        let known = lookups
            .iter()
            .filter_map(|(index, keys)| Some((self.state.any_index((*index).into())?.into(), *keys)));
        let trees: Vec<(AnyTree<'_>, Keys<'_>)> = known.collect();
        Ok(snowmelt_store::announce(&mut self.reader, &trees, levels)?)
    }
}

/// A running scan of an index.
pub struct Scan {
    inner: Option<TupleScan>,
}

impl Scan {
    /// Appends up to `max_rows` rows to `out`; false if there are none left.
    pub fn next(&mut self, session: &mut Session, out: &mut Columns, max_rows: usize) -> Result<bool> {
        let Some(inner) = &mut self.inner else { return Ok(false) };
        Ok(inner.next(&mut session.reader, out, max_rows)?)
    }
}

/// A scan of an index in pieces that threads take; see [`Session::pieces`].
pub struct ScanPieces {
    inner: Option<snowmelt_store::ScanPieces>,
}

impl ScanPieces {
    /// Takes the next piece; `None` if all are taken.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn next(&self, session: &mut Session) -> Result<Option<Scan>> {
        let Some(inner) = &self.inner else { return Ok(None) };
        Ok(inner.next(&mut session.reader)?.map(|piece| Scan { inner: Some(piece) }))
    }

    /// Start of the next piece; `None` at the beginning and at the end.
    pub fn place(&self) -> Option<ScanPlace> {
        self.inner.as_ref().and_then(|inner| inner.place())
    }

    /// Leaves handed out so far.
    pub fn handed(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.handed())
    }
}

/// A running lookup in an index.
pub struct Lookup<'k> {
    inner: Option<TupleLookup<'k>>,
}

impl Lookup<'_> {
    /// Appends up to `max_rows` rows to `out`; false if there are none left.
    pub fn next(&mut self, session: &mut Session, out: &mut Matches, max_rows: usize) -> Result<bool> {
        let Some(inner) = &mut self.inner else { return Ok(false) };
        Ok(inner.next(&mut session.reader, out, max_rows)?)
    }
}

/// A running lookup that does not own its keys; see [`Session::lookup_way`].
pub struct LookupWay {
    inner: Option<snowmelt_store::LookupWay>,
}

impl LookupWay {
    /// Appends up to `max_rows` rows to `out`; false if there are none left. `keys` are those that
    /// the lookup began with.
    pub fn next(
        &mut self,
        session: &mut Session,
        keys: &Keys<'_>,
        out: &mut Matches,
        max_rows: usize,
    ) -> Result<bool> {
        let Some(inner) = &mut self.inner else { return Ok(false) };
        Ok(inner.next(&mut session.reader, keys, out, max_rows)?)
    }
}

/// A running merge of keys with an index; see [`Session::merge_way`].
pub struct MergeWay {
    inner: Option<snowmelt_store::MergeWay>,
}

impl MergeWay {
    /// Appends up to `max_rows` rows to `out`; false at the end. True without a row means that the
    /// merge skipped many, and lets the caller look at the clock. `keys` are those it began with.
    pub fn next(
        &mut self,
        session: &mut Session,
        keys: &MergeKeys<'_>,
        out: &mut Matches,
        max_rows: usize,
    ) -> Result<bool> {
        let Some(inner) = &mut self.inner else { return Ok(false) };
        Ok(inner.next(&mut session.reader, keys, out, max_rows)?)
    }
}
