//! `compact`: shrinks the files to about the size of a fresh load, while readers and writers go on.
//!
//! 1. *terms*: if many terms of the dictionary are in no quad any more, or if the caller asks for
//!    it, all trees are rewritten without them ([`crate::load::rewrite`]), beside the old ones.
//!    Changes committed meanwhile are kept in a log and applied to the new trees in short
//!    transactions, until few are left. One commit applies those and switches.
//! 2. *front*: the new trees lie behind the old ones. If the old ones left enough room, the new
//!    ones are written once more, to the front, so that the files can be truncated.
//! 3. *pages*: scattered leaves are moved into key order ([`GraphDatabase::relocate`]) as far as
//!    there are free extents, so that no file grows.
//! 4. *end*: sparse extents are merged, and the last ones move to free ones before them
//!    ([`snowmelt_store::Consolidation`]). Then all pages are written back, and free space at the
//!    end is given back to the system.
//!
//! Readers of the old generation keep its trees: its ids mean nothing in the new one. Caches keyed
//! by id compare [`crate::GraphState::dictionary`].
//!
//! Invariant: until the commit of the switch is durable the old generation is the database. A
//! crash or an interruption leaves trees that are dropped at the next open, or at once.

mod estimate;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use snowmelt_store::{BuildPlace, PAGE_BYTES, StoreError, TreeId, WaitFor, WaitSign, Waiter};

use crate::database::GraphDatabase;
use crate::database::change_log::ChangeLog;
use crate::database::generation::{NEXT, drop_unfinished};
use crate::database::state::GraphState;
use crate::dict::Tree;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::index::triple::TripleIndex;
use crate::input::error::LoadError;
use crate::interrupt::go_on;
use crate::load::LoadSizes;
use crate::load::rewrite::{Keep, LEAST_MEMORY, Rewrite};
use crate::load::{LoadProgress, Progress};
use crate::transaction::relocate::Growth;

/// Terms are reclaimed when dead ones take at least this percentage of the dictionary's pages.
const DEAD_PERCENT: f64 = 10.0;

/// Most trees of a generation.
const TREES: u32 = (2 * Tree::ALL.len() + Index::ALL.len() + TripleIndex::ALL.len()) as u32;

/// Name under which memory is reserved, and the bytes left to others if there is more.
const ASKER: &str = "reclaiming terms";
const LEFT_BYTES: u64 = 8 << 20;

/// Most changes applied in the commit that switches.
const LAST_CHANGES: usize = 2048;
/// Rounds of catching up without progress, after which writers wait for the rest.
const PATIENCE: u32 = 16;
/// Rows after which a sweep takes a new snapshot: some seconds.
const RENEW_ROWS: u64 = 1 << 21;

/// Whether compaction reclaims terms without quads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompactTerms {
    /// If there are many of them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options of a compaction.
#[derive(Clone, Copy, Debug)]
pub struct CompactOptions {
    /// Whether terms without quads are reclaimed.
    pub terms: CompactTerms,
    /// Number of sorting threads.
    pub threads: usize,
    /// Sizes that follow from the memory budget unless set here. Tests set them low.
    pub sizes: LoadSizes,
    /// Rows after which a scan renews its snapshot; `None` for the default.
    pub renew_rows: Option<u64>,
}

impl Default for CompactOptions {
    fn default() -> Self {
        CompactOptions {
            terms: CompactTerms::Auto,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            sizes: LoadSizes::default(),
            renew_rows: None,
        }
    }
}

/// Progress of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactStep {
    /// The trees are about to be rewritten.
    Needs {
        /// Bytes of disk space that the rewrite takes temporarily.
        bytes: u64,
        /// Bytes that are free; `None` if that is not known.
        free: Option<u64>,
    },
    /// The trees are being rewritten.
    Rewriting {
        /// The step.
        step: &'static str,
        /// Units of the step that are done.
        done: u64,
        /// All units of the step; 0 if that is not known.
        total: u64,
    },
    /// Changes made meanwhile that are still to be applied to the new trees.
    CatchingUp(u64),
    /// Number of leaves moved so far.
    Moved(u64),
    /// Number of pages moved towards the begin of the files so far.
    Consolidated(u64),
    /// Free space is about to be given back.
    WritingBack,
    /// Waiting for writers or for a checkpoint.
    Waiting(WaitFor),
}

