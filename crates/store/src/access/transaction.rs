//! The write transaction: changes private copies of pages, takes and gives back space, changes
//! the catalog; a commit makes it one state.
//!
//! 1. [`Store::begin`] waits for the turn; the transaction builds on the newest appended state;
//! 2. [`Transaction::page_mut`] copies a page at its first change; readers go on with the old
//!    one. Copies for which there is no room are written to the journal as parts of the
//!    transaction;
//! 3. [`Transaction::append`] packs what changed into records (`access::pack`), appends
//!    them, publishes the copies in the version table under the transaction's number and gives
//!    the turn on;
//! 4. [`Pending::wait`] returns when the commit is durable.
//!
//! Invariant: a transaction that is dropped, fails or is cut off by a crash leaves nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::access::pack::{Packer, pack_images};
use crate::access::private_space::PrivateSpace;
use crate::access::reader::{Reader, WishKind};
use crate::commit::Commits;
use crate::error::{Result, StoreError};
use crate::files::reserve::MayUse;
use crate::format::catalog::Record;
use crate::format::lineage;
use crate::history::private::{Origin, Private, PrivatePage, PrivatePages};
use crate::history::rebuild::rebuild;
use crate::history::snapshot::Snapshot;
use crate::history::state::State;
use crate::journal::FilePin;
use crate::page::geometry::ExtentId;
use crate::page::{self, PageBuf, PageId, TreeId};
use crate::pool::PageRef;
use crate::read::account::Account;
use crate::store::Store;
use crate::sync::turn::Turn;
use crate::sync::waits::Waiter;

/// A write transaction under way.
pub struct Transaction {
    store: Arc<Store>,
    /// The newest appended state when it began; also keeps that state's pages.
    base: Snapshot,
    reader: Reader,
    /// The catalog with the changes; shared with snapshots until the next change.
    state: Arc<State>,
    pages: Arc<PrivatePages>,
    most_in_memory: usize,
    pin: Option<Arc<FilePin>>,
    space: PrivateSpace,
    /// Cuts the stripes to what is left, after `space` has given back its extents.
    longer: Longer,
    dropped: Vec<TreeId>,
    may_use: MayUse,
    /// Given back last, when everything above is.
    _turn: Turn,
}

/// Whether stripes may have been made longer for a transaction that is not committed.
struct Longer {
    commits: Arc<Commits>,
    is_so: bool,
}

impl Drop for Longer {
    fn drop(&mut self) {
        if self.is_so && self.commits.poison.get().is_none() {
            // Only to give back the room early; a checkpoint and the next opening do it too.
            let _ = self.commits.set_lengths();
        }
    }
}

/// A durable commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction; of one that changed nothing, the one before it.
    pub txn: u64,
}

/// A commit that is appended; the next writer builds on it.
#[must_use = "the commit is durable when wait has returned"]
pub struct Pending {
    commits: Arc<Commits>,
    state: Arc<State>,
    sequence: u64,
}

impl Store {
    /// Begins the write transaction; waits until the one before it has been appended or
    /// dropped, and while the journal is longer than it may be. Snapshot isolation, one writer
    /// at a time.
    ///
    /// Errors: nothing may be written after a failed write; no space.
    pub fn begin(self: &Arc<Self>) -> Result<Transaction> {
        Ok(self.begin_for(&Waiter::PATIENT)?.expect("it does not give up"))
    }

    /// As [`Store::begin`], but `None` once `go_on` answers false during the wait; it is asked some
    /// tens of times a second.
    pub fn begin_while(self: &Arc<Self>, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Option<Transaction>> {
        self.begin_for(&Waiter { go_on, sign: None })
    }

    /// As [`Store::begin_while`], for a waiter whose waits can be shown.
    pub fn begin_for(self: &Arc<Self>, waiter: &Waiter<'_>) -> Result<Option<Transaction>> {
        if !self.wait_for_room(waiter)? {
            return Ok(None);
        }
        let Some(turn) = self.writers.enter(waiter) else { return Ok(None) };
        self.slow_down();
        let commits = &self.commits;
        commits.check_poison()?;
        let now_ns = self.config.seams.clock.now_ns();
        let base = commits.snapshots.take(now_ns, || commits.states.appended());
        let txn = commits.next_txn.load(Ordering::Acquire).max(base.txn() + 1);
        Ok(Some(Transaction {
            store: self.clone(),
            reader: Reader::new(self, base.clone()),
            state: Arc::new(State { txn, catalog: base.catalog().clone() }),
            base,
            pages: Arc::default(),
            most_in_memory: self.config.private_pages()?,
            pin: None,
            space: PrivateSpace::new(self.fetch.clone()),
            longer: Longer { commits: commits.clone(), is_so: false },
            dropped: Vec::new(),
            may_use: MayUse::Journal,
            _turn: turn,
        }))
    }
}

impl Transaction {
    /// Its number; what it writes is seen by snapshots as of this and later ones.
    pub fn txn(&self) -> u64 {
        self.state.txn
    }

