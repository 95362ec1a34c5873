//! The reader: how trees get pages. One per thread of a query; it carries the snapshot and the
//! meters.
//!
//! A page that is resident costs a load, a compare and a pin. A page in flight is waited for, also
//! when another thread started its read. An absent page is read in place by the thread that needs
//! it, and the read-ahead rules look at the miss.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use snowmelt_io::Class;

use crate::error::{Result, StoreError};
use crate::history::private::{Private, PrivatePage};
use crate::history::rebuild::rebuild;
use crate::history::snapshot::Snapshot;
use crate::history::versions::Seen;
use crate::journal::Loc;
use crate::page::{Damage, PageId, TreeId, header};
use crate::pool::PageRef;
use crate::pool::rule::Rule;
use crate::read::account::{Account, Shares};
use crate::read::activity::Activity;
use crate::read::core::Core;
use crate::read::fetch::Demand;
use crate::read::scan_ahead::ScanAhead;
use crate::read::visible::Sight;
use crate::read::wait_log::Wait;
use crate::read::waits::class_of;
use crate::store::Store;

/// Why pages are wished for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WishKind {
    /// The exact pages of a batch (rule 3).
    Planned,
    /// Leaves ahead of a scan (rule 4).
    Scan,
}

/// A wait that has begun.
struct Blocked {
    begun_ns: u64,
    /// Number of resets of all meters by then.
    resets: u64,
}

impl Blocked {
    fn begin(store: &Store) -> Blocked {
        Blocked { begun_ns: store.fetch.clock.now_ns(), resets: store.fetch.core.meters.resets() }
    }
}

/// The read that a reader waited for.
enum By {
    /// Its class, and the pages asked for with it.
    Stripe(Class, u32),
    /// The last change that a version is put together from.
    Journal(Option<Loc>),
}

/// A reader of pages as of a snapshot.
#[derive(Debug)]
pub struct Reader {
    store: Arc<Store>,
    /// The core of `store`, held to save an indirection.
    core: Arc<Core>,
    snapshot: Snapshot,
    /// The last commit whose pages it may see.
    txn: u64,
    /// Its activity, added to its accounts when it is dropped.
    pub meters: Activity,
    shares: Shares,
    /// Pages and reads that were already counted for trees.
    told: (u64, u64),
}

impl Reader {
    /// A reader as of `snapshot`.
    pub fn new(store: &Arc<Store>, snapshot: Snapshot) -> Reader {
        let txn = snapshot.committed_txn();
        debug_assert!(txn <= snapshot.txn(), "a snapshot sees at least what it was taken over");
        Reader {
            store: store.clone(),
            core: store.fetch.core.clone(),
            snapshot,
            txn,
            meters: Activity::default(),
            shares: Shares::new(store.fetch.core.meters.other()),
            told: (0, 0),
        }
    }

    /// From now on it reads on behalf of `account`.
    pub fn charge_to(&mut self, account: &Arc<Account>) {
        self.flush();
        self.snapshot.held_by(|| account.named_one().to_owned());
        self.shares = Shares::new(account);
    }

    /// On whose behalf it reads.
    pub fn account(&self) -> &Arc<Account> {
        self.shares.account()
    }

    /// The store it reads from.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The snapshot it reads as of.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The page `id` of `tree`, pinned and verified. Waits for the device when it is not resident.
    ///
    /// Errors: damage, a failed read, all frames pinned for too long.
    #[inline]
    pub fn page(&mut self, tree: TreeId, id: PageId) -> Result<PageRef> {
        self.meters.pages += 1;
        if let Some(private) = self.snapshot.private_pages()
            && let Some(page) = private.get(id)
        {
            let page = page.clone();
            return self.private_page(tree, id, &page);
        }
        let page = match self.core.pages.pool.quick(id) {
            Some(page) => page,
            None => self.page_slow(tree, id).map_err(|e| self.too_old_or(e))?,
        };
        let head = header(&page);
        // Whatever went wrong, a page that a later commit wrote is never given out.
        if head.txn() > self.txn {
            return Err(StoreError::SnapshotTooOld { txn: self.txn });
        }
        let owner = head.tree();
        if owner == tree { Ok(page) } else { Err(self.too_old_or(self.foreign(id, owner, tree))) }
    }

    /// The error that the snapshot was given up, if it was: it may be the cause of `e`.
    #[cold]
    fn too_old_or(&self, e: StoreError) -> StoreError {
        if self.snapshot.is_cancelled() { StoreError::SnapshotTooOld { txn: self.txn } } else { e }
    }

    #[cold]
    fn private_page(&self, tree: TreeId, id: PageId, page: &PrivatePage) -> Result<PageRef> {
        if page.tree != tree {
            return Err(self.foreign(id, page.tree, tree));
        }
        match &page.state {
            Private::Memory(state) => Ok(PageRef::from_memory(state.clone())),
            Private::Journal(loc) => {
                let state = rebuild(&self.store.commits.journal, id, self.snapshot.txn(), &[*loc])?;
                Ok(PageRef::from_memory(Arc::new(state)))
            }
        }
    }