impl CompactStep {
    /// The step in words, the units done and the units in all; 0 where a number is not known.
    pub fn told(self) -> (String, u64, u64) {
        match self {
            CompactStep::Needs { bytes, free: Some(free) } => {
                (format!("{bytes} bytes of room are needed, {free} are free"), 0, 0)
            }
            CompactStep::Needs { bytes, free: None } => (format!("{bytes} bytes of room are needed"), 0, 0),
            CompactStep::Rewriting { step, done, total } => (format!("rewriting: {step}"), done, total),
            CompactStep::CatchingUp(changes) => ("catching up with commits".into(), 0, changes),
            CompactStep::Moved(leaves) => ("moving pages into order".into(), leaves, 0),
            CompactStep::Consolidated(pages) => ("moving pages to the front".into(), pages, 0),
            CompactStep::WritingBack => ("writing back".into(), 0, 0),
            CompactStep::Waiting(what) => (format!("waiting for {}", what.name()), 0, 0),
        }
    }
}

/// Result of a compaction.
#[derive(Clone, Debug)]
pub struct Compacted {
    /// Bytes of the stripes before.
    pub before_bytes: u64,
    /// Bytes of the stripes after.
    pub after_bytes: u64,
    /// Reclaimed terms, or why none were.
    pub terms: TermsCompacted,
    /// Leaves moved into key order.
    pub leaves: u64,
    /// Pages moved towards the begin of the files.
    pub consolidated: u64,
    /// The shortage of space that ended the moving early, if any. Moved leaves stay moved.
    pub shortage: Option<StoreError>,
}

/// Result of reclaiming terms without quads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TermsCompacted {
    /// None were reclaimed: there are few, or the caller did not ask for it.
    Left,
    /// None were reclaimed, because there was too little room or memory.
    PassedOver(String),
    /// Terms were reclaimed. Readers of the older state still keep some bytes from being given
    /// back.
    Reclaimed {
        /// Terms before.
        before: u64,
        /// Terms after.
        after: u64,
        /// Bytes that older readers keep.
        kept_bytes: u64,
    },
}

impl fmt::Display for TermsCompacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermsCompacted::Left => write!(f, "the terms stay as they are"),
            TermsCompacted::PassedOver(why) => write!(f, "terms without quads stay: {why}"),
            TermsCompacted::Reclaimed { before, after, kept_bytes } => {
                write!(
                    f,
                    "{} of {before} terms were in no quad and are gone",
                    before.saturating_sub(*after)
                )?;
                if *kept_bytes > 0 {
                    write!(f, "; queries under way keep {kept_bytes} bytes: run it again after them")?;
                }
                Ok(())
            }
        }
    }
}

/// Receives the progress of a compaction; its answer says whether to go on.
type Told<'a> = &'a (dyn Fn(CompactStep) -> ControlFlow<()> + Sync);

/// Calls `f` with the waiter of a compaction. While it waits, `told` hears the reason some tens of
/// times a second, and answers whether to go on.
fn waiting<R>(told: Told<'_>, f: impl FnOnce(&Waiter<'_>) -> R) -> R {
    let sign = WaitSign::default();
    let go_on = || sign.read().is_none_or(|what| told(CompactStep::Waiting(what)).is_continue());
    f(&Waiter { go_on: &go_on, sign: Some(&sign) })
}

impl GraphDatabase {
    /// Reclaims terms without quads, moves all shuffled subtrees into key order and all pages
    /// towards the begin of the files, then gives free space back to the system: the files shrink
    /// to about the size of a fresh load. Readers and
    /// writers go on. `told` receives the progress.
    ///
    /// # Errors
    /// Fails with errors of the store, with [`GraphError::NoRoom`] if terms are to be reclaimed in
    /// any case, and with [`GraphError::Stopped`] if `told` asks to stop. Finished work is kept:
    /// reclaimed terms are all reclaimed or none, and moved leaves stay moved.
    pub fn compact(
        self: &Arc<Self>,
        options: &CompactOptions,
        told: impl FnMut(CompactStep) -> ControlFlow<()> + Send,
    ) -> Result<Compacted> {
        let told = Mutex::new(told);
        self.compact_told(options, &|step| (told.lock())(step))
    }

