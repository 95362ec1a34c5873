//! The pool: pages of the database in fixed frames, found without hashing.
//!
//! One word per page of the database (`word`) in a flat, lazily populated array (`lazy`), after
//! the translation of vmcache (Leis et al., SIGMOD 2023) but with frames of our own (`frames`),
//! so that an eviction costs no system call and no fault. `replace` chooses what to evict. The
//! steps of a page:
//!
//! 1. *absent*; a reader or a read-ahead rule takes a frame and swaps the word to *in flight*:
//!    exactly one wins, the others meet it there;
//! 2. the read ends: verified → *resident*; failed → *absent* again, the frame is returned, the
//!    failure is told to those who waited;
//! 3. pinned and unpinned by readers: a pin is one compare-and-swap;
//! 4. evicted when resident, unpinned and chosen → *absent*.
//!
//! Invariant: a frame's bytes change only while its page is in flight, so visible pages are
//! immutable.

#![allow(unsafe_code)]

mod frames;
mod lazy;
mod members;
mod replace;
pub(crate) mod rule;
pub(crate) mod shared;
#[cfg(test)]
mod tests;
mod word;

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use snowmelt_io::{Clock, EventCount, RawBuf};

use frames::OwnedPage;
use lazy::LazyWords;
pub(crate) use members::Brought;
use members::{Member, OnEvicted};
use rule::Rule;
use shared::SharedFrames;

use crate::error::Result;
use crate::page::{PAGE_BYTES, PageBuf, PageId};

/// Fewest frames a pool works with.
pub const LEAST_FRAMES: u32 = 16;

/// Waiters are spread over this many event counts, so that a finished read wakes few who wait
/// for others.
const WAIT_SHARDS: usize = 64;

/// The pool of a store: its translation, and its share of the frames.
pub(crate) struct Pool {
    member: ManuallyDrop<Arc<Member>>,
    number: u16,
    shared: Arc<SharedFrames>,
    waits: Box<[EventCount]>,
}

/// Result of a look at a page.
#[derive(Debug)]
pub(crate) enum Look<V> {
    /// It is here. The first user of a page that was read ahead gets the rule that brought it.
    Here(PageRef, Option<Brought>),
    /// Its read is under way.
    InFlight(Coming),
    /// It is neither here nor being read.
    Absent,
    /// This version is to be seen instead of the frame.
    Version(V),
    /// The page number lies beyond what the pool can ever hold.
    Nowhere,
}

/// A read under way, as those who wait for its page see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coming {
    /// The rule that reads it ahead; `None` when it began with a waiting reader.
    pub rule: Option<Rule>,
    /// Pages that were asked for together.
    pub pages: u32,
}

/// A pinned page. Holds the page in memory until dropped; hold it for one batch of work, and
/// none while waiting for others.
#[derive(Debug)]
pub struct PageRef {
    start: *const u8,
    hold: Hold,
}

#[derive(Debug)]
enum Hold {
    /// A frame of the pool, pinned in this word.
    Frame(*const AtomicU64),
    /// A version of its own.
    Version(#[allow(dead_code)] Arc<PageBuf>),
}

// SAFETY: a PageRef only reads bytes that do not change while it lives, and unpins with an
// atomic operation.
unsafe impl Send for PageRef {}
// SAFETY: as above; all access through &PageRef is reading.
unsafe impl Sync for PageRef {}

impl PageRef {
    /// A page that is not the pool's.
    pub(crate) fn from_memory(page: Arc<PageBuf>) -> PageRef {
        debug_assert_eq!(page.len(), PAGE_BYTES, "a version is a whole page");
        PageRef { start: page.as_ptr(), hold: Hold::Version(page) }
    }
}

impl Deref for PageRef {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is the first byte of a whole page: either a frame whose page is
        // resident and pinned by us, which the pool neither changes, evicts nor unmaps (see
        // Drop of Pool), or a version we own a share of.
        unsafe { std::slice::from_raw_parts(self.start, PAGE_BYTES) }
    }
}

