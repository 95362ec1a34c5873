//! Shared parts of all commits: the states, the journal, the super-block, the live snapshots.
//! Writers, readers and the checkpointer meet here.
//!
//! Lock order: the writers' turn, then `order`, then `block`; none is held while a device works.
//! Locks that may be held meanwhile are [`LongLock`]s: the lengths of the stripes, the making of a
//! journal file, the turn to write the super-block, the checkpointer's.

pub(crate) mod checkpoint;
mod pace;
pub(crate) mod room;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::commit::checkpoint::Checkpointer;
use crate::commit::room::JournalRoom;
use crate::error::{Result, StoreError};
use crate::files::reserve::{MayUse, Reserve};
use crate::format::catalog::{Catalog, Record};
use crate::format::lineage::Lineage;
use crate::history::snapshot::{Snapshot, Snapshots};
use crate::history::state::{State, States};
use crate::history::versions::Readable;
use crate::journal::meters::JournalStats;
use crate::journal::record::Packed;
use crate::journal::{Appended, Journal, Room};
use crate::page::PAGE_BYTES;
use crate::read::fetch::Fetch;
use crate::settings::config::{Checkpoints, StoreConfig};
use crate::space::meta_pages::{MetaPlacing, MetaState};
use crate::superblock::SuperBlock;
use crate::superblock::current::CurrentBlock;
use crate::sync::bell::Bell;
use crate::sync::long_lock::LongLock;

/// See the head of the file.
pub(crate) struct Commits {
    pub dir: PathBuf,
    pub config: StoreConfig,
    pub fetch: Arc<Fetch>,
    pub states: States,
    pub snapshots: Arc<Snapshots>,
    pub journal: Arc<Journal>,
    /// The current super-block.
    pub block: Arc<CurrentBlock>,
    /// Where catalog and map are kept; only checkpoints change it.
    pub meta: Mutex<MetaState>,
    pub lengths: LongLock<Lengths>,
    pub spare: Reserve,
    /// Bytes of journal a second of recovery takes.
    pub replayed_per_s: u64,
    /// Why nothing may be written any more.
    pub poison: Arc<OnceLock<Arc<StoreError>>>,
    /// Held while a commit is appended and published, and while a checkpoint is begun or takes
    /// the map: neither sees half of the other.
    pub order: Mutex<()>,
    /// Checkpoints begun: a commit packed before one may hold diffs whose images are on their
    /// way out.
    pub generation: AtomicU64,
    /// Lowest number the next transaction may have.
    pub next_txn: AtomicU64,
    /// Lowest number the next tree may have: those before belong to a build that the catalog
    /// does not know of.
    pub next_tree: AtomicU32,
    /// When set, the next checkpoint is made even of a state that is durable already, with catalog
    /// and map at this place.
    pub meta_again: Mutex<Option<MetaPlacing>>,
    pub checkpointer: Checkpointer,
    /// Waiters for room in the journal.
    pub room: JournalRoom,
    /// Rung when there is background work to do at once.
    pub bell: Bell,
    /// Drawn at this opening: the commits are of this lineage.
    pub lineage: u64,
    /// Page versions kept in memory.
    pub version_pages: u64,
}

/// Lengths of the stripes. The lock is held throughout a change: a stripe must not be cut to fit an
/// old map after another thread has lengthened it and written there.
#[derive(Default)]
pub(crate) struct Lengths {
    /// Extents that the stripes are long enough for.
    extents: u64,
    /// Extents that they must stay long enough for: the map that a checkpoint is about to make
    /// durable has them.
    floor: u64,
}