    fn compact_told(self: &Arc<Self>, options: &CompactOptions, told: Told<'_>) -> Result<Compacted> {
        let before_bytes = self.database().store().stripe_bytes()?;
        let terms = self.compact_terms(options, told)?;
        let mut leaves = 0;
        let moved = |moved| {
            leaves = moved;
            told(CompactStep::Moved(moved))
        };
        let relocated = waiting(told, |waiter| self.relocate_until(moved, Growth::Never, waiter));
        let mut pages = 0;
        let consolidated = relocated.and_then(|_| self.consolidate_and_give_back(&mut pages, told));
        let shortage = match consolidated {
            Ok(()) => None,
            // Giving space back needs no free space.
            Err(GraphError::Store(full @ StoreError::Full { .. })) => {
                self.give_back(told)?;
                Some(full)
            }
            Err(error) => return Err(error),
        };
        let after_bytes = self.database().store().stripe_bytes()?;
        Ok(Compacted { before_bytes, after_bytes, terms, leaves, consolidated: pages, shortage })
    }

    /// Moves pages to the front and gives free space back. The checkpoints of the latter, which
    /// write catalog and map elsewhere, free extents themselves: so until no page moves any more.
    fn consolidate_and_give_back(self: &Arc<Self>, pages: &mut u64, told: Told<'_>) -> Result<()> {
        /// Writers beside it could keep it going.
        const MOST_ROUNDS: u32 = 8;
        for round in 0..MOST_ROUNDS {
            let before = *pages;
            let moved = |moved| {
                *pages = before + moved;
                told(CompactStep::Consolidated(*pages))
            };
            let done = waiting(told, |waiter| self.consolidate_until(moved, waiter))?;
            if done.extents == 0 && round > 0 {
                break;
            }
            self.give_back(told)?;
        }
        Ok(())
    }

    /// Gives free space back to the system.
    fn give_back(&self, told: Told<'_>) -> Result<()> {
        go_on(told(CompactStep::WritingBack))?;
        self.database().store().compact_while(&|| told(CompactStep::WritingBack).is_continue())?;
        go_on(told(CompactStep::WritingBack))
    }

    fn compact_terms(self: &Arc<Self>, options: &CompactOptions, told: Told<'_>) -> Result<TermsCompacted> {
        if options.terms == CompactTerms::Never {
            return Ok(TermsCompacted::Left);
        }
        let before = self.state()?.terms();
        let dead = self.dead_terms()?;
        if options.terms == CompactTerms::Auto && (before == 0 || dead.percent() < DEAD_PERCENT) {
            return Ok(TermsCompacted::Left);
        }
        let place = self.room_for_rewrite(dead.live_share(), told);
        let rewritten = place.and_then(|place| self.rewrite(Keep::Live, place, options, told));
        match rewritten {
            Err(error) if options.terms == CompactTerms::Auto && is_shortage(&error) => {
                return Ok(TermsCompacted::PassedOver(error.to_string()));
            }
            other => other?,
        }
        let after = self.state()?.terms();
        self.database().store().checkpoint_while(&|| told(CompactStep::WritingBack).is_continue())?;
        let (free, _) = self.database().store().unused_bytes();
        let temporary = self.temporary_bytes(&*self.state()?);
        let has_room = self.database().store().room_bytes().is_none_or(|room| room >= temporary);
        if free >= self.packed_bytes() && has_room {
            // Files cannot be truncated while the new trees lie at their ends.
            self.rewrite(Keep::All, BuildPlace::Front, options, told)?;
            self.give_back(told)?;
        }
        let (_, kept_bytes) = self.database().store().unused_bytes();
        Ok(TermsCompacted::Reclaimed { before, after, kept_bytes })
    }