impl Drop for PageRef {
    #[inline]
    fn drop(&mut self) {
        if let Hold::Frame(word) = self.hold {
            // SAFETY: the table outlives every pin (see Drop of Pool).
            debug_assert!(word::pins(unsafe { (*word).load(Relaxed) }) > 0, "a pin is given back once");
            // SAFETY: the table outlives every pin (see Drop of Pool). This is the last access:
            // once the pin is gone the pool may be unmapped.
            unsafe { (*word).fetch_sub(word::PIN, Release) };
        }
    }
}

impl Pool {
    /// A pool over at most `most_pages` pages that shares these frames; `on_evicted` is told of
    /// each of its pages that has to leave.
    pub fn new(
        shared: Arc<SharedFrames>,
        most_pages: u64,
        clock: &Clock,
        on_evicted: OnEvicted,
    ) -> Result<Pool> {
        let table = LazyWords::new(most_pages as usize)?;
        let member = Arc::new(Member { table, generation: AtomicU64::new(0), on_evicted });
        let number = shared.join(member.clone())?;
        Ok(Pool {
            member: ManuallyDrop::new(member),
            number,
            shared,
            waits: (0..WAIT_SHARDS).map(|_| EventCount::new(clock)).collect(),
        })
    }

    /// A pool with frames of its own, without meters.
    #[cfg(test)]
    pub fn alone(frames: u32, most_pages: u64, clock: &Clock) -> Result<Pool> {
        Pool::new(Arc::new(SharedFrames::unreserved(frames)?), most_pages, clock, Box::new(|_, _| ()))
    }

    /// The frames.
    pub fn shared(&self) -> &Arc<SharedFrames> {
        &self.shared
    }

    /// Frames, all stores together that share them.
    pub fn frame_count(&self) -> u32 {
        self.shared.frames.count()
    }

    /// Pages the translation array covers.
    pub fn most_pages(&self) -> u64 {
        self.member.table.len() as u64
    }

    /// True once every frame has been used.
    pub fn was_full(&self) -> bool {
        self.shared.full.load(Relaxed)
    }

    /// Frames never used so far.
    pub fn fresh_left(&self) -> u32 {
        self.shared.queues.lock().replacer.fresh_left()
    }

    /// The quick way in: a resident page that was used before and has no versions. One load,
    /// one compare, one pin.
    #[inline]
    pub fn quick(&self, page: PageId) -> Option<PageRef> {
        let word = self.member.table.get(page.0)?;
        let w = word.load(Relaxed);
        if w & word::QUICK != word::RESIDENT {
            return None;
        }
        let pinned = (w + word::PIN) | word::REFERENCED;
        match word.compare_exchange(w, pinned, Acquire, Relaxed) {
            Ok(_) => Some(self.pinned(word, w)),
            Err(_) => None,
        }
    }

    #[inline]
    fn pinned(&self, word: &AtomicU64, before: u64) -> PageRef {
        PageRef { start: self.shared.frames.address(word::frame(before)), hold: Hold::Frame(word) }
    }

    /// The full way in, for any page. `version` is called for a versioned page: it returns the
    /// version to be seen instead of the state on the stripe, or `None`.
    pub fn look<V>(&self, page: PageId, version: impl Fn() -> Option<V>) -> Look<V> {
        let Some(word) = self.member.table.get(page.0) else { return Look::Nowhere };
        loop {
            let w = word.load(Acquire);
            if w & word::VERSIONED != 0
                && let Some(version) = version()
            {
                return Look::Version(version);
            }
            match word::state(w) {
                word::RESIDENT => {
                    assert!(w & word::PINS != word::PINS, "fewer than 65536 pins on a page");
                    // The first use of a page read ahead does not count as a second touch.
                    let rule = word::rule(w);
                    let touched = if rule == 0 { word::REFERENCED } else { 0 };
                    let pinned = ((w & !word::RULE) + word::PIN) | touched;
                    if word.compare_exchange_weak(w, pinned, AcqRel, Relaxed).is_ok() {
                        self.shared.planned_settled(rule);
                        return Look::Here(self.pinned(word, w), self.member.brought(w));
                    }
                }
                word::IN_FLIGHT => {
                    if word.compare_exchange_weak(w, w | word::AWAITED, AcqRel, Relaxed).is_ok() {
                        let pages = self.shared.frames.batch(word::frame(w));
                        return Look::InFlight(Coming { rule: Rule::from_bits(word::rule(w)), pages });
                    }
                }
                _ => return Look::Absent,
            }
        }
    }

