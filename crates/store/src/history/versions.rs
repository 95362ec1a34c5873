//! The version table: pages of which some snapshot must see another state than the one on the
//! stripe.
//!
//! Page → versions in the order of their transactions. A reader finds the `versioned` bit in
//! the page's word and asks here; it gets the newest version its snapshot may see, or nothing,
//! which means the page on the stripe. Versions enter by commits and by recovery, and leave
//! when the checkpointer has written them back. A version is in memory, made or (after a
//! recovery) as changes that wait, or only in the journal: there the page's *history* leads to
//! it, an image and the diffs after it.
//!
//! Invariants: a version is immutable once published; a page has its bit set exactly while it
//! has versions (the bit changes under the lock of the page's shard); every version's history
//! begins with an image and lies in files that are kept; so does, while a checkpoint runs, the
//! image that the first change after its state builds on, though commits may have dropped the
//! versions that need it: recovery begins there.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use snowmelt_io::Clock;

use crate::history::step::Step;
use crate::history::waiting::WaitingPage;
use crate::journal::Loc;
use crate::page::{PAGE_BYTES, PageBuf, PageId};
use crate::sync::longest::Longest;

/// Locks the pages are spread over.
const SHARDS: usize = 1024;

/// The version table.
#[derive(Debug)]
pub(crate) struct Versions {
    shards: Box<[RwLock<FxHashMap<PageId, Chain>>]>,
    /// Versions, and those in memory.
    count: AtomicU64,
    in_memory: AtomicU64,
    /// Steps of all histories.
    steps: AtomicU64,
    /// Bytes of changes that wait.
    waiting: AtomicU64,
    /// Where the next search for versions to drop from memory begins.
    hand: AtomicU64,
    /// The transaction as of which a checkpoint under way writes pages; `u64::MAX` while there
    /// is none.
    recovery_from: AtomicU64,
}

/// Versions of one page, oldest first.
#[derive(Debug, Default)]
struct Chain {
    versions: Vec<Version>,
    /// Changes in the journal since the image that the oldest version needs.
    history: Vec<Step>,
    /// Bytes of diffs since the last image.
    diff_bytes: u32,
    /// The page was written back: the next change must be an image.
    needs_image: bool,
}

#[derive(Debug)]
struct Version {
    txn: u64,
    state: VersionState,
}

#[derive(Debug)]
enum VersionState {
    /// Only in the journal.
    Journal,
    Memory(Arc<PageBuf>),
    /// In memory, to be made. The page's history is without what waits here.
    Waiting(Box<WaitingPage>),
}

/// As of which transactions a reader reads, or may from now on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readable {
    /// No reader reads as of an earlier one.
    pub oldest: u64,
    /// Those that a reader reads as of, ascending; not all when there are many.
    pub live: Vec<u64>,
    /// Readers to come read as of this one or a later one; 0 when `live` is not all.
    pub visible: u64,
}

impl Readable {
    /// As of this one and all later ones.
    #[cfg(test)]
    pub fn since(oldest: u64) -> Readable {
        Readable { oldest, ..Readable::default() }
    }

    /// Whether a reader may see the version of transaction `txn` of a page that has a next one.
    fn may_see(&self, txn: u64, next: u64) -> bool {
        let i = self.live.partition_point(|live| *live < txn);
        next > self.visible || self.live.get(i).is_some_and(|live| *live < next)
    }
}

/// A page as a snapshot sees it.
#[derive(Debug)]
pub(crate) enum Seen {
    /// The page on the stripe.
    Stripe,
    Memory(Arc<PageBuf>),
    /// The version of this transaction, to be put together from these changes.
    Journal(u64, Vec<Loc>),
}

impl Default for Versions {
    fn default() -> Self {
        Versions {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            count: AtomicU64::new(0),
            in_memory: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            hand: AtomicU64::new(0),
            recovery_from: AtomicU64::new(u64::MAX),
        }
    }
}