    /// A version that only the journal has; kept in memory if there is room.
    fn journaled(&self, id: PageId, txn: u64, way: &[Loc]) -> Result<Option<PageRef>> {
        let commits = &self.store.commits;
        let versions = &self.core.pages.versions;
        let state = match rebuild(&commits.journal, id, txn, way) {
            Ok(state) => Arc::new(state),
            // It may have been written back since we looked, and its place in the journal used
            // again.
            Err(e) => match versions.see(id, self.txn) {
                Seen::Journal(now, _) if now == txn => return Err(e),
                _ => return Ok(None),
            },
        };
        if versions.in_memory() < commits.version_pages {
            versions.keep(id, txn, state.clone());
        }
        Ok(Some(PageRef::from_memory(state)))
    }

    /// The error for a page that another tree has.
    #[cold]
    pub(crate) fn foreign(&self, id: PageId, found: TreeId, expected: TreeId) -> StoreError {
        self.core.damaged(id, Damage::WrongTree { found: found.0, expected: expected.0 })
    }

    #[cold]
    fn page_slow(&mut self, tree: TreeId, id: PageId) -> Result<PageRef> {
        self.note_resets();
        let store = self.store.clone();
        let (fetch, core) = (&store.fetch, &store.fetch.core);
        loop {
            let mark = core.failures.mark();
            let look = core.pages.look(id, self.txn);
            // The versions that a snapshot given up should see may be gone, with an older state
            // still on the stripe.
            if self.snapshot.is_cancelled() {
                return Err(StoreError::SnapshotTooOld { txn: self.txn });
            }
            match look {
                Sight::Here(page, brought) => {
                    if let Some(brought) = brought {
                        fetch.used_first(tree, id, brought);
                    }
                    return Ok(page);
                }
                Sight::InFlight(coming) => {
                    self.meters.waits += 1;
                    let blocked = Blocked::begin(&store);
                    if coming.rule.is_some() {
                        fetch.hurry(&[id], self.account().priority().demand());
                    }
                    core.pages.pool.wait(id);
                    self.was_blocked(blocked, tree, id, By::Stripe(class_of(coming), coming.pages));
                    if let Some(e) = core.failures.since(mark, id) {
                        return Err(e);
                    }
                }
                Sight::Absent => {
                    self.check_owner(tree, id)?;
                    let blocked = Blocked::begin(&store);
                    let priority = self.account().priority();
                    let demanded = fetch.demand(tree, id, priority, &mut self.meters);
                    // A read of our own through the queue is one wait from begin to end.
                    let pages = if let Ok(Demand::Started(pages)) = &demanded { *pages } else { 1 };
                    match &demanded {
                        Ok(Demand::Started(_)) => core.pages.pool.wait(id),
                        Ok(Demand::Taken) => {
                            self.meters.waits += 1;
                            core.pages.pool.wait(id);
                        }
                        _ => {}
                    }
                    self.was_blocked(blocked, tree, id, By::Stripe(priority.demand(), pages));
                    if let Demand::Page(page) = demanded? {
                        return Ok(page);
                    }
                    if let Some(e) = core.failures.since(mark, id) {
                        return Err(e);
                    }
                }
                Sight::Journal(txn, way) => {
                    let blocked = Blocked::begin(&store);
                    let page = self.journaled(id, txn, &way);
                    self.was_blocked(blocked, tree, id, By::Journal(way.last().copied()));
                    if let Some(page) = page? {
                        return Ok(page);
                    }
                }
                Sight::Nowhere => return Err(core.damaged(id, Damage::NotAllocated)),
            }
        }
    }

    /// Counts a wait that has ended, and writes it down where that is wanted.
    fn was_blocked(&mut self, blocked: Blocked, tree: TreeId, page: PageId, by: By) {
        let fetch = &self.store.fetch;
        let ns = fetch.clock.now_ns() - blocked.begun_ns;
        self.meters.wait_ns += ns;
        let place = fetch.geometry.place(page);
        let (class, pages, file, offset) = match by {
            By::Stripe(class, pages) => (class, pages, place.stripe as u64, place.offset),
            By::Journal(loc) => (Class::Journal, 1, loc.map_or(0, |l| l.file), loc.map_or(0, |l| l.offset)),
        };
        // Most of it may have been before a reset.
        if self.core.meters.resets() == blocked.resets {
            match class {
                Class::Journal => fetch.waits.of_journal(ns),
                class => fetch.waits.of_stripe(place.stripe, class, ns),
            }
        }
        if let Some(log) = self.account().waits() {
            let name = self.snapshot.catalog().trees.get(&tree).cloned().unwrap_or_default();
            let Blocked { begun_ns, .. } = blocked;
            log.note(&Wait { begun_ns, ns, class, tree: &name, page: page.0, pages, file, offset });
        }
    }