    /// A place for a rewrite that keeps this share of the terms; fails if there is too little room.
    fn room_for_rewrite(self: &Arc<Self>, live_share: f64, told: Told<'_>) -> Result<BuildPlace> {
        let state = self.state()?;
        let pages = |tree: TreeId| self.pages_of(tree);
        let terms: u64 = Tree::ALL
            .into_iter()
            .map(|tree| {
                state.strings(tree).map_or(0, |t| pages(t.id()))
                    + state.hashes(tree).map_or(0, |t| pages(t.id()))
            })
            .sum();
        let triples = TripleIndex::ALL.into_iter().filter_map(|index| state.triple(index));
        let indexes = Index::ALL.into_iter().filter_map(|index| state.index(index)).chain(triples);
        let indexes: u64 = indexes.map(|t| pages(t.id())).sum();
        // The last extent of each tree is not full.
        let trees = u64::from(TREES);
        let slack = trees * self.database().store().geometry().extent_bytes();
        let written = ((terms as f64 * live_share) as u64 + indexes) * PAGE_BYTES as u64 + slack;
        let (free_inside, _) = self.database().store().unused_bytes();
        let temporary = self.temporary_bytes(&state);
        let free = self.database().store().room_bytes();
        // Behind all pages in use: the old trees then leave one gap without holes.
        let (place, needed) = match written + temporary {
            behind if free.is_none_or(|free| free >= behind) => (BuildPlace::Behind, behind),
            _ => (BuildPlace::Front, written.saturating_sub(free_inside) + temporary),
        };
        go_on(told(CompactStep::Needs { bytes: needed, free }))?;
        match free {
            Some(free) if free < needed => Err(GraphError::NoRoom { needed, free }),
            _ => Ok(place),
        }
    }

    /// Approximate bytes of temporary files: packed rows of two orders of quads at a time.
    fn temporary_bytes(&self, state: &GraphState) -> u64 {
        /// Bytes per quad, in two orders and in pairs.
        const QUAD: u64 = 32;
        state.quads() * QUAD
    }

    /// Bytes of the extents that all trees need if they are written without gaps.
    fn packed_bytes(&self) -> u64 {
        let geometry = self.database().store().geometry();
        let trees = self.database().store().catalog_all().trees;
        let extents = |tree: &TreeId| self.pages_of(*tree).div_ceil(geometry.extent_pages.into());
        trees.keys().map(extents).sum::<u64>() * geometry.extent_bytes()
    }

    fn pages_of(&self, tree: TreeId) -> u64 {
        let extents = self.database().store().extents();
        let of_tree = extents.iter().filter(|(_, extent)| extent.tree == Some(tree));
        of_tree
            .map(|(_, extent)| extent.allocated.iter().map(|w| u64::from(w.count_ones())).sum::<u64>())
            .sum()
    }

    /// Writes a new generation beside the writers, brings it up to date, and switches.
    fn rewrite(
        self: &Arc<Self>,
        keep: Keep,
        place: BuildPlace,
        options: &CompactOptions,
        told: Told<'_>,
    ) -> Result<()> {
        let memory = self.database().memory();
        // Half of the free memory, as for a load beside queries, so that new queries find some.
        // With little memory the rewrite works in more and smaller pieces.
        let free = memory.free();
        let memory_bytes = (free / 2).max(LEAST_MEMORY);
        let _reserved = memory.reserve_leaving(ASKER, memory_bytes, LEFT_BYTES.min(free / 4))?;
        let _log = waiting(told, |waiter| Logging::begin(self, waiter))?;
        let done = self.write_and_switch(keep, place, memory_bytes, options, told);
        if done.is_err() {
            // If the trees cannot be dropped now, the next open drops them.
            let _ = drop_unfinished(self.database().store());
        }
        done
    }