    /// True when a read of the page would have to be started; false for versioned pages, since only
    /// a reader knows which version it may see. Marks a resident page as touched, so that it stays
    /// for its coming use.
    pub fn is_absent(&self, page: PageId) -> bool {
        let Some(word) = self.member.table.get(page.0) else { return false };
        let w = word.load(Relaxed);
        if word::state(w) == word::RESIDENT && w & word::REFERENCED == 0 {
            word.fetch_or(word::REFERENCED, Relaxed);
        }
        w & (word::STATE | word::VERSIONED) == 0
    }

    /// True when a read of the page is under way.
    pub fn is_in_flight(&self, page: PageId) -> bool {
        let word = self.member.table.get(page.0);
        word.is_some_and(|word| word::state(word.load(Relaxed)) == word::IN_FLIGHT)
    }

    /// Whether it is in flight and a reader waits for it.
    pub fn is_awaited(&self, page: PageId) -> bool {
        let word = self.member.table.get(page.0);
        word.map(|word| word.load(Acquire))
            .is_some_and(|w| word::state(w) == word::IN_FLIGHT && w & word::AWAITED != 0)
    }

    /// Like [`Pool::is_absent`], leaving the page's mark alone.
    pub fn peek_absent(&self, page: PageId) -> bool {
        self.member
            .table
            .get(page.0)
            .is_some_and(|word| word.load(Relaxed) & (word::STATE | word::VERSIONED) == 0)
    }

    /// Takes up to `want` frames without waiting.
    pub fn take_frames(&self, want: usize) -> Vec<u32> {
        self.shared.take(want)
    }

    /// Worth of a frame, against which a guess is weighed: of the pages that were used and left,
    /// the share that was wanted again soon. 0 while nothing has to leave.
    pub fn regret(&self) -> f64 {
        let (left, wanted_again) = self.departures();
        // Some must have left before their share says anything.
        wanted_again as f64 / (left + u64::from(self.frame_count()) / 8 + 1) as f64
    }

    /// Pages that were used and left, and those of them that were wanted again soon, ever.
    pub fn departures(&self) -> (u64, u64) {
        let left = self.shared.queues.lock().replacer.left_count();
        (left, self.shared.regrets.load(Relaxed))
    }

    /// Number of further pages that may be planned, all readers together. Unlimited until first
    /// full; then unvisited planned pages hold at most half the frames. More would throw each other
    /// out before their visit.
    pub fn plannable(&self) -> usize {
        if !self.was_full() {
            return usize::MAX;
        }
        let unvisited = self.shared.unvisited.load(Relaxed).max(0) as usize;
        (self.frame_count() as usize / 2).saturating_sub(unvisited)
    }

    /// Called when the meters are reset: the fate of pages that rules brought before is no longer
    /// counted.
    pub fn begin_generation(&self) {
        let next = |g: u64| Some((g + 1) % word::GENERATIONS);
        let _ = self.member.generation.fetch_update(Relaxed, Relaxed, next);
    }

    /// As [`Pool::begin_generation`], but only for the pages that `is_of` names. The pages
    /// themselves stay as they were.
    pub fn forget_fate(&self, is_of: impl Fn(PageId) -> bool) {
        let used = self.shared.frames.count() - self.fresh_left();
        let now = self.member.generation.load(Relaxed);
        let before = (now + word::GENERATIONS - 1) % word::GENERATIONS;
        for frame in 0..used {
            let owned = self.shared.frames.page(frame).filter(|p| p.member == self.number);
            let Some(page) = owned.map(|p| p.page).filter(|page| is_of(*page)) else { continue };
            let word = self.member.table.at(page.0);
            let counted =
                |w: u64| word::state(w) != 0 && word::frame(w) == frame && word::generation(w) == now;
            let older = |w| counted(w).then_some(word::of_generation(w, before));
            let _ = word.fetch_update(AcqRel, Relaxed, older);
        }
    }