    /// Only pages that were written, and for this tree, are read.
    fn check_owner(&self, tree: TreeId, id: PageId) -> Result<()> {
        let core = &self.core;
        let owner = core.space.read().owner(id);
        match owner {
            Some(owner) if owner == tree => Ok(()),
            Some(owner) => Err(self.foreign(id, owner, tree)),
            None => Err(core.damaged(id, Damage::NotAllocated)),
        }
    }

    /// Starts the reads of those of `pages` (sorted, distinct) that are absent, at most
    /// [`Reader::wish_limit`] of them, and never waits. What the warm list of a device with an
    /// arm still waits for is left to it. Returns how many were started. A hint: failures show
    /// when the page is asked for.
    pub fn wish(&mut self, tree: TreeId, pages: &[PageId], kind: WishKind) -> u64 {
        let rule = match kind {
            WishKind::Planned => Rule::Planned,
            WishKind::Scan => Rule::Scan,
        };
        let store = self.store.clone();
        if !store.fetch.read_ahead.is_on(rule) {
            return 0;
        }
        self.note_resets();
        let pool = &store.fetch.core.pages.pool;
        if store.fetch.can_hurry() {
            // Guessed reads of these pages, still under way, are now known to be needed.
            let guessed: Vec<PageId> = pages.iter().copied().filter(|p| pool.is_in_flight(*p)).collect();
            if !guessed.is_empty() {
                store.fetch.hurry(&guessed, self.account().priority().ahead(rule));
            }
        }
        let space = store.fetch.core.space.read();
        let mine = |p: &PageId| pool.is_absent(*p) && space.owner(*p) == Some(tree);
        let absent: Vec<PageId> = pages.iter().copied().filter(mine).take(self.wish_limit()).collect();
        let absent = &absent[..absent.len().min(pool.plannable())];
        drop(space);
        if absent.is_empty() {
            return 0;
        }
        store.fetch.plan(tree, absent, rule, self.account().priority(), &mut self.meters)
    }

    /// Most pages worth wishing for at a time: a quarter of the frames.
    pub fn wish_limit(&self) -> usize {
        (self.core.pages.pool.frame_count() as usize / 4).max(1)
    }

    /// Rule 4 for a scan that begins: with 0 leaves when it is off.
    pub fn scan_ahead(&self) -> ScanAhead {
        ScanAhead::new(self.store.geometry, self.scan_leaves(), self.store.fetch.read_ahead.scan_after)
    }

    /// Leaves that a scan may read ahead: the limit of rule 4, 0 when it is off.
    pub fn scan_leaves(&self) -> u32 {
        let rules = &self.store.fetch.read_ahead;
        if rules.scan { rules.scan_leaves.min(self.wish_limit() as u32) } else { 0 }
    }

    /// True when every page of the tree is resident, so that wishing is pointless.
    pub fn resident(&self, tree: TreeId) -> bool {
        self.core.meters.with(tree, |m| m.resident() >= m.pages.load(Relaxed))
    }

    /// Pages of the tree, and how many of them are resident.
    pub fn residency(&self, tree: TreeId) -> (u64, u64) {
        self.core.meters.with(tree, |m| (m.pages.load(Relaxed), m.resident()))
    }

    /// Pages of the tree, and the share of visits to leaves that are expected to find them
    /// absent.
    pub fn expected_absent(&self, tree: TreeId) -> (u64, f64) {
        self.core.meters.with(tree, |m| {
            let pages = m.pages.load(Relaxed);
            (pages, m.steps.visits.absent_share(pages, m.resident()))
        })
    }

    /// Counts `rows` rows found in `tree`, and what was visited for them since the last call.
    pub fn touch(&mut self, tree: TreeId, rows: u64) {
        let Activity { pages, disk, .. } = self.meters;
        let (pages_before, disk_before) = std::mem::replace(&mut self.told, (pages, disk));
        self.core.meters.with(tree, |m| {
            m.steps.touches.fetch_add(rows, Relaxed);
            m.steps.visits.add(pages - pages_before, disk - disk_before);
        });
    }

    /// Adds the meters to its accounts and sets them to zero.
    pub fn flush(&mut self) {
        assert!(self.meters.spec_disk <= self.meters.disk, "reads ahead are among the reads");
        self.told = (0, 0);
        self.shares.settle(std::mem::take(&mut self.meters));
    }

    /// Called before anything is read: where an account has been reset since, what was done so
    /// far is not to be counted.
    fn note_resets(&mut self) {
        self.shares.note_resets(&self.meters);
    }

    /// The error for a page whose header and checksum are right but whose content makes no
    /// sense to its tree.
    pub fn damaged(&self, id: PageId, why: impl Into<String>) -> StoreError {
        self.core.damaged(id, Damage::Content(why.into()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.flush();
    }
}