impl Versions {
    /// Keeps what a recovery as of `txn` needs: one may begin there once the checkpoint under way
    /// has ended. `None` when there is no checkpoint. No commit publishes meanwhile.
    pub fn keep_from(&self, txn: Option<u64>) {
        self.recovery_from.store(txn.unwrap_or(u64::MAX), Relaxed);
    }

    fn shard(&self, page: PageId) -> &RwLock<FxHashMap<PageId, Chain>> {
        &self.shards[page.0 as usize % SHARDS]
    }

    /// Takes `n` off one of the counts. One that wrapped would hold commits up for ever.
    fn less(count: &AtomicU64, n: u64) {
        let before = count.fetch_sub(n, Relaxed);
        assert!(before >= n, "versions and changes are counted as they come and go");
    }

    /// Adds the state of `page` as of `txn`, which must be newer than the versions there are;
    /// `mark` sets the page's bit. `step` is the change in the journal; without one the version
    /// can only be in memory. Versions that no reader can see are dropped: a page that every commit
    /// changes keeps few, also while an old state is held. (A checkpoint that meant to write one
    /// that was the oldest leaves the page to the next: its newer version is in the journal. It
    /// never means to write one between the oldest and the newest: no reader older than those who
    /// see the oldest is left.)
    pub fn publish(
        &self,
        page: PageId,
        txn: u64,
        state: Option<Arc<PageBuf>>,
        step: Option<Step>,
        readable: &Readable,
        mark: impl FnOnce(),
    ) {
        let mut pages = self.shard(page).write();
        let chain = pages.entry(page).or_default();
        assert!(
            chain.versions.last().is_none_or(|v| v.txn < txn),
            "versions of a page are published in order"
        );
        assert!(state.is_some() || step.is_some(), "a version is somewhere");
        if let Some(step) = step {
            match step.diff_bytes {
                Some(bytes) => chain.diff_bytes += bytes,
                None => (chain.diff_bytes, chain.needs_image) = (0, false),
            }
            assert!(step.diff_bytes.is_none() || !chain.history.is_empty(), "a diff follows an image");
            assert_eq!(step.txn, txn, "a version's change is of its transaction");
            assert!(
                chain.history.last().is_none_or(|last| last.txn < txn),
                "the changes of a page are published in order"
            );
            chain.history.push(step);
            self.steps.fetch_add(1, Relaxed);
        }
        self.add(chain, txn, state.map_or(VersionState::Journal, VersionState::Memory));
        let seen = chain.versions.partition_point(|v| v.txn <= readable.oldest).saturating_sub(1);
        self.drop_first(chain, seen);
        if seen > 0 {
            let oldest = chain.versions[0].txn;
            self.prune(chain, oldest);
        }
        self.drop_between(chain, readable);
        debug_assert!(
            chain.versions.is_sorted_by(|a, b| a.txn < b.txn),
            "a page has a version of a transaction once"
        );
        assert!(chain.versions.last().is_some_and(|v| v.txn == txn), "the newest version stays");
        mark();
    }

    /// Puts in the only version of a page that recovery found; `history` is without what waits.
    pub fn restore(
        &self,
        page: PageId,
        txn: u64,
        waiting: Option<WaitingPage>,
        history: Vec<Step>,
        mark: impl FnOnce(),
    ) {
        let mut chain = Chain { history, needs_image: true, ..Chain::default() };
        self.waiting.fetch_add(waiting.as_ref().map_or(0, |w| w.bytes() as u64), Relaxed);
        self.add(
            &mut chain,
            txn,
            waiting.map_or(VersionState::Journal, |w| VersionState::Waiting(Box::new(w))),
        );
        chain.prune(txn, u64::MAX);
        self.steps.fetch_add(chain.history.len() as u64, Relaxed);
        let before = self.shard(page).write().insert(page, chain);
        assert!(before.is_none(), "recovery finds one version of a page");
        mark();
    }

