//! The pool and its versions under threads that do everything at once, against a model that
//! says what each of them may see.
//!
//! 1. Transactions come one after the other; number `t` changes page `t % PAGES`. A page is
//!    full of its number and that of the transaction.
//! 2. Readers see the state of a page as of the last transaction when they began, whether it is
//!    read, waited for, guessed or a version.
//! 3. A checkpointer writes versions that every reader may see to the stripe, renews the
//!    frames, and drops the versions.
//!
//! Small enough for Miri, and of use under ThreadSanitizer (`.ci/sanitize`): the bytes of
//! frames are not atomic, so an order that the words of the pages do not establish is a data
//! race there.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use parking_lot::{Mutex, RwLock};
use snowmelt_io::Clock;

use crate::history::versions::Readable;
use crate::page::{PageBuf, PageId};
use crate::pool::rule::Rule;
use crate::pool::{PageRef, Pin, Pool};
use crate::read::visible::{Sight, VisiblePages};

const PAGES: u64 = 12;
const FRAMES: u32 = 6;

struct Bench {
    pages: VisiblePages,
    /// The transaction that each page on the stripe is as of; a device, too, reads and writes a
    /// page one after the other.
    stripe: [Mutex<u64>; PAGES as usize],
    /// The last transaction.
    last: AtomicU64,
    /// Visits of readers so far: commits keep step with them, or all would be over before the
    /// first reader begins.
    visits: AtomicU64,
    /// Held by each reader for as long as it has a snapshot; taken alone for a moment, it waits for
    /// all older ones.
    snapshots: RwLock<()>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        (snowmelt_base::random::lcg(&mut self.0) >> 33) % n
    }
}

/// The content of a page as of a transaction that changed it, or 0.
fn content(page: u64, txn: u64, out: &mut [u8]) {
    out.fill((page * 31 + txn) as u8);
    out[..8].copy_from_slice(&page.to_le_bytes());
    out[8..16].copy_from_slice(&txn.to_le_bytes());
}

/// The last transaction up to `last` that changed `page`; 0 when none did.
fn newest(page: u64, last: u64) -> u64 {
    let back = (last % PAGES + PAGES - page) % PAGES;
    last.saturating_sub(back)
}

/// Lets commits go on when a reader is over, also by a panic.
struct Over<'a>(&'a AtomicU64);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1 << 40, Relaxed);
    }
}

impl Bench {
    fn new() -> Bench {
        Bench {
            pages: VisiblePages::new(Pool::alone(FRAMES, PAGES, &Clock::real()).expect("a pool")),
            stripe: Default::default(),
            last: AtomicU64::new(0),
            visits: AtomicU64::new(0),
            snapshots: RwLock::new(()),
        }
    }

    fn read_stripe(&self, page: u64) {
        let txn = *self.stripe[page as usize].lock();
        // SAFETY: the caller has just put the page in flight, and shares the frame with no other.
        content(page, txn, unsafe { self.pages.pool.in_place(PageId(page)) });
    }

    /// The page as a reader as of `txn` sees it; waits, reads, and has reads fail on the way.
    fn visit(&self, page: u64, txn: u64, random: &mut Random) -> PageRef {
        let pool = &self.pages.pool;
        let id = PageId(page);
        loop {
            if let Some(here) = pool.quick(id) {
                return here;
            }
            match self.pages.look(id, txn) {
                Sight::Here(here, _) => return here,
                Sight::InFlight(_) => pool.wait(id),
                Sight::Absent => {
                    let Some(&frame) = pool.take_frames(1).first() else {
                        std::thread::yield_now();
                        continue;
                    };
                    if !pool.start(id, frame, None) {
                        pool.give_back(frame);
                    } else if random.below(8) == 0 {
                        pool.fail(id);
                    } else {
                        self.read_stripe(page);
                        return pool.publish(id, Pin::Yes).expect("pinned when asked");
                    }
                }
                other => unreachable!("{other:?}"),
            }
        }
    }

    fn read(&self, seed: u64, steps: u64) {
        let _over = Over(&self.visits);
        let mut random = Random(seed);
        let mut should = PageBuf::new();
        for _ in 0..steps {
            let snapshot = self.snapshots.read();
            let last = self.last.load(Acquire);
            let page = random.below(PAGES);
            let is = self.visit(page, last, &mut random);
            content(page, newest(page, last), &mut should);
            assert_eq!(is[..16], should[..16], "page {page} as of {last}");
            assert!(is[..] == should[..], "page {page} as of {last} is torn");
            drop(is);
            drop(snapshot);
            self.visits.fetch_add(1, Relaxed);
        }
    }