    fn write_and_switch(
        self: &Arc<Self>,
        keep: Keep,
        place: BuildPlace,
        memory_bytes: u64,
        options: &CompactOptions,
        told: Told<'_>,
    ) -> Result<()> {
        let begun =
            waiting(told, |waiter| self.database().store().begin_build_beside(TREES, NEXT, place, waiter))?;
        let build = begun.ok_or(GraphError::Stopped)?;
        let cancel = AtomicBool::new(false);
        let listener = Listener { told, cancel: &cancel };
        let rewritten = waiting(told, |waiter| {
            let rewrite = Rewrite {
                database: self,
                keep,
                memory_bytes,
                threads: options.threads,
                sizes: options.sizes,
                renew_rows: options.renew_rows.unwrap_or(RENEW_ROWS),
                waiter,
                cancel: &cancel,
            };
            rewrite.run(build, &listener)
        });
        rewritten.map_err(of_load)?;
        let snapshot = self.database().store().snapshot();
        let next = GraphState::read_generation(&snapshot, snapshot.txn(), NEXT)?;
        self.catch_up(Arc::new(next), told)
    }

    /// Applies the changes of the log to the next generation, then switches to it.
    fn catch_up(self: &Arc<Self>, mut next: Arc<GraphState>, told: Told<'_>) -> Result<()> {
        let left = || self.changes.lock().as_ref().map_or(0, ChangeLog::len);
        let take = || self.changes.lock().as_mut().map_or(Ok(Vec::new()), ChangeLog::take);
        let (mut least, mut without) = (usize::MAX, 0);
        loop {
            let now = left();
            (least, without) = if now < least { (now, 0) } else { (least, without + 1) };
            go_on(told(CompactStep::CatchingUp(now as u64)))?;
            let begun = waiting(told, |waiter| self.begin_next(&next, waiter))?;
            let mut txn = begun.ok_or(GraphError::Stopped)?;
            txn.charge_to(&self.database().account("compact"));
            let is_last = left() <= LAST_CHANGES || without >= PATIENCE;
            loop {
                let changes = take()?;
                txn.replay(&changes)?;
                if changes.is_empty() || !is_last {
                    break;
                }
            }
            if is_last {
                txn.switch()?;
                txn.commit()?;
                return Ok(());
            }
            next = txn.state().clone();
            txn.commit()?;
        }
    }
}

/// Keeps the log of changes; dropping this drops the log.
struct Logging<'a>(&'a GraphDatabase);

impl<'a> Logging<'a> {
    fn begin(database: &'a Arc<GraphDatabase>, waiter: &Waiter<'_>) -> Result<Self> {
        // A transaction learns at its begin whether its changes are logged.
        let turn = database.begin_for(waiter)?.ok_or(GraphError::Stopped)?;
        let mut changes = database.changes.lock();
        if changes.is_some() {
            return Err(GraphError::CompactBusy);
        }
        *changes = Some(ChangeLog::default());
        drop(changes);
        drop(turn);
        Ok(Logging(database))
    }
}

impl Drop for Logging<'_> {
    fn drop(&mut self) {
        *self.0.changes.lock() = None;
    }
}

/// Passes on the progress of a rewrite.
struct Listener<'a> {
    told: Told<'a>,
    cancel: &'a AtomicBool,
}

impl LoadProgress for Listener<'_> {
    fn report(&self, progress: &Progress) {
        let (step, done, total) = (progress.phase.name(), progress.done, progress.total.unwrap_or(0));
        if (self.told)(CompactStep::Rewriting { step, done, total }).is_break() {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}

fn of_load(error: LoadError) -> GraphError {
    match error {
        LoadError::Cancelled => GraphError::Stopped,
        LoadError::Store(error) => error.into(),
        LoadError::Graph(error) => error,
        LoadError::DiskFull { path } => StoreError::Full { path }.into(),
        LoadError::Temp { path, source } => GraphError::Temp { path, source },
        LoadError::Syntax { .. }
        | LoadError::Input { .. }
        | LoadError::TooManyLeftOut { .. }
        | LoadError::Foreign { .. }
        | LoadError::Option { .. } => unreachable!("a rewrite reads no documents: {error}"),
    }
}

/// True for a shortage of room, memory or time, which may be over another day.
fn is_shortage(error: &GraphError) -> bool {
    matches!(
        error,
        GraphError::NoRoom { .. }
            | GraphError::ChangesLost
            | GraphError::CompactBusy
            | GraphError::Store(StoreError::Full { .. } | StoreError::Memory { .. } | StoreError::BuildBusy)
    )
}