    /// Takes up to `want` frames that were never used: nothing has to leave for them.
    pub fn take_fresh(&self, want: usize) -> Vec<u32> {
        let left = self.fresh_left() as usize;
        self.take_frames(want.min(left))
    }

    /// Notes that the page which comes into a frame that was taken is asked for together with
    /// others, `pages` in all.
    pub fn note_batch(&self, frame: u32, pages: u32) {
        self.shared.frames.set_batch(frame, pages);
    }

    /// Gives back a frame that was taken and not used.
    pub fn give_back(&self, frame: u32) {
        assert!(frame < self.shared.frames.count(), "the frame is one of the pool's");
        self.shared.frames.set_page(frame, None);
        self.shared.queues.lock().replacer.give_back(frame);
    }

    /// The header's tree of an evicted page, whose frame the caller has taken and not yet reused.
    pub fn tree_in(&self, frame: u32) -> crate::page::TreeId {
        // SAFETY: the caller got the frame from `take_frames`, so no device writes it and no
        // reader holds it.
        crate::page::header(unsafe { self.shared.frames.bytes(frame) }).tree()
    }

    /// Puts an absent page in flight into `frame`; `rule` is `None` when a reader waits for it.
    /// False when another thread was faster; the frame is still the caller's then.
    pub fn start(&self, page: PageId, frame: u32, rule: Option<Rule>) -> bool {
        let word = self.member.table.at(page.0);
        // Referenced, so that the page is still there when the waiting reader has woken.
        let bits = rule.map_or(word::REFERENCED, |r| {
            (r as u64) << word::RULE_SHIFT | self.member.generation.load(Relaxed) << word::GENERATION_SHIFT
        });
        assert!(self.shared.frames.page(frame).is_none(), "a frame that was taken holds no page");
        let owned = self.owned(page);
        self.shared.frames.set_page(frame, Some(owned));
        let mut w = word.load(Relaxed);
        while word::state(w) == 0 {
            let next = (w & word::VERSIONED) | word::IN_FLIGHT | bits | frame as u64;
            match word.compare_exchange_weak(w, next, AcqRel, Relaxed) {
                Ok(_) => {
                    if rule.is_some_and(Rule::is_guess) {
                        self.shared.queues.lock().replacer.add_cold(frame, owned);
                    } else if w & word::LATELY != 0 {
                        self.shared.regrets.fetch_add(1, Relaxed);
                    }
                    if rule.is_some_and(|r| !r.is_guess()) {
                        self.shared.unvisited.fetch_add(1, Relaxed);
                    }
                    return true;
                }
                Err(now) => w = now,
            }
        }
        self.shared.frames.set_page(frame, None);
        false
    }

    /// The frame of a page that the caller has just put in flight, for a device to fill. To be
    /// used for one request, whose completion is what publishes or fails the page.
    pub fn target(&self, page: PageId) -> RawBuf {
        let w = self.member.table.at(page.0).load(Acquire);
        assert_eq!(word::state(w), word::IN_FLIGHT, "only a page in flight is filled");
        // SAFETY: a frame stays mapped while its page is in flight, because the queue's sink owns
        // the pool; no other thread reads or writes it until the page is published, which the
        // request's completion does.
        unsafe { RawBuf::read_into(self.shared.frames.address(word::frame(w)), PAGE_BYTES) }
    }

    /// The bytes that arrived for a page in flight whose read is complete and not yet published.
    ///
    /// # Safety
    /// Only the one who completes the read may call this, and must drop the slice before
    /// publishing or failing the page.
    pub unsafe fn arrived(&self, page: PageId) -> &[u8] {
        let w = self.member.table.at(page.0).load(Acquire);
        assert_eq!(word::state(w), word::IN_FLIGHT, "only a page in flight arrives");
        // SAFETY: the page is in flight, its read is complete, and the caller alone may publish it.
        unsafe { self.shared.frames.bytes(word::frame(w)) }
    }