    /// Lets it use up what is kept free for work that makes a full disk less full: it gives
    /// back more than it takes.
    pub fn use_reserve(&mut self) {
        self.may_use = MayUse::Reserve;
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Counts its reads for `account` from now on.
    pub fn charge_to(&mut self, account: &Arc<Account>) {
        self.reader.charge_to(account);
    }

    /// A reader of what has been done so far, on behalf of the same account.
    pub fn reader(&self) -> Reader {
        let mut reader = Reader::new(&self.store, self.snapshot());
        reader.charge_to(self.reader.account());
        reader
    }

    /// The account that its reads are counted for.
    pub fn account(&self) -> &Arc<Account> {
        self.reader.account()
    }

    /// A frozen view of the state with all changes made so far. Readers on it see the private
    /// pages; later changes copy, so it never moves.
    pub fn snapshot(&self) -> Snapshot {
        self.base.with_changes(self.state.clone(), self.pages.clone())
    }

    /// The newest state of a page of `tree`.
    pub fn page(&mut self, tree: TreeId, id: PageId) -> Result<PageRef> {
        match self.pages.get(id) {
            Some(p) if p.tree != tree => Err(self.reader.foreign(id, p.tree, tree)),
            Some(PrivatePage { state: Private::Memory(page), .. }) => Ok(PageRef::from_memory(page.clone())),
            Some(PrivatePage { state: Private::Journal(loc), .. }) => {
                let page = rebuild(&self.store.commits.journal, id, self.txn(), &[*loc])?;
                Ok(PageRef::from_memory(Arc::new(page)))
            }
            None => self.reader.page(tree, id),
        }
    }

    /// Starts the reads of those of `pages` (sorted, distinct) that are absent and not private;
    /// never waits.
    pub(crate) fn wish(&mut self, tree: TreeId, pages: &[PageId]) {
        let visible: Vec<PageId> = pages.iter().copied().filter(|p| self.pages.get(*p).is_none()).collect();
        if visible.len() > 1 && !self.reader.resident(tree) {
            self.reader.wish(tree, &visible, WishKind::Planned);
        }
    }

    /// Most pages worth wishing for at a time.
    pub(crate) fn wish_limit(&self) -> usize {
        self.reader.wish_limit()
    }

    /// The error for a page whose content makes no sense to its tree.
    pub(crate) fn damaged(&self, id: PageId, why: impl Into<String>) -> StoreError {
        self.reader.damaged(id, why)
    }

    /// The page to be changed: a private copy.
    pub fn page_mut(&mut self, tree: TreeId, id: PageId) -> Result<&mut PageBuf> {
        let in_memory = match self.pages.get(id) {
            // A damaged node of one tree must not lead to changes of another.
            Some(p) if p.tree != tree => return Err(self.reader.foreign(id, p.tree, tree)),
            private => private.is_some_and(|p| matches!(p.state, Private::Memory(_))),
        };
        if !in_memory {
            let mut copy = PageBuf::copy_of(&self.page(tree, id)?);
            debug_assert!(page::header(&copy).txn() <= self.txn(), "nobody has written for later");
            page::mark(&mut copy, id, tree, self.txn());
            self.insert(tree, id, copy, Origin::Copy)?;
        }
        Ok(Arc::make_mut(&mut self.pages).get_mut(id).expect("the page is private and in memory by now"))
    }

    /// A new page of `tree`, zeroed and private: from the extent of `near` if it has room, else
    /// from its overflow extent.
    pub fn allocate(&mut self, tree: TreeId, near: Option<PageId>) -> Result<PageId> {
        if !self.state.catalog.trees.contains_key(&tree) {
            return Err(StoreError::NoTree { tree: tree.0 });
        }
        let id = self.space.allocate(tree, near)?;
        self.check_unused(id)?;
        let mut fresh = PageBuf::new();
        page::mark(&mut fresh, id, tree, self.txn());
        self.insert(tree, id, fresh, Origin::New)?;
        Ok(id)
    }

    /// An error when a page that is given out was changed before: only a damaged node leads to one.
    fn check_unused(&self, id: PageId) -> Result<()> {
        match self.pages.get(id) {
            None => Ok(()),
            Some(_) => Err(self.damaged(id, "it was changed, and is not in use")),
        }
    }

    /// A new page of `tree` from an extent that was free: see `PrivateSpace::allocate_fresh`.
    pub(crate) fn allocate_fresh(&mut self, tree: TreeId, fresh: &mut Option<ExtentId>) -> Result<PageId> {
        let id = self.space.allocate_fresh(tree, fresh)?;
        self.check_unused(id)?;
        let mut page = PageBuf::new();
        page::mark(&mut page, id, tree, self.txn());
        self.insert(tree, id, page, Origin::New)?;
        Ok(id)
    }

    /// A new page of `tree` in an extent that it owns or has taken: at this place, or the first
    /// free one.
    pub(crate) fn allocate_in(
        &mut self,
        tree: TreeId,
        extent: ExtentId,
        index: Option<u32>,
    ) -> Result<PageId> {
        let id = self.space.allocate_in(extent, index).expect("the extent was seen to have room");
        self.check_unused(id)?;
        let mut page = PageBuf::new();
        page::mark(&mut page, id, tree, self.txn());
        self.insert(tree, id, page, Origin::New)?;
        Ok(id)
    }

    /// The space that it takes and gives back.
    pub(crate) fn space(&mut self) -> &mut PrivateSpace {
        &mut self.space
    }

    /// True when the transaction has changed the page.
    pub(crate) fn is_private(&self, page: PageId) -> bool {
        self.pages.get(page).is_some()
    }

    fn insert(&mut self, tree: TreeId, id: PageId, page: PageBuf, origin: Origin) -> Result<()> {
        if self.pages.in_memory() >= self.most_in_memory {
            self.spill()?;
        }
        Arc::make_mut(&mut self.pages).insert(id, tree, page, origin);
        Ok(())
    }

    /// Writes private pages to the journal, as parts that only the commit makes real.
    fn spill(&mut self) -> Result<()> {
        let (commits, txn) = (self.store.commits.clone(), self.txn());
        // Should it end without commit, no other transaction may go on under its number.
        commits.next_txn.fetch_max(txn + 1, Ordering::AcqRel);
        self.longer.is_so = true;
        let packed = pack_images(&self.pages.to_spill(), &commits.config.journal);
        for (record, pages) in packed {
            let record = [record];
            let room = commits.reserve(&record, self.may_use)?;
            let appended = commits.journal.append(&record, room, txn);
            assert_eq!(appended.places.len(), 1, "a record that is spilled has one place");
            let (file, offset) = appended.places[0];
            let pin = self.pin.get_or_insert_with(|| Arc::new(commits.journal.pin(file))).clone();
            // Read back from the file, so it must be there.
            commits.journal.sync_to(appended.sequence)?;
            let private = Arc::make_mut(&mut self.pages);
            pages.into_iter().for_each(|(page, at)| private.spilled(page, at.in_record(file, offset), &pin));
        }
        Ok(())
    }

    /// Gives a page back. Older snapshots go on seeing it.
    pub fn release(&mut self, _tree: TreeId, id: PageId) {
        Arc::make_mut(&mut self.pages).remove(id);
        self.space.release(id);
    }

    /// Begins a new tree; one of the same name is dropped.
    pub fn new_tree(&mut self, name: &str) -> TreeId {
        self.drop_tree(name);
        let id = TreeId(self.store.commits.tree_number(&self.state.catalog));
        let catalog = &mut self.state_mut().catalog;
        catalog.next_tree = id.0 + 1;
        assert!(!catalog.trees.contains_key(&id), "tree numbers are given once");
        catalog.trees.insert(id, name.to_string());
        self.space.name_tree(id, name);
        id
    }

    /// Drops the tree of this name with its record and all its pages, if there is one.
    pub fn drop_tree(&mut self, name: &str) {
        let ids: Vec<TreeId> =
            self.state.catalog.trees.iter().filter(|(_, n)| *n == name).map(|(id, _)| *id).collect();
        for id in ids {
            let catalog = &mut self.state_mut().catalog;
            catalog.trees.remove(&id);
            catalog.records.remove(name);
            Arc::make_mut(&mut self.pages).remove_tree(id);
            self.space.drop_tree(id);
            self.dropped.push(id);
        }
    }

    /// Gives a tree another name; a tree that had it, and the records of both names, are dropped.
    pub fn rename_tree(&mut self, from: &str, to: &str) {
        assert_ne!(from, to, "another name");
        self.drop_tree(to);
        let catalog = &mut self.state_mut().catalog;
        catalog.records.remove(from);
        let Some((id, name)) = catalog.trees.iter_mut().find(|(_, name)| *name == from) else { return };
        *name = to.to_string();
        let id = *id;
        self.space.name_tree(id, to);
    }

    /// Drops the record of this name, if there is one.
    pub fn drop_record(&mut self, name: &str) {
        if self.state.catalog.records.contains_key(name) {
            self.state_mut().catalog.records.remove(name);
        }
    }

    /// The bytes stored under `name` in the catalog, with the changes made so far.
    pub fn record(&self, name: &str) -> Option<Vec<u8>> {
        self.state.catalog.records.get(name).map(|r| r.bytes.to_vec())
    }

    /// Stores bytes in the catalog, replacing those of the same name. `kind` is the writer's.
    pub fn put_record(&mut self, name: &str, kind: u32, bytes: &[u8]) {
        let new = Record { kind, bytes: bytes.into() };
        if self.state.catalog.records.get(name) != Some(&new) {
            self.state_mut().catalog.records.insert(name.to_string(), new);
        }
    }

    fn state_mut(&mut self) -> &mut State {
        Arc::make_mut(&mut self.state)
    }

    /// Commits; durable when it returns.
    pub fn commit(self) -> Result<Committed> {
        self.append()?.wait()
    }

    /// Commits without waiting: the next writer may begin and builds on this one, readers see
    /// it when it is durable.
    ///
    /// Errors: the disk is full, or an earlier write has failed; nothing has happened then.
    pub fn append(self) -> Result<Pending> {
        self.append_noting(|| ())
    }

    /// As [`Transaction::append`]; `note` is called when the commit is sure to be appended, before
    /// another writer has the turn. It must be short, and wait for nothing. A transaction that
    /// changed nothing does not call it.
    pub fn append_noting(mut self, note: impl FnOnce()) -> Result<Pending> {
        let mut note = Some(note);
        let commits = self.store.commits.clone();
        commits.check_poison()?;
        self.space.leave_empty();
        let changes = self.space.changes();
        if self.pages.is_empty() && changes.is_empty() && self.state.catalog == *self.base.catalog() {
            let sequence = commits.journal.last_sequence();
            return Ok(Pending { state: self.base.state().clone(), sequence, commits });
        }
        if let Some(record) = commits.lineage_record(self.base.state())? {
            self.state_mut().catalog.records.insert(lineage::RECORD.to_string(), record);
        }
        let txn = self.txn();
        assert!(txn > self.base.txn(), "a transaction is newer than what it builds on");
        let mut private = self.pages.sorted();
        for (id, page) in &mut private {
            if let Private::Memory(state) = &mut page.state
                && !page::is_marked(state, *id, page.tree, txn)
            {
                page::mark(&mut *Arc::make_mut(state), *id, page.tree, txn);
            }
        }
        loop {
            let generation = commits.generation.load(Ordering::Acquire);
            let mut packer = Packer::new(&commits.config.journal);
            packer.catalog(self.base.catalog(), &self.state.catalog);
            changes.iter().for_each(|change| packer.extent(change));
            private.iter().for_each(|(id, page)| packer.page(*id, page, &self.store.fetch.core.pages));
            let packed = packer.finish();
            let room = commits.reserve(&packed.records, self.may_use)?;
            let (space, store, dropped) = (&mut self.space, &self.store, &self.dropped);
            let appended = commits.append(&packed.records, room, &self.state, generation, |appended| {
                packed.publish(&store.fetch.core.pages, txn, appended, &store.commits.readable());
                store.fetch.core.space.write().apply(txn, space.finish(), dropped);
                note.take().into_iter().for_each(|note| note());
            });
            if let Some(appended) = appended {
                self.longer.is_so = false;
                self.dropped.iter().for_each(|tree| self.store.fetch.forget_tree(*tree));
                packed.count(&self.store.fetch.core.meters, &commits.journal.meters);
                return Ok(Pending { state: self.state.clone(), sequence: appended.sequence, commits });
            }
        }
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction({})", self.txn())
    }
}

impl Pending {
    /// The transaction.
    pub fn txn(&self) -> u64 {
        self.state.txn
    }

    /// Returns when the commit is durable and visible. Many that wait are made durable together.
    pub fn wait(self) -> Result<Committed> {
        self.commits.wait(&self.state, self.sequence)?;
        debug_assert!(self.commits.states.visible().txn >= self.state.txn, "a durable commit is visible");
        Ok(Committed { txn: self.state.txn })
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pending({})", self.txn())
    }
}