    /// Adds the newest version of a page.
    fn add(&self, chain: &mut Chain, txn: u64, state: VersionState) {
        debug_assert!(chain.versions.last().is_none_or(|v| v.txn < txn), "the newest comes last");
        self.count.fetch_add(1, Relaxed);
        self.in_memory.fetch_add(u64::from(state.is_in_memory()), Relaxed);
        chain.versions.push(Version { txn, state });
    }

    /// Drops the `n` oldest versions of a page.
    fn drop_first(&self, chain: &mut Chain, n: usize) {
        assert!(n <= chain.versions.len(), "only versions that are there are dropped");
        for v in chain.versions.drain(..n) {
            Self::less(&self.count, 1);
            Self::less(&self.in_memory, v.state.is_in_memory().into());
            if let VersionState::Waiting(w) = v.state {
                Self::less(&self.waiting, w.bytes() as u64);
            }
        }
    }

    /// Drops versions behind the oldest that no reader can see, and changes that only they need.
    fn drop_between(&self, chain: &mut Chain, readable: &Readable) {
        let before = chain.versions.len();
        let mut at = 1;
        while at + 1 < chain.versions.len() {
            let (txn, next) = (chain.versions[at].txn, chain.versions[at + 1].txn);
            if readable.may_see(txn, next) {
                at += 1;
                continue;
            }
            let gone = chain.versions.remove(at);
            debug_assert!(!matches!(gone.state, VersionState::Waiting(_)), "only the oldest waits");
            Self::less(&self.count, 1);
            Self::less(&self.in_memory, gone.state.is_in_memory().into());
        }
        if chain.versions.len() < before {
            let (oldest, next) = (chain.versions[0].txn, chain.versions[1].txn);
            let kept = chain.history.partition_point(|s| s.txn <= oldest);
            let needed = chain.image_of(next);
            if kept < needed {
                chain.history.drain(kept..needed);
                Self::less(&self.steps, (needed - kept) as u64);
            }
        }
    }

    /// Drops the states from memory of the first `n` versions, those up to `durable`.
    fn leave(&self, chain: &mut Chain, n: usize, durable: u64) {
        assert!(!chain.history.is_empty(), "a version that leaves memory is in the journal");
        for i in 0..n {
            let v = &mut chain.versions[i];
            if v.txn > durable || !v.state.is_in_memory() {
                continue;
            }
            Self::less(&self.in_memory, 1);
            if let VersionState::Waiting(w) = std::mem::replace(&mut v.state, VersionState::Journal) {
                self.no_longer_waits(chain, &w);
            }
        }
    }

    /// Puts what waited into the history, which has at least the image before it.
    fn no_longer_waits(&self, chain: &mut Chain, waiting: &WaitingPage) {
        Self::less(&self.waiting, waiting.bytes() as u64);
        let steps: Vec<Step> = waiting.steps().collect();
        self.steps.fetch_add(steps.len() as u64, Relaxed);
        if let Some(first) = steps.first() {
            let at = chain.history.partition_point(|s| s.txn <= first.txn);
            chain.history.splice(at..at, steps);
            debug_assert!(chain.history.is_sorted_by_key(|s| s.txn), "a history is in order");
        }
    }

    /// The page as a snapshot as of `txn` sees it.
    pub fn see(&self, page: PageId, txn: u64) -> Seen {
        let pages = self.shard(page).read();
        let seen = pages.get(&page).and_then(|chain| chain.version_of(txn).map(|i| (chain, i)));
        let Some((chain, i)) = seen else { return Seen::Stripe };
        if !matches!(chain.versions[i].state, VersionState::Waiting(_)) {
            return chain.seen(i);
        }
        drop(pages);
        let mut pages = self.shard(page).write();
        let seen = pages.get_mut(&page).and_then(|chain| chain.version_of(txn).map(|i| (chain, i)));
        let Some((chain, i)) = seen else { return Seen::Stripe };
        self.settle(page, chain, i);
        chain.seen(i)
    }

