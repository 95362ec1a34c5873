//! Shared by the store's tests: pages that say which they are, trees of them, a seeded generator,
//! and a device that misbehaves on request.

#![allow(dead_code)]

use std::io::{IoSlice, IoSliceMut};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

use parking_lot::{Condvar, Mutex};
use snowmelt_io::{
    Alignment, CostModel, Device, DeviceModel, DiskModel, IoError, IoErrorKind, Operation, PowerDisk,
    ReadDevice,
};
use snowmelt_store::{
    Background, DeviceWrap, FileOpener, JournalConfig, PageBuf, PageId, PageKind, ReadAhead, Reader, Result,
    Seams, Store, StoreConfig, Transaction, TreeId, header,
};

/// A store of 8-page extents with `frames` frames.
pub fn config(frames: u64, read_ahead: ReadAhead) -> StoreConfig {
    StoreConfig {
        extent_pages: 8,
        memory_bytes: 64 << 20,
        pool_bytes: Some(frames * 8192),
        read_ahead,
        frame_wait_ms: 2_000,
        ..StoreConfig::default()
    }
}

/// A database on a disk in memory, so small that files fill and checkpoints come all the time. The
/// test does its background work.
pub fn tiny(disk: &PowerDisk) -> StoreConfig {
    // another number each time, and in each run of a seed the same
    let openings = Some(Arc::new(AtomicU64::new(disk.digest())));
    let disk = disk.clone();
    StoreConfig {
        extent_pages: 8,
        memory_bytes: 64 << 20,
        pool_bytes: Some(64 * 8192),
        read_ahead: ReadAhead::none(),
        close_ms: 1_000_000,
        journal: JournalConfig {
            file_bytes: 64 << 10,
            part_bytes: 16 << 10,
            diff_bytes: 4 << 10,
            checkpoint_bytes: 32 << 10,
            // Nothing depends on the time: a seed is a run.
            checkpoint_s: 1_000_000,
            most_bytes: 512 << 10,
            ..JournalConfig::default()
        },
        seams: Seams {
            background: Background::Caller,
            openings,
            files: Some(FileOpener::new(move |path, access| disk.open(path, access))),
            ..Seams::default()
        },
        ..StoreConfig::default()
    }
}

/// Page `n` of the tree made from `seed`.
pub fn page(seed: u64, n: u64) -> PageBuf {
    let mut p = PageBuf::new();
    p.set_header(PageKind::TupleLeaf, 0, (n % 1000) as u16);
    let mut random = Random::new(seed << 32 ^ n);
    for word in p.body_mut().chunks_exact_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    p
}

/// New bytes that do not compress, in each of these pages.
pub fn fill(txn: &mut Transaction, tree: TreeId, pages: &[PageId], seed: u64) {
    let mut random = Random::new(seed);
    for page in pages {
        let p = txn.page_mut(tree, *page).unwrap();
        p.set_header(PageKind::TupleLeaf, 0, 1);
        p.body_mut().chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&random.next().to_le_bytes()));
    }
}

/// A tree of test pages.
#[derive(Clone, Debug)]
pub struct TestTree {
    pub id: TreeId,
    pub pages: Vec<PageId>,
    pub seed: u64,
}

impl TestTree {
    /// Reads page `n` and compares it byte for byte.
    pub fn check(&self, reader: &mut Reader, n: usize) {
        let got = reader.page(self.id, self.pages[n]).unwrap();
        assert_eq!(&got[32..], page(self.seed, n as u64).body(), "page {n} of tree {:?}", self.id);
        assert_eq!((header(&got).tree(), header(&got).page()), (self.id, self.pages[n]));
    }
}

/// Builds and commits one tree of `pages` pages.
pub fn build_tree(store: &Arc<Store>, name: &str, seed: u64, pages: u64) -> TestTree {
    try_build_tree(store, name, seed, pages).unwrap()
}

/// As [`build_tree`], but returns an error.
pub fn try_build_tree(store: &Arc<Store>, name: &str, seed: u64, pages: u64) -> Result<TestTree> {
    let build = store.begin_build()?;
    let mut w = build.new_tree(name);
    let id = w.id();
    let mut written = Vec::new();
    for n in 0..pages {
        let next = w.next_id();
        written.push(w.append(&mut page(seed, n))?);
        assert_eq!(written.last(), Some(&next));
    }
    w.finish()?;
    build.put_record(name, 7, &seed.to_le_bytes());
    build.commit()?;
    Ok(TestTree { id, pages: written, seed })
}

/// A disk that is as small for a test's database as disks are for real ones: its arm has to
/// move, and its buffer does not hold all.
pub fn disk() -> DeviceModel {
    DeviceModel::Disk(DiskModel { capacity_bytes: 8 << 20, segment_bytes: 0, ..DiskModel::default() })
}

/// A reader of the current state.
pub fn reader(store: &Arc<Store>) -> Reader {
    Reader::new(store, store.snapshot())
}

/// Closes a store and opens it again.
pub fn reopen(dir: &Path, store: Arc<Store>, config: StoreConfig) -> Arc<Store> {
    assert_eq!(Arc::strong_count(&store), 1, "a test closes the store while somebody reads");
    drop(store);
    Store::open(dir, config).unwrap()
}