impl Commits {
    /// A snapshot of the newest durable state.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.take(self.config.seams.clock.now_ns(), || self.states.visible())
    }

    /// The number of the next tree after those of a catalog.
    pub fn tree_number(&self, catalog: &Catalog) -> u32 {
        catalog.next_tree.max(self.next_tree.load(Ordering::Acquire))
    }

    /// The oldest transaction that a reader reads as of, or may from now on.
    pub fn oldest_readable(&self) -> u64 {
        let visible = self.states.visible().txn;
        self.snapshots.oldest().map_or(visible, |oldest| oldest.min(visible))
    }

    /// As of which transactions a reader reads, or may from now on.
    pub fn readable(&self) -> Readable {
        let visible = self.states.visible().txn;
        let live = self.snapshots.live();
        let oldest = live.first().map_or(visible, |oldest| visible.min(*oldest));
        let is_all = live.len() < Snapshots::MOST_LISTED;
        Readable { oldest, live, visible: if is_all { visible } else { 0 } }
    }

    /// An error if nothing may be written any more.
    pub fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(StoreError::poisoned(cause)),
            None => Ok(()),
        }
    }

    /// Remembers why nothing may be written any more. A full disk is no reason, nor is what
    /// passes: nothing that was acknowledged is in doubt.
    pub fn poisoned_by(&self, e: &StoreError) {
        if !e.is_passing() {
            let cause = Arc::new(e.clone());
            if self.poison.set(cause).is_ok() {
                snowmelt_io::notice(&format!("{e}; nothing is written from now on, reads go on"));
            }
        }
    }

    /// An error, told once, when a file of the database no longer has its name: what would be
    /// written to it is lost with the process.
    pub fn look(&self) -> Result<()> {
        self.journal.look().inspect_err(|e| self.poisoned_by(e))
    }

    /// As [`Commits::look`], but only if the last look at all files was a while ago.
    pub fn look_when_due(&self) -> Result<()> {
        if self.journal.is_look_due() && !self.config.is_read_only() { self.look() } else { Ok(()) }
    }

    /// Makes room in the journal. The super-block learns of new files, so that the loss of one is
    /// noticed.
    pub fn reserve(&self, records: &[Packed], may_use: MayUse) -> Result<Room> {
        // First on the stripes: what is committed can be written back, and so the journal be
        // used again.
        let extents = self.fetch.core.space.read().len();
        let longer = match self.lengthen(extents, extents) {
            Err(StoreError::Full { .. }) if may_use == MayUse::Reserve && self.spare.release() => {
                self.lengthen(extents, extents)
            }
            other => other,
        };
        longer.inspect_err(|e| self.poisoned_by(e))?;
        let room = match self.journal.reserve(records) {
            Err(e @ StoreError::Full { .. }) => self.reserve_on_full_disk(records, e)?,
            other => other?,
        };
        if self.journal.slots() > self.block.lock().slots
            && let Err(e) = self.write_slots()
        {
            self.journal.give_back(room);
            return Err(e);
        }
        Ok(room)
    }

    /// As [`Commits::reserve`], when there is no room for another file: a checkpoint lets files be
    /// used again. All that is committed is sure to be written back, so the last file may take the
    /// room of the reserve.
    fn reserve_on_full_disk(&self, records: &[Packed], full: StoreError) -> Result<Room> {
        if self.config.journal.checkpoints == Checkpoints::Continuous {
            self.checkpoint_all(&|| true)?;
        }
        match self.journal.reserve(records) {
            Err(StoreError::Full { .. }) if self.spare.release() => self.journal.reserve(records),
            Err(StoreError::Full { .. }) => Err(full),
            other => other,
        }
    }

    /// Tells the super-block of journal files that were made ahead, so that no commit has to.
    pub fn note_slots(&self) -> Result<()> {
        let known = self.block.lock().slots;
        if self.journal.slots() > known { self.write_slots() } else { Ok(()) }
    }

    fn write_slots(&self) -> Result<()> {
        let slots = |block: &SuperBlock| {
            let tail = self.journal.synced_place();
            SuperBlock { slots: self.journal.slots(), ..block.clone() }.with_tail(tail)
        };
        self.switch_block(slots).inspect_err(|e| self.poisoned_by(e))
    }

    /// Tells the super-block how far the journal is durable, if it does not know.
    pub fn write_tail(&self) -> Result<()> {
        let tail = self.journal.synced_place();
        if tail.sequence <= self.block.lock().synced {
            return Ok(());
        }
        self.switch_block(|block| block.clone().with_tail(tail)).inspect_err(|e| self.poisoned_by(e))
    }

    /// Makes a new super-block durable.
    pub fn switch_block(&self, change: impl FnOnce(&SuperBlock) -> SuperBlock) -> Result<()> {
        self.block.switch(&self.journal.meters.block_hold, &self.config.seams.clock, change)
    }

    /// Bytes of journal that make a recovery take as long as it may.
    pub fn bound_bytes(&self) -> u64 {
        let settings = &self.config.journal;
        let bytes = (settings.recovery_s.max(0.0) * self.replayed_per_s as f64) as u64;
        // Files are used again whole: with fewer than a few, all writers would wait for the last
        // one.
        bytes.max(4 * settings.file_bytes).min(settings.most_bytes)
    }

    /// Bytes of journal a recovery would read now.
    pub fn bytes_to_recover(&self) -> u64 {
        let first = self.block.lock().journal;
        self.journal.bytes_since(first)
    }

    /// Appends the records of a commit and has `publish` publish it, in one step as far as
    /// checkpoints see; not if a checkpoint was begun since `generation`: then the commit must
    /// be packed again.
    pub fn append(
        &self,
        records: &[Packed],
        room: Room,
        state: &Arc<State>,
        generation: u64,
        publish: impl FnOnce(&Appended),
    ) -> Option<Appended> {
        let order = self.order.lock();
        if self.generation.load(Ordering::Acquire) != generation {
            drop(order);
            self.journal.give_back(room);
            return None;
        }
        let appended = self.journal.append(records, room, state.txn);
        assert_eq!(appended.places.len(), records.len(), "each record has its place");
        assert!(state.txn > self.states.visible().txn, "what is appended is newer than what is visible");
        publish(&appended);
        self.states.append(state.clone());
        drop(order);
        self.journal.meters.committed();
        self.fetch.stripes.note_commit();
        let versions = &self.fetch.core.pages.versions;
        if versions.in_memory() > self.version_pages {
            versions.shrink(self.version_pages / 4 * 3, self.states.visible().txn);
        }
        Some(appended)
    }

    /// The catalog record that the first commit of this opening adds on this state; `None` when it
    /// is there already.
    pub fn lineage_record(&self, base: &State) -> Result<Option<Record>> {
        if Lineage::is_of(&base.catalog, self.lineage) {
            return Ok(None);
        }
        let lineage = self.lineage_of(base)?;
        Ok(lineage.going_on(self.lineage, base.txn).map(|lineage| lineage.record()))
    }

    /// The lineage of a state.
    pub fn lineage_of(&self, state: &State) -> Result<Lineage> {
        let identity = self.block.lock().identity;
        Lineage::from_catalog(identity, state.txn, &state.catalog).map_err(|why| {
            let path = self.dir.join(crate::superblock::FILE_NAME);
            StoreError::Corrupt { path, why: why.into() }
        })
    }

    /// Makes an appended commit durable and visible. When that fails, it is not known what the
    /// device has of it.
    pub fn wait(&self, state: &Arc<State>, sequence: u64) -> Result<()> {
        self.sync_and_show(state, sequence).map_err(|e| match e {
            StoreError::Poisoned { cause } => StoreError::OutcomeUnknown { cause },
            e => StoreError::OutcomeUnknown { cause: Arc::new(e) },
        })
    }

    fn sync_and_show(&self, state: &Arc<State>, sequence: u64) -> Result<()> {
        self.journal.sync_to(sequence)?;
        assert!(self.journal.synced_place().sequence >= sequence, "what was synced is durable");
        self.states.show(state.clone());
        Ok(())
    }

    /// Makes all appended commits durable and visible, also those that no thread waits for.
    pub fn settle(&self) -> Result<()> {
        if self.config.is_read_only() {
            return Ok(());
        }
        let (state, sequence) = {
            let _order = self.order.lock();
            (self.states.appended(), self.journal.last_sequence())
        };
        if self.journal.has_unsynced() || self.states.visible().txn < state.txn {
            self.sync_and_show(&state, sequence)?;
        }
        Ok(())
    }

    /// Makes the stripes as long as the map and the super-block need, and no longer.
    pub fn set_lengths(&self) -> Result<()> {
        let mut lengths = self.lengths.lock();
        let extents = self.fetch.core.space.read().len().max(self.block.lock().extents).max(lengths.floor);
        lengths.extents = 0;
        assert!(extents >= lengths.floor, "the stripes hold the map that is being written");
        self.fetch.stripes.set_extents(self.fetch.geometry, extents)?;
        lengths.extents = extents;
        Ok(())
    }

    /// Makes the stripes long enough for the extents before `end`, with room for them: before
    /// any of them is written. For those before `ahead`, if there is room for so many.
    pub fn lengthen(&self, end: u64, ahead: u64) -> Result<()> {
        assert!(ahead >= end, "extents ahead lie behind those that are needed");
        let mut lengths = self.lengths.lock();
        if lengths.extents >= end {
            return Ok(());
        }
        let (stripes, geometry) = (&self.fetch.stripes, self.fetch.geometry);
        lengths.extents = match stripes.lengthen(geometry, ahead) {
            Ok(()) => ahead,
            Err(_) if ahead > end => stripes.lengthen(geometry, end).map(|()| end)?,
            Err(e) => return Err(e),
        };
        Ok(())
    }

    /// Keeps the stripes from being shorter than `extents` extents need, until it is told 0.
    pub fn keep_length(&self, extents: u64) {
        self.lengths.lock().floor = extents;
    }

    /// Why writers wait or will, if they do for longer than a moment.
    pub fn stalled(&self) -> Option<String> {
        /// A checkpoint in a hurry takes less.
        const LONG_NS: u64 = 10_000_000_000;
        if let Some(e) = self.checkpointer.stalled() {
            return Some(e.to_string());
        }
        let ns = self.room.waited_ns(&self.config.seams.clock);
        (ns >= LONG_NS).then(|| {
            format!(
                "writers have waited for {} s until a checkpoint gives back journal, which is at {} of {} bytes",
                ns / 1_000_000_000,
                self.journal.bytes_in_use(),
                self.bound_bytes()
            )
        })
    }

    /// Counters of commits, journal and checkpoints.
    pub fn stats(&self) -> JournalStats {
        let (versioned_pages, versions, versions_in_memory) = self.fetch.core.pages.versions.counts();
        let block = self.block.lock().clone();
        let bytes_to_recover = self.journal.bytes_since(block.journal);
        // A store that is open for reading only is well.
        let oldest = self.snapshots.oldest_live();
        let held = oldest.as_ref().filter(|oldest| oldest.txn < self.states.visible().txn);
        let held_bytes =
            held.map_or(0, |oldest| self.journal.bytes_since(self.journal.first_file_after(oldest.txn)));
        let (used_bytes, free_bytes) = self.journal.file_bytes();
        let now_ns = self.config.seams.clock.now_ns();
        let failure = self.poison.get().filter(|why| !matches!(***why, StoreError::ReadOnly { .. }));
        JournalStats {
            bytes_to_recover,
            recovery_s: bytes_to_recover as f64 / self.replayed_per_s as f64,
            bound_bytes: self.bound_bytes(),
            versioned_pages,
            versions,
            versions_in_memory,
            versions_bytes: self.fetch.core.pages.versions.memory_pages() * PAGE_BYTES as u64,
            oldest_reader: oldest.as_ref().map(|oldest| oldest.txn),
            oldest_reader_ns: oldest.as_ref().map_or(0, |o| now_ns.saturating_sub(o.since_ns)),
            oldest_reader_account: oldest.map(|oldest| oldest.holder).unwrap_or_default(),
            held_bytes,
            file_bytes: used_bytes + free_bytes,
            newest: self.states.visible().txn,
            checkpointed: block.txn,
            poisoned: failure.map(|e| e.to_string()),
            stalled: self.stalled(),
            write_cost: self.journal.write_cost(),
            room_waits: self.room.waits(),
            ..self.journal.meters.read()
        }
    }
}