    /// The frame of a page in flight, for the thread that put it there and reads it in place.
    ///
    /// # Safety
    /// The caller must have put the page in flight itself and not have given the frame to a device.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn in_place(&self, page: PageId) -> &mut [u8] {
        let w = self.member.table.at(page.0).load(Acquire);
        assert_eq!(word::state(w), word::IN_FLIGHT, "only a page in flight is filled");
        // SAFETY: nothing else reads into the frame (caller), and no reader looks at it before it
        // is resident.
        unsafe { self.shared.frames.bytes_mut(word::frame(w)) }
    }

    /// A page in flight becomes resident; pinned for the caller when asked.
    pub fn publish(&self, page: PageId, pin: Pin) -> Option<PageRef> {
        let word = self.member.table.at(page.0);
        let mut w = word.load(Acquire);
        self.check_in_flight(page, w);
        let next = |w: u64| {
            assert_eq!(word::state(w), word::IN_FLIGHT, "only a page in flight arrives");
            let resident = (w & !(word::STATE | word::AWAITED)) | word::RESIDENT;
            match pin {
                Pin::Yes => (resident & !word::REFERENCED) + word::PIN,
                Pin::No => resident,
            }
        };
        while let Err(now) = word.compare_exchange_weak(w, next(w), AcqRel, Acquire) {
            w = now;
        }
        self.wake(page, w);
        (pin == Pin::Yes).then(|| self.pinned(word, w))
    }

    /// The read of a page in flight failed: it is absent again and its frame is returned.
    pub fn fail(&self, page: PageId) {
        let word = self.member.table.at(page.0);
        let mut w = word.load(Acquire);
        self.check_in_flight(page, w);
        self.shared.frames.set_page(word::frame(w), None);
        while let Err(now) = word.compare_exchange_weak(w, w & word::VERSIONED, AcqRel, Acquire) {
            w = now;
        }
        self.shared.planned_settled(word::rule(w));
        self.shared.queues.lock().replacer.give_back(word::frame(w));
        self.wake(page, w);
    }

    /// The page, as a frame names it.
    fn owned(&self, page: PageId) -> OwnedPage {
        OwnedPage { member: self.number, page }
    }

    /// Asserts what holds while a device fills the frame of a page, whose word this is.
    fn check_in_flight(&self, page: PageId, w: u64) {
        assert_eq!(word::state(w), word::IN_FLIGHT, "only a page in flight arrives or fails");
        assert_eq!(word::pins(w), 0, "no reader holds a page in flight");
        let held = self.shared.frames.page(word::frame(w));
        assert_eq!(held, Some(self.owned(page)), "word and frame name each other");
    }

    fn wake(&self, page: PageId, before: u64) {
        if before & word::AWAITED != 0 {
            self.waits[page.0 as usize % WAIT_SHARDS].notify_all();
        }
    }

    /// Waits until the page is no longer in flight.
    pub fn wait(&self, page: PageId) {
        let word = self.member.table.at(page.0);
        self.waits[page.0 as usize % WAIT_SHARDS].wait_until(|| !Self::await_arrival(word));
    }

    /// True while the page is in flight, and then marked as awaited. Marked at every look:
    /// between two looks the page may have arrived, been evicted and be in flight again, and
    /// that flight knows nothing of us.
    fn await_arrival(word: &AtomicU64) -> bool {
        let mut w = word.load(Acquire);
        while word::state(w) == word::IN_FLIGHT {
            match word.compare_exchange_weak(w, w | word::AWAITED, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => w = now,
            }
        }
        false
    }

    /// Calls `f` for every resident page with whether it was touched since the clock's hand
    /// passed and which rule's unused guess it is.
    pub fn each_resident(&self, mut f: impl FnMut(PageId, Touched)) {
        let used = self.shared.frames.count() - self.fresh_left();
        for frame in 0..used {
            let owned = self.shared.frames.page(frame).filter(|p| p.member == self.number);
            let Some(page) = owned.map(|p| p.page) else { continue };
            let w = self.member.table.at(page.0).load(Relaxed);
            if word::state(w) == word::RESIDENT && word::frame(w) == frame {
                let touched = match (word::rule(w), w & word::REFERENCED) {
                    (0, 0) => Touched::Once,
                    (0, _) => Touched::Often,
                    _ => Touched::Never,
                };
                f(page, touched);
            }
        }
    }

    /// Notes that a page has versions: a lookup asks for them first.
    pub fn mark_versioned(&self, page: PageId) {
        self.member.table.at(page.0).fetch_or(word::VERSIONED, AcqRel);
    }

    /// Notes that a page has no versions any more.
    pub fn unmark_versioned(&self, page: PageId) {
        self.member.table.at(page.0).fetch_and(!word::VERSIONED, AcqRel);
    }

    /// Makes the frame of a versioned page, if it has one, hold what its stripe has by now. False
    /// when a reader holds the old state: it can be tried again later. The page has versions and no
    /// live snapshot sees the stripe, so no reader asks for the frame meanwhile.
    pub fn renew(&self, page: PageId, now: &[u8]) -> bool {
        assert_eq!(now.len(), PAGE_BYTES, "a frame is renewed whole");
        let word = self.member.table.at(page.0);
        let mut w = word.load(Acquire);
        loop {
            match word::state(w) {
                word::RESIDENT if word::pins(w) == 0 => {
                    let next = (w & !word::STATE) | word::IN_FLIGHT;
                    match word.compare_exchange(w, next, AcqRel, Acquire) {
                        Ok(_) => break,
                        Err(now) => w = now,
                    }
                }
                word::RESIDENT => return false,
                word::IN_FLIGHT => {
                    // A guess that began before the page had versions.
                    self.wait(page);
                    w = word.load(Acquire);
                }
                _ => return true,
            }
        }
        // SAFETY: we have just put the page in flight, and no device has its frame.
        unsafe { self.in_place(page) }.copy_from_slice(now);
        self.publish(page, Pin::No);
        true
    }

    /// Throws a page out, whatever its use, unless it is pinned or being read.
    pub fn throw_out(&self, page: PageId) -> Thrown {
        let Some(word) = self.member.table.get(page.0) else { return Thrown::Absent };
        let mut w = word.load(Acquire);
        loop {
            match word::state(w) {
                word::RESIDENT if word::pins(w) == 0 => {
                    match word.compare_exchange(w, w & word::VERSIONED, AcqRel, Acquire) {
                        Ok(_) => break,
                        Err(now) => w = now,
                    }
                }
                word::RESIDENT | word::IN_FLIGHT => return Thrown::Held,
                _ => return Thrown::Absent,
            }
        }
        let frame = word::frame(w);
        assert_eq!(self.shared.frames.page(frame), Some(self.owned(page)), "word and frame name each other");
        let tree = self.tree_in(frame);
        self.shared.planned_settled(word::rule(w));
        self.give_back(frame);
        Thrown::Out(tree)
    }
}

/// Whether an arriving page is pinned for its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pin {
    Yes,
    No,
}

/// Outcome for a page that was to be thrown out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Thrown {
    /// It was not here.
    Absent,
    /// It belonged to this tree.
    Out(crate::page::TreeId),
    /// It is pinned or being read.
    Held,
}

/// How a resident page was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Touched {
    /// Read ahead and not used yet.
    Never,
    /// Used, but not since the clock's hand passed or it came.
    Once,
    /// Touched again since.
    Often,
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A PageRef holds no share of the pool (that would cost more than the pin), so memory
        // that is still pinned is never unmapped.
        if self.shared.leave(self.number) {
            // SAFETY: dropped once, here; no pin is left, and new ones need a pool.
            unsafe { ManuallyDrop::drop(&mut self.member) };
        }
    }
}