/// xorshift64*, seeded.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut r = Random(seed.wrapping_add(0x9E37_79B9_7F4A_7C15) | 1);
        r.next();
        r
    }
    pub fn next(&mut self) -> u64 {
        snowmelt_base::random::xorshift_star(&mut self.0)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

pub fn seed() -> u64 {
    snowmelt_io::test_seed(1)
}

/// Behaviour of a [`Moody`] device, shared with the test.
#[derive(Default)]
pub struct Mood {
    /// Reads that touch one of these bytes fail with EIO.
    pub bad: Mutex<Vec<std::ops::Range<u64>>>,
    /// Writes and syncs left before all fail with `errno`; negative: never.
    pub writes_left: AtomicI64,
    pub errno: AtomicI64,
    pub reads: AtomicU64,
    pub read_bytes: AtomicU64,
    gate: Mutex<Gate>,
    changed: Condvar,
}

/// Which reads a [`Moody`] device holds back.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Gate {
    #[default]
    Open,
    Closed,
    /// The next one only.
    ForNext,
    /// The next one only, after it was done.
    BehindNext,
    /// It has come, and waits.
    Held,
}

impl Mood {
    pub fn new() -> Arc<Mood> {
        Arc::new(Mood {
            writes_left: AtomicI64::new(-1),
            errno: AtomicI64::new(libc::EIO as i64),
            ..Default::default()
        })
    }

    /// Holds all reads back until [`Mood::open_gate`].
    pub fn close_gate(&self) {
        *self.gate.lock() = Gate::Closed;
    }

    /// Holds the next read back until [`Mood::open_gate`], and lets those after it pass.
    pub fn hold_next(&self) {
        *self.gate.lock() = Gate::ForNext;
    }

    /// Holds the next read back until [`Mood::open_gate`] when it has its bytes, and lets those
    /// after it pass.
    pub fn hold_behind_next(&self) {
        *self.gate.lock() = Gate::BehindNext;
    }

    /// Returns when that read has come.
    pub fn wait_held(&self) {
        let mut gate = self.gate.lock();
        while matches!(*gate, Gate::ForNext | Gate::BehindNext) {
            self.changed.wait(&mut gate);
        }
    }

    pub fn open_gate(&self) {
        *self.gate.lock() = Gate::Open;
        self.changed.notify_all();
    }

    fn wait_while(&self, state: Gate) {
        let mut gate = self.gate.lock();
        while *gate == state {
            self.changed.wait(&mut gate);
        }
    }

    fn pass_gate(&self, held: Gate) {
        let mut gate = self.gate.lock();
        if *gate == held {
            *gate = Gate::Held;
            self.changed.notify_all();
            drop(gate);
            return self.wait_while(Gate::Held);
        }
        drop(gate);
        self.wait_while(Gate::Closed);
    }

    /// Wraps every stripe in a device of this mood that costs `cost`.
    pub fn wrap(self: &Arc<Self>, cost: CostModel) -> DeviceWrap {
        let mood = self.clone();
        DeviceWrap::new(move |_, inner| Ok(Arc::new(Moody { inner, mood: mood.clone(), cost })))
    }
}

/// A device that does as its mood says.
struct Moody {
    inner: Arc<dyn Device>,
    mood: Arc<Mood>,
    cost: CostModel,
}

impl Moody {
    fn fail(&self, operation: Operation, offset: u64, len: u64) -> IoError {
        let errno = self.mood.errno.load(SeqCst) as i32;
        IoError { device: self.name().clone(), operation, offset, len, kind: IoErrorKind::Os { errno } }
    }

    fn may_write(&self, operation: Operation, offset: u64, len: u64) -> std::result::Result<(), IoError> {
        let left = self.mood.writes_left.load(SeqCst);
        if left == 0 {
            return Err(self.fail(operation, offset, len));
        }
        if left > 0 {
            self.mood.writes_left.store(left - 1, SeqCst);
        }
        Ok(())
    }
}

impl ReadDevice for Moody {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }
    fn len(&self) -> std::result::Result<u64, IoError> {
        self.inner.len()
    }
    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> std::result::Result<(), IoError> {
        self.mood.pass_gate(Gate::ForNext);
        let len: u64 = bufs.iter().map(|b| b.len() as u64).sum();
        if self.mood.bad.lock().iter().any(|r| r.start < offset + len && offset < r.end) {
            let errno = libc::EIO;
            let kind = IoErrorKind::Os { errno };
            return Err(IoError {
                device: self.name().clone(),
                operation: Operation::Read,
                offset,
                len,
                kind,
            });
        }
        self.mood.reads.fetch_add(1, SeqCst);
        self.mood.read_bytes.fetch_add(len, SeqCst);
        let read = self.inner.read_at(bufs, offset);
        self.mood.pass_gate(Gate::BehindNext);
        read
    }
    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }
    fn cost(&self) -> CostModel {
        self.cost
    }
}

impl Device for Moody {
    fn set_len(&self, len: u64) -> std::result::Result<(), IoError> {
        self.inner.set_len(len)
    }
    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> std::result::Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.may_write(Operation::Write, offset, len)?;
        self.inner.write_at(bufs, offset)
    }
    fn sync(&self) -> std::result::Result<(), IoError> {
        self.may_write(Operation::Sync, 0, 0)?;
        self.inner.sync()
    }
}
