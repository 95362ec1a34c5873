//! Scans that are shared: by the threads of a query, and, as far as what they read goes, by
//! queries.
//!
//! A scan of much that is not in memory is handed out in pieces of neighbouring leaves, in the
//! order of the index, so that the device sees one sequential stream, however many threads there
//! are. The engine knows the scans under way. A scan that begins while another of the same index is
//! under way starts at the position of that one: from there on, each finds in memory what the other
//! has just read. At the end it wraps round and reads what it left out. So its rows come in another
//! order than the index's: only scans whose rows may come in any order are shared.
//!
//! None waits for another. A scan that falls behind by more than what the pool holds reads for
//! itself, and holds no other back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use snowmelt_graph::{AnyIndex, Scan, ScanPieces, TermId};

use super::source::GraphSource;
use super::{Result, Run};

/// Least leaves of a scan that is shared.
const LEAST_LEAVES: f64 = 64.0;

/// Leaves of a piece: half a MiB.
const PIECE_LEAVES: usize = 64;

/// A scan under way that is handed out in pieces.
pub(crate) struct SharedScan {
    index: AnyIndex,
    prefix: Vec<TermId>,
    pieces: ScanPieces,
    /// for `--analyze`
    pub note: SharedNote,
}

/// How a scan is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SharedNote {
    /// scans of the same index that were under way when it began
    pub others: usize,
    /// the share of its rows that lies before the place where it joined one of them
    pub joined_at: Option<f64>,
}

/// The scans of an engine that others can join.
#[derive(Default)]
pub(crate) struct SharedScans {
    under_way: Mutex<Vec<Weak<SharedScan>>>,
    begun: AtomicU64,
    joined: AtomicU64,
}

impl SharedScans {
    /// Scans that were begun in pieces, and those of them that joined another.
    pub fn counts(&self) -> (u64, u64) {
        (self.begun.load(Ordering::Relaxed), self.joined.load(Ordering::Relaxed))
    }

    /// Begins a scan of the rows under a prefix, at the position of another scan if it can join
    /// one.
    fn begin(&self, index: AnyIndex, prefix: &[TermId], run: &mut Run) -> Result<Arc<SharedScan>> {
        let session = &mut run.source.session;
        let mut under_way = self.under_way.lock();
        under_way.retain(|scan| scan.strong_count() > 0);
        let others = under_way.iter().filter_map(Weak::upgrade);
        let mut others: Vec<Arc<SharedScan>> = others.filter(|scan| scan.meets(index, prefix)).collect();
        // the one that is furthest is about to read what is not in memory; it may be beyond the
        // rows that are wanted
        others.sort_by_key(|scan| std::cmp::Reverse(scan.pieces.handed()));
        let mut places = others.iter().filter_map(|scan| scan.pieces.place());
        let pieces = loop {
            let place = places.next();
            let pieces = session.pieces(index, prefix, PIECE_LEAVES, place);
            if place.is_none() || pieces.place().is_some() {
                break pieces;
            }
        };
        drop(places);
        let place = pieces.place();
        let mut note = SharedNote { others: others.len(), joined_at: None };
        drop(under_way);
        if let Some(place) = place {
            self.joined.fetch_add(1, Ordering::Relaxed);
            let share = if run.profile.is_some() { session.share_before(index, prefix, place)? } else { 0.0 };
            note.joined_at = Some(share);
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        let scan = Arc::new(SharedScan { index, prefix: prefix.to_vec(), pieces, note });
        self.under_way.lock().push(Arc::downgrade(&scan));
        Ok(scan)
    }
}

impl SharedScan {
    /// Whether it has leaves to hand out that a scan of the rows under a prefix may want.
    fn meets(&self, index: AnyIndex, prefix: &[TermId]) -> bool {
        let of_one = self.prefix.iter().zip(prefix).all(|(mine, theirs)| mine == theirs);
        self.index == index && of_one && self.pieces.place().is_some()
    }

    /// A shared scan of the rows under a prefix, if there are enough of them that are not in
    /// memory.
    pub fn begin(index: AnyIndex, prefix: &[TermId], run: &mut Run) -> Result<Option<Arc<SharedScan>>> {
        let session = &run.source.session;
        let (pages, resident) = session.residency(index);
        if 10 * resident >= 9 * pages {
            return Ok(None);
        }
        let Some(tree) = session.state().any_index(index) else { return Ok(None) };
        let rows_per_leaf = tree.rows() as f64 / tree.leaves().max(1) as f64;
        let rows = run.source.count(index, prefix, None)? as f64;
        if rows < LEAST_LEAVES * rows_per_leaf {
            return Ok(None);
        }
        let scans = run.query.shared_scans.clone();
        scans.begin(index, prefix, run).map(Some)
    }

    /// The next piece, which is the caller's.
    pub fn next(&self, source: &mut GraphSource) -> Result<Option<Scan>> {
        Ok(self.pieces.next(&mut source.session)?)
    }
}