    /// Reads ahead, and throws out.
    fn disturb(&self, seed: u64, steps: u64) {
        let mut random = Random(seed);
        for _ in 0..steps {
            let snapshot = self.snapshots.read();
            let page = random.below(PAGES);
            let id = PageId(page);
            if random.below(4) == 0 {
                self.pages.pool.throw_out(id);
            } else if self.pages.pool.is_absent(id)
                && let Some(&frame) = self.pages.pool.take_frames(1).first()
            {
                let rule = if random.below(2) == 0 { Rule::Extent } else { Rule::Planned };
                if self.pages.pool.start(id, frame, Some(rule)) {
                    self.read_stripe(page);
                    self.pages.pool.publish(id, Pin::No);
                } else {
                    self.pages.pool.give_back(frame);
                }
            }
            drop(snapshot);
        }
    }

    fn commit(&self, steps: u64) {
        for txn in 1..=steps {
            let page = txn % PAGES;
            let mut state = PageBuf::new();
            content(page, txn, &mut state);
            self.pages.publish_version(PageId(page), txn, Some(Arc::new(state)), None, &Readable::default());
            self.last.store(txn, Release);
            while self.visits.load(Relaxed) < txn {
                std::thread::yield_now();
            }
        }
    }

    fn checkpoint(&self, upto: u64) {
        let mut state = PageBuf::new();
        let mut done = 0;
        while done < upto {
            let last = self.last.load(Acquire);
            drop(self.snapshots.write()); // from here on all snapshots are at least as of `last`
            for page in 0..PAGES {
                let txn = newest(page, last);
                if txn == 0 || txn <= *self.stripe[page as usize].lock() {
                    continue;
                }
                content(page, txn, &mut state);
                *self.stripe[page as usize].lock() = txn;
                while !self.pages.pool.renew(PageId(page), &state) {
                    std::thread::yield_now(); // a reader of before still holds the old state
                }
                self.pages.forget_versions(PageId(page), txn);
            }
            done = last;
            std::thread::yield_now();
        }
    }
}

#[test]
fn every_reader_sees_its_snapshot_whatever_others_do() {
    let seed = snowmelt_io::test_seed(11);
    let steps = if cfg!(miri) { 30 } else { 4000 };
    let bench = Bench::new();
    std::thread::scope(|scope| {
        for thread in 0..if cfg!(miri) { 2 } else { 4 } {
            let bench = &bench;
            scope.spawn(move || bench.read(seed.wrapping_add(thread), steps));
        }
        scope.spawn(|| bench.disturb(seed ^ 77, steps));
        scope.spawn(|| bench.commit(steps));
        scope.spawn(|| bench.checkpoint(steps));
    });
    let mut random = Random(seed);
    for page in 0..PAGES {
        assert_eq!(*bench.stripe[page as usize].lock(), newest(page, steps), "all was written back");
        bench.visit(page, steps, &mut random);
    }
    assert_eq!(bench.pages.versions.counts().0, 0, "no version is left");
}

/// A page outlives the pool it is pinned in.
#[test]
fn what_is_pinned_outlives_the_pool() {
    let bench = Bench::new();
    let held = bench.visit(3, 0, &mut Random(1));
    drop(bench);
    let mut should = PageBuf::new();
    content(3, 0, &mut should);
    assert!(held[..] == should[..]);
    // Its memory is given up for lost, on purpose: see Drop of Pool.
}

/// A guess that was marked for a use that never came gives its frame up like any other.
#[test]
fn guesses_that_were_asked_for_and_never_used_leave() {
    let bench = Bench::new();
    for page in 0..u64::from(FRAMES) {
        let frame = bench.pages.pool.take_frames(1)[0];
        assert!(bench.pages.pool.start(PageId(page), frame, Some(Rule::Extent)));
        bench.read_stripe(page);
        bench.pages.pool.publish(PageId(page), Pin::No);
        assert!(!bench.pages.pool.is_absent(PageId(page)), "it is here, and marked for its use");
    }
    assert_eq!(bench.pages.pool.take_frames(1).len(), 1, "no page is pinned");
}