    /// Makes a version of a page that waits. One that cannot be made is left to the reader that
    /// reads it back from the journal: there the error says where.
    fn settle(&self, page: PageId, chain: &mut Chain, version: usize) {
        let state = &mut chain.versions[version].state;
        let waiting = match std::mem::replace(state, VersionState::Journal) {
            VersionState::Waiting(waiting) => waiting,
            other => return *state = other,
        };
        self.no_longer_waits(chain, &waiting);
        match waiting.into_page(page) {
            Ok(made) => chain.versions[version].state = VersionState::Memory(Arc::new(made)),
            Err(_) => Self::less(&self.in_memory, 1),
        }
    }

    /// The newest state, if the next change may be logged as a diff against it: `limit` is the
    /// most bytes of diffs after an image.
    pub fn base(&self, page: PageId, limit: u32) -> Option<Arc<PageBuf>> {
        let pages = self.shard(page).read();
        let chain = pages.get(&page)?;
        if chain.needs_image || chain.history.is_empty() || chain.diff_bytes >= limit {
            return None;
        }
        match &chain.versions.last()?.state {
            VersionState::Memory(state) => Some(state.clone()),
            _ => None,
        }
    }

    fn prune(&self, chain: &mut Chain, oldest: u64) {
        let gone = chain.prune(oldest, self.recovery_from.load(Relaxed));
        Self::less(&self.steps, gone as u64);
    }

    /// True when the page has versions.
    pub fn has(&self, page: PageId) -> bool {
        self.shard(page).read().contains_key(&page)
    }

    /// Calls `f` with the pages that have versions, a part of the table at a time.
    pub fn each_page(&self, mut f: impl FnMut(Vec<PageId>)) {
        for shard in &self.shards {
            let pages = shard.read().keys().copied().collect();
            f(pages);
        }
    }

    /// Keeps a version that was read back.
    pub fn keep(&self, page: PageId, txn: u64, state: Arc<PageBuf>) {
        let mut pages = self.shard(page).write();
        let Some(chain) = pages.get_mut(&page) else { return };
        if let Some(v) = chain.versions.iter_mut().find(|v| v.txn == txn && !v.state.is_in_memory()) {
            v.state = VersionState::Memory(state);
            self.in_memory.fetch_add(1, Relaxed);
        }
    }

    /// Drops the versions of `page` up to and including `txn`, when they are on the stripe or no
    /// reader can see them; `unmark` clears the page's bit when none is left.
    pub fn forget(&self, page: PageId, txn: u64, unmark: impl FnOnce()) {
        let mut pages = self.shard(page).write();
        let Some(chain) = pages.get_mut(&page) else { return };
        let gone = chain.versions.partition_point(|v| v.txn <= txn);
        self.drop_first(chain, gone);
        match chain.versions.first().map(|v| v.txn) {
            Some(oldest) => self.prune(chain, oldest),
            None => {
                let gone = pages.remove(&page).map_or(0, |chain| chain.history.len());
                Self::less(&self.steps, gone as u64);
                unmark();
            }
        }
    }

    /// The pages that have a version of `txn` or older, with the newest such version; their
    /// next change will be an image. Commits go on meanwhile: those packed before this returns
    /// may still bring a diff.
    pub fn begin_write_back(&self, txn: u64, hold: &Longest, clock: &Clock) -> Vec<(PageId, u64)> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let mut pages = shard.write();
            let _held = hold.hold(clock);
            for (page, chain) in pages.iter_mut() {
                if let Some(v) = chain.versions.iter().rev().find(|v| v.txn <= txn) {
                    found.push((*page, v.txn));
                    chain.needs_image = true;
                }
            }
        }
        found
    }

    /// The first journal file that some version needs.
    pub fn first_file(&self) -> Option<u64> {
        let of_shard = |shard: &RwLock<FxHashMap<PageId, Chain>>| {
            shard.read().values().filter_map(|c| c.history.first()).map(|s| s.loc.file).min()
        };
        self.shards.iter().filter_map(of_shard).min()
    }

    /// Drops versions of transactions up to `durable` from memory, until at most `most` are
    /// left or all were looked at. First those that a newer one follows: only a reader of an old
    /// state wants them. Then those that are put together quickly.
    pub fn shrink(&self, most: u64, durable: u64) {
        /// Changes that are put together quickly.
        const FEW: usize = 8;
        for limit in [0, FEW, 8 * FEW, 64 * FEW, usize::MAX] {
            for _ in 0..SHARDS {
                if self.in_memory.load(Relaxed) <= most {
                    return;
                }
                let hand = self.hand.fetch_add(1, Relaxed) as usize % SHARDS;
                for chain in self.shards[hand].write().values_mut() {
                    let n = if limit == 0 { chain.versions.len() - 1 } else { chain.versions.len() };
                    if !chain.history.is_empty() && (limit == 0 || chain.changes() <= limit) {
                        self.leave(chain, n, durable);
                    }
                }
            }
        }
    }

    /// Pages with versions, versions, and those in memory.
    pub fn counts(&self) -> (u64, u64, u64) {
        let pages = self.shards.iter().map(|s| s.read().len() as u64).sum();
        (pages, self.count.load(Relaxed), self.in_memory.load(Relaxed))
    }

    /// Versions in memory.
    pub fn in_memory(&self) -> u64 {
        self.in_memory.load(Relaxed)
    }

    /// Memory of all versions and histories, in pages.
    pub fn memory_pages(&self) -> u64 {
        let steps = self.steps.load(Relaxed) * size_of::<Step>() as u64;
        let versions = self.count.load(Relaxed) * size_of::<Version>() as u64;
        self.in_memory() + (steps + versions + self.waiting.load(Relaxed)) / PAGE_BYTES as u64
    }
}

impl VersionState {
    fn is_in_memory(&self) -> bool {
        !matches!(self, VersionState::Journal)
    }
}

impl Chain {
    /// The version that a snapshot as of `txn` sees.
    fn version_of(&self, txn: u64) -> Option<usize> {
        self.versions.partition_point(|v| v.txn <= txn).checked_sub(1)
    }

    /// A version that does not wait, as a snapshot sees it.
    fn seen(&self, version: usize) -> Seen {
        let v = &self.versions[version];
        match &v.state {
            VersionState::Memory(state) => Seen::Memory(state.clone()),
            _ => Seen::Journal(v.txn, self.way_to(v.txn)),
        }
    }

    /// Changes that its versions are put together from.
    fn changes(&self) -> usize {
        let waiting = |v: &Version| if let VersionState::Waiting(w) = &v.state { w.len() } else { 0 };
        self.history.len() + self.versions.iter().map(waiting).sum::<usize>()
    }

    /// The changes that make the version of `txn`.
    fn way_to(&self, txn: u64) -> Vec<Loc> {
        let upto = self.history.partition_point(|s| s.txn <= txn);
        debug_assert!(
            self.history.get(self.image_of(txn)).is_some_and(|s| s.diff_bytes.is_none()),
            "the way to a version begins with an image"
        );
        self.history[self.image_of(txn)..upto].iter().map(|s| s.loc).collect()
    }

    /// Drops the changes that neither the version of `oldest` nor later ones need, but for the
    /// image that a recovery from `from` begins with; returns how many.
    fn prune(&mut self, oldest: u64, from: u64) -> usize {
        let before = self.history.len();
        let image = self.image_of(oldest);
        let first = self.image_of(oldest.min(from));
        if first < image {
            self.history.drain(first + 1..image);
        }
        self.history.drain(..first);
        debug_assert!(self.history.is_sorted_by_key(|s| s.txn), "a history is in order");
        before - self.history.len()
    }

    /// The last image up to and including `txn`.
    fn image_of(&self, txn: u64) -> usize {
        let upto = self.history.partition_point(|s| s.txn <= txn);
        self.history[..upto].iter().rposition(|s| s.diff_bytes.is_none()).unwrap_or(0)
    }
}
