//! A query's share of the memory budget.
//!
//! 1. *Admission*: before it begins, a query reserves what it needs at least. When that is not
//!    there it waits, holding nothing, for those that run to end; after a while it is refused
//!    as busy. So a query that runs can always go on, and waits for no other.
//! 2. Whatever grows while it runs is held by a [`Held`], which reserves from the process's
//!    budget in steps. Those steps leave a rest, so that the next query can begin.
//! 3. A query that waits for its client, or for another machine, lends what it does not use
//!    ([`MemoryShare::lend`]), and asks for its least when it goes on.
//! 4. A long text reserves what its trees and plan will take before it is parsed, together with the
//!    least of its query: what holds the one does not wait for the other ([`text_bytes`]). One that
//!    could never have it is refused at once.
//! 5. A query over its share, or a budget that is used up, makes operators spill
//!    ([`Held::is_tight`]); what cannot spill ends the query with an error that names the
//!    operator.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snowmelt_store::{MemoryBudget, Reservation};

use crate::exceeded::Exceeded;
use crate::limits::QueryLimits;

type Result<T> = std::result::Result<T, Exceeded>;

/// Pause between two looks at the budget of a query that waits.
const LOOK_NS: u64 = 2_000_000;

/// Shares of queries, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// most of one query
    pub share: usize,
    /// most of the batches and terms of one worker, from which other sizes follow
    pub worker: usize,
    /// least of one query, reserved before it begins
    pub least: usize,
    /// most that the least may be: more may never be free
    room: usize,
}

impl Shares {
    /// Queries that may wait for other machines at the same time: what they hold of batches
    /// meanwhile, half of what a worker has, is together a quarter of what the pool leaves.
    pub fn most_waiting(total: u64, pool: u64) -> usize {
        const PARTS: u64 = 4;
        let worker = Self::new(total, pool, None).worker.max(2) as u64;
        ((total.saturating_sub(pool) / PARTS) / (worker / 2)).max(1) as usize
    }

    /// The shares of a budget of which a pool took `pool` bytes, for a query that gathers rows;
    /// `asked`: what the caller wants a query to have.
    pub fn new(total: u64, pool: u64, asked: Option<usize>) -> Self {
        /// Queries with one worker that can begin at once in what the pool leaves: a wide device
        /// wants many.
        const AT_ONCE: u64 = 32;
        const LEAST: u64 = 512 << 10;
        const MOST: u64 = 16 << 20;
        let rest = total.saturating_sub(pool);
        let share = asked.unwrap_or(total as usize / 4);
        let worker = (rest / AT_ONCE).clamp(LEAST, MOST).min(rest / 4) as usize;
        assert!(worker as u64 <= rest, "the least of a query is of what the pool leaves");
        Self::with_worker(share, worker.min(share / 4), rest as usize / 2)
    }

    fn with_worker(share: usize, worker: usize, room: usize) -> Self {
        Self { share, worker, least: worker, room }.gathering(1)
    }

    /// For a query of which so many operators gather rows. One has room for the rows until it
    /// puts them aside, and for doing so; more have their turns in part.
    #[must_use]
    pub fn gathering(self, operators: usize) -> Self {
        let halves = if operators == 0 { 2 } else { operators.min(7) + 3 };
        Self { least: (self.worker * halves / 2).min(self.share).min(self.room), ..self }
    }
}

/// The fate of a text that takes more than it can ever have.
#[derive(Clone, Copy)]
pub enum TextKind {
    /// It is refused.
    Bounded,
    /// It gets what there is: an update that a program makes in one piece, with parameters or in a
    /// transaction.
    Own,
}

/// Memory that the pool leaves for texts, and what a query needs beside its text.
#[derive(Clone, Copy)]
pub struct TextRoom {
    /// the budget
    pub total: u64,
    /// what the pool took of it
    pub pool: u64,
    /// the least of one query
    pub least: usize,
}

/// Bytes to be reserved for the trees and the plan of a text of `len` bytes that take `wanted`.
/// Three quarters of what the pool leaves, less what a server holds of the same request, is the
/// most that any text gets, so that others can run beside it. One that needs more will never have
/// it: it is refused.
pub fn text_bytes(kind: TextKind, len: usize, wanted: usize, room: TextRoom) -> Result<usize> {
    /// Of the text, by the one that asks: the body of a request, and the text in it.
    const COPIES: u64 = 2;
    let held = len as u64 * COPIES + room.least as u64;
    let most = (room.total.saturating_sub(room.pool) / 4 * 3).saturating_sub(held) as usize;
    match kind {
        TextKind::Bounded if wanted > most => {
            Err(Exceeded::TextMemory { text_bytes: len, needed_bytes: wanted, most_bytes: most })
        }
        _ => Ok(wanted.min(most)),
    }
}

/// The reservation of a long text. It is to be dropped after the trees and the plan: then their
/// memory goes back to the system.
pub struct TextMemory {
    /// Where it is from.
    pub budget: MemoryBudget,
    /// For trees and plan.
    pub reserved: Reservation,
    /// The least of its query, which does not wait for that again while it holds the text
    pub least: Option<Reservation>,
}

impl Drop for TextMemory {
    fn drop(&mut self) {
        self.budget.ended(self.reserved.bytes());
    }
}

/// Queries that wait for their least, in the order in which they came. One that needs more than
/// others is not overtaken by them at first, so that it gets its turn while they come and go. When
/// that has not helped, memory is held for long, and those that fit do not wait for it.
///
/// Each caller that looks, a newcomer too, serves the whole line from the front as far as the
/// budget goes. So a query waits only while memory is short: a line of queries that each slept
/// until its own turn came would let one query begin per pause, with all memory free.
#[derive(Debug)]
pub struct Line {
    /// how long one that waits is not overtaken
    is_first_for: Duration,
    state: Mutex<LineState>,
}

impl Default for Line {
    fn default() -> Self {
        Self { is_first_for: Duration::from_secs(1), state: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct LineState {
    tickets: u64,
    /// in the order of coming
    waiting: VecDeque<Waiting>,
    /// served, and not yet taken by the query
    granted: Vec<(u64, Reservation)>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    bytes: u64,
    may_be_overtaken: bool,
}

impl LineState {
    /// Serves from the front on all that there is room for, up to one that may not be overtaken.
    fn serve(&mut self, budget: &MemoryBudget, what: &'static str) {
        /// All that wait look often: a long line is not gone through each time.
        const MOST_OVERTAKEN: usize = 64;
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at) {
            match budget.reserve(what, waiting.bytes) {
                Ok(reserved) => {
                    self.granted.push((waiting.ticket, reserved));
                    self.waiting.remove(at);
                }
                Err(_) if waiting.may_be_overtaken && at < MOST_OVERTAKEN => at += 1,
                Err(_) => break,
            }
        }
    }

    fn take(&mut self, ticket: u64) -> Option<Reservation> {
        let at = self.granted.iter().position(|(of, _)| *of == ticket)?;
        Some(self.granted.swap_remove(at).1)
    }
}

/// A place in the line, left when it is dropped.
struct PlaceInLine<'a> {
    line: &'a Line,
    ticket: u64,
}

impl Line {
    /// Of those that need more and less: a small one does not wait for a large one that waits.
    pub fn of_all_sizes() -> Self {
        Self { is_first_for: Duration::ZERO, ..Self::default() }
    }

    /// Reserves once all that came before are served and there is room, until `wait` is over;
    /// `sleep_ns` passes the time.
    pub fn reserve(
        &self,
        budget: &MemoryBudget,
        what: &'static str,
        bytes: usize,
        wait: Duration,
        limits: &QueryLimits,
        sleep_ns: &dyn Fn(u64),
    ) -> Result<Reservation> {
        let place = self.join(bytes as u64);
        let mut begun = None;
        let mut looks = 0;
        let mut waited = Duration::ZERO;
        loop {
            if let Some(reserved) = place.look(budget, what, waited) {
                return Ok(reserved);
            }
            limits.check()?;
            // looks, not only time: a clock that stands still must not keep it here
            let looked = Duration::from_nanos(looks * LOOK_NS);
            waited = begun.get_or_insert_with(Instant::now).elapsed().max(looked);
            if waited >= wait {
                return Err(Exceeded::Busy {
                    waited: wait,
                    least_bytes: bytes,
                    free_bytes: budget.free(),
                    total_bytes: budget.total(),
                });
            }
            sleep_ns(LOOK_NS);
            looks += 1;
        }
    }

    fn join(&self, bytes: u64) -> PlaceInLine<'_> {
        let mut state = self.state.lock();
        let ticket = state.tickets;
        state.tickets += 1;
        debug_assert!(state.waiting.back().is_none_or(|last| last.ticket < ticket), "tickets ascend");
        state.waiting.push_back(Waiting { ticket, bytes, may_be_overtaken: false });
        PlaceInLine { line: self, ticket }
    }
}

impl PlaceInLine<'_> {
    /// Serves the line, and takes what is its own. It has waited so long.
    fn look(&self, budget: &MemoryBudget, what: &'static str, waited: Duration) -> Option<Reservation> {
        let mut state = self.line.state.lock();
        if waited >= self.line.is_first_for
            && let Ok(at) = state.waiting.binary_search_by_key(&self.ticket, |waiting| waiting.ticket)
        {
            state.waiting[at].may_be_overtaken = true;
        }
        state.serve(budget, what);
        state.take(self.ticket)
    }
}

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        let mut state = self.line.state.lock();
        state.waiting.retain(|waiting| waiting.ticket != self.ticket);
        drop(state.take(self.ticket));
    }
}

/// The memory of one query; clones share it.
#[derive(Clone, Debug)]
pub struct MemoryShare {
    inner: Arc<Counted>,
}

#[derive(Debug)]
struct Counted {
    shares: Shares,
    used: AtomicUsize,
    most: AtomicUsize,
    budget: MemoryBudget,
    reserved: Mutex<Reservation>,
}

impl MemoryShare {
    /// Reserves the least, waiting for it until `wait` is over; `sleep_ns` passes the time.
    pub fn admit(
        shares: Shares,
        budget: MemoryBudget,
        line: &Line,
        wait: Duration,
        limits: &QueryLimits,
        sleep_ns: impl Fn(u64),
    ) -> Result<Self> {
        let reserved = line.reserve(&budget, "a query", shares.least, wait, limits, &sleep_ns)?;
        Ok(Self::with_least(shares, budget, reserved))
    }

    /// With the least that was reserved before: what is too much of it goes back, what is missing
    /// is added if there is room.
    pub fn with_least(mut shares: Shares, budget: MemoryBudget, mut reserved: Reservation) -> Self {
        let bytes = reserved.bytes();
        reserved.shrink(bytes.saturating_sub(shares.least as u64));
        if bytes < shares.least as u64 && reserved.grow("a query", shares.least as u64 - bytes).is_err() {
            shares.least = bytes as usize;
        }
        let (used, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let inner = Counted { shares, used, most, budget, reserved: Mutex::new(reserved) };
        Self { inner: Arc::new(inner) }
    }

    /// Most bytes of the batches and terms of one worker.
    pub fn worker_bytes(&self) -> usize {
        self.inner.shares.worker
    }

    /// Most bytes held at once.
    pub fn most(&self) -> usize {
        self.inner.most.load(Ordering::Relaxed)
    }

    /// Gives what is reserved and not used to others.
    pub fn lend(&self) {
        let mut reserved = self.inner.reserved.lock();
        let spare = reserved.bytes().saturating_sub(self.inner.used.load(Ordering::Relaxed) as u64);
        reserved.shrink(spare);
    }

    /// Reserves the least again, if there is room for it. Without it, the query has what it
    /// uses, and more as it can be had.
    pub fn take_back(&self) -> bool {
        let mut reserved = self.inner.reserved.lock();
        let missing = (self.inner.shares.least as u64).saturating_sub(reserved.bytes());
        missing == 0 || reserved.grow("a query", missing).is_ok()
    }

    /// Whether there is room for the least now.
    pub fn could_take_back(&self) -> bool {
        let reserved = self.inner.reserved.lock().bytes();
        self.inner.budget.free() >= (self.inner.shares.least as u64).saturating_sub(reserved)
    }

    /// An account of nothing yet.
    pub fn held(&self) -> Held {
        Held { share: Some(self.clone()), bytes: 0 }
    }

    fn step(&self) -> usize {
        (self.inner.shares.worker / 2).clamp(64 << 10, 1 << 20)
    }

    /// Bytes that a step of the budget leaves to queries that are about to begin.
    fn rest(&self) -> u64 {
        4 * self.inner.shares.worker as u64
    }

    fn take(&self, bytes: usize, what: &'static str) -> Result<()> {
        let inner = &*self.inner;
        let used = inner.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let failed = || {
            inner.used.fetch_sub(bytes, Ordering::Relaxed);
            Err(Exceeded::Memory { share_bytes: inner.shares.share, what })
        };
        if used > inner.shares.share {
            return failed();
        }
        inner.most.fetch_max(used, Ordering::Relaxed);
        let mut reserved = inner.reserved.lock();
        let missing = used.saturating_sub(reserved.bytes() as usize);
        if missing > 0 {
            let step = missing.next_multiple_of(self.step()) as u64;
            if reserved.grow_leaving("a query", step, self.rest()).is_err()
                && reserved.grow("a query", missing as u64).is_err()
            {
                drop(reserved);
                return failed();
            }
        }
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let inner = &*self.inner;
        // Before the bytes are subtracted: what another thread takes meanwhile must stay reserved.
        let mut reserved = inner.reserved.lock();
        let before = inner.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "no more is given back than was taken");
        let used = before - bytes;
        let keep = (used + self.step()).max(inner.shares.least);
        let spare = (reserved.bytes() as usize).saturating_sub(keep);
        reserved.shrink((spare / self.step() * self.step()) as u64);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Batches and terms are what any query has: the heap is not looked at for them.
        self.budget.ended(self.most.get_mut().saturating_sub(self.shares.worker) as u64);
    }
}

/// Bytes that one part of a query holds; given back when it is dropped.
#[derive(Debug, Default)]
pub struct Held {
    /// absent for what no query owns
    share: Option<MemoryShare>,
    bytes: usize,
}

impl Held {
    /// The part holds so many bytes now, or is about to; `what` names it in the error.
    pub fn set(&mut self, bytes: usize, what: &'static str) -> Result<()> {
        let Some(share) = &self.share else { return Ok(()) };
        if bytes > self.bytes {
            share.take(bytes - self.bytes, what)?;
        } else {
            share.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Of the same query, for another part of it.
    pub fn another(&self) -> Held {
        Held { share: self.share.clone(), bytes: 0 }
    }

    /// Holds more.
    pub fn add(&mut self, bytes: usize, what: &'static str) -> Result<()> {
        self.set(self.bytes + bytes, what)
    }

    /// Holds less.
    pub fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        if let Some(share) = &self.share {
            share.give_back(bytes);
        }
        self.bytes -= bytes;
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives all back.
    pub fn clear(&mut self) {
        if let Some(share) = &self.share {
            share.give_back(std::mem::take(&mut self.bytes));
        }
    }

    /// Whether an operator that is about to hold `bytes` should spill instead: one leaves half
    /// of the share to the others, and what is little goes on as long as the query's own least
    /// lasts. Where it should not, memory for these bytes and for spilling them later is reserved.
    pub fn is_tight(&self, bytes: usize) -> bool {
        /// Memory that putting rows aside takes itself.
        const ASIDE_BYTES: usize = 256 << 10;
        let Some(share) = &self.share else { return false };
        let inner = &*share.inner;
        let used = inner.used.load(Ordering::Relaxed) + bytes.saturating_sub(self.bytes);
        let Shares { share: most, worker, .. } = inner.shares;
        let left = (most / 4).max(ASIDE_BYTES.min(most / 2));
        if bytes > most / 2 || used > most - left {
            return true;
        }
        let mut reserved = inner.reserved.lock();
        let beyond = (used + share.step() + ASIDE_BYTES).saturating_sub(reserved.bytes() as usize) as u64;
        // Not only looked at: a query that begins now must not get what putting rows aside takes.
        bytes > worker / 4 && beyond > 0 && reserved.grow_leaving("a query", beyond, share.rest()).is_err()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(shares: Shares, budget: &MemoryBudget) -> Result<MemoryShare> {
        let wait = Duration::from_millis(20);
        MemoryShare::admit(shares, budget.clone(), &Line::default(), wait, &QueryLimits::default(), |_| {})
    }

    #[test]
    fn the_budget_gets_back_what_queries_took() {
        let budget = MemoryBudget::new(16 << 20);
        let share = admit(Shares::with_worker(usize::MAX, 1 << 19, usize::MAX), &budget).unwrap();
        assert_eq!(budget.used(), 1 << 20);
        let mut held = share.held();
        held.set(1 << 20, "test").unwrap();
        assert_eq!(budget.used(), 1 << 20);
        held.add(2 << 20, "test").unwrap();
        assert_eq!(budget.used(), 3 << 20);
        assert!(held.add(16 << 20, "test").is_err(), "more than the budget has");
        assert_eq!(held.bytes(), 3 << 20);
        held.set(100, "test").unwrap();
        assert!(budget.used() <= 2 << 20);
        drop((held, share));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_share_is_a_bound_of_its_own() {
        let budget = MemoryBudget::new(1 << 30);
        let share = admit(Shares::with_worker(1000, 250, 1000), &budget).unwrap();
        let mut held = share.held();
        assert!(held.is_tight(501) && !held.is_tight(500));
        assert!(matches!(held.set(1001, "test"), Err(Exceeded::Memory { share_bytes: 1000, .. })));
    }

    #[test]
    fn queries_wait_for_memory_and_for_nothing_else() {
        let budget = MemoryBudget::new(64 << 20);
        let line = Line::default();
        let begin = || {
            line.reserve(&budget, "test", 1 << 20, Duration::from_secs(1), &QueryLimits::default(), &|_| {
                panic!("there is memory")
            })
        };
        // In the line, and about to look.
        let other = line.join(1 << 20);
        drop(begin().unwrap());
        assert!(other.look(&budget, "test", Duration::ZERO).is_some());
        drop(other);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..2000).for_each(|_| drop(begin().unwrap())));
            }
        });
        assert_eq!(budget.used(), 0);
        // A waiter that leaves without looking leaves nothing reserved.
        let gone = line.join(1 << 20);
        drop(begin().unwrap());
        assert_eq!(budget.used(), 1 << 20);
        drop(gone);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn queries_wait_for_their_least_and_then_are_refused() {
        let budget = MemoryBudget::new(4 << 20);
        let shares = Shares { share: 4 << 20, worker: 1 << 20, least: 3 << 20, room: 4 << 20 };
        let first = admit(shares, &budget).unwrap();
        assert!(matches!(admit(shares, &budget), Err(Exceeded::Busy { free_bytes: 1048576, .. })));
        // what runs may take all that is left, but what can spill leaves it
        let mut held = first.held();
        assert!(held.is_tight(3 << 20), "the next one could not begin");
        held.set(4 << 20, "test").unwrap();
        drop((held, first));
        drop(admit(shares, &budget).unwrap());
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn who_waits_is_not_overtaken() {
        let budget = MemoryBudget::new(4 << 20);
        let shares = Shares { share: 4 << 20, worker: 1 << 20, least: 3 << 20, room: 4 << 20 };
        let line = Line::default();
        let running = Mutex::new(Some(admit(shares, &budget).unwrap()));
        let wait = Duration::from_secs(1);
        let now = |wait, pause: &dyn Fn()| {
            MemoryShare::admit(shares, budget.clone(), &line, wait, &QueryLimits::default(), |_| pause())
        };
        let first = now(wait, &|| {
            // Room comes free while another one begins: it is not the first.
            drop(running.lock().take());
            assert!(matches!(now(Duration::ZERO, &|| ()), Err(Exceeded::Busy { .. })));
        });
        drop(first.unwrap());
        drop(now(Duration::ZERO, &|| ()).unwrap());
    }

    /// Memory that is held for long keeps out those that need more of it, and no others.
    #[test]
    fn one_that_waits_for_long_is_overtaken() {
        let budget = MemoryBudget::new(4 << 20);
        let line = Line::default();
        let held = budget.reserve("a test", 2 << 20).unwrap();
        let [large, small] = [3 << 20, 1 << 20].map(|bytes| line.join(bytes));
        let look = |place: &PlaceInLine<'_>, waited| place.look(&budget, "test", waited).is_some();
        assert!(!look(&large, Duration::from_millis(999)));
        assert!(!look(&small, Duration::from_millis(998)));
        assert!(!look(&large, Duration::from_secs(1)));
        assert!(look(&small, Duration::from_secs(1)));
        let later = line.join(2 << 20);
        drop(held);
        assert!(!look(&later, Duration::ZERO), "the large one is first as soon as there is room");
        assert!(look(&large, Duration::from_secs(2)));
        drop(large);
        assert!(look(&later, Duration::ZERO));
    }

    #[test]
    fn any_query_can_begin_on_an_idle_server() {
        for total in [4u64 << 20, 8 << 20, 64 << 20, 1 << 30] {
            let pool = total / 4 * 3;
            for operators in 0..20 {
                let shares = Shares::new(total, pool, None).gathering(operators);
                // Caches and connections have some of what the pool leaves.
                assert!(shares.least as u64 <= (total - pool) / 2, "{total} {operators}");
                assert!(shares.least > 0);
            }
            let (worker, waiting) =
                (Shares::new(total, pool, None).worker as u64, Shares::most_waiting(total, pool) as u64);
            assert!(waiting > 0 && waiting * worker / 2 <= (total - pool) / 4, "{total} {waiting}");
        }
    }

    #[test]
    fn a_small_text_does_not_wait_for_a_large_one_that_waits() {
        let budget = MemoryBudget::new(64 << 20);
        let line = Line::of_all_sizes();
        let taken = budget.reserve("a test", 40 << 20).unwrap();
        let [large, small] = [48 << 20, 8 << 20].map(|bytes| line.join(bytes));
        assert!(large.look(&budget, "test", Duration::ZERO).is_none());
        assert!(small.look(&budget, "test", Duration::ZERO).is_some());
        drop(taken);
        assert!(large.look(&budget, "test", Duration::ZERO).is_some());
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_text_that_can_never_have_its_memory_is_refused() {
        let room = TextRoom { total: 256 << 20, pool: 128 << 20, least: 4 << 20 };
        let of = |kind, len: usize| text_bytes(kind, len, 64 * len, room);
        assert_eq!(of(TextKind::Bounded, 1 << 20).unwrap(), 64 << 20);
        let refused = of(TextKind::Bounded, 8 << 20).unwrap_err();
        assert!(matches!(refused, Exceeded::TextMemory { .. }), "{refused}");
        assert!(of(TextKind::Own, 16 << 20).unwrap() < 96 << 20, "a program's own gets what there is");
    }

    #[test]
    fn a_query_that_waits_lends_what_it_does_not_use() {
        let budget = MemoryBudget::new(4 << 20);
        let shares = Shares { share: 4 << 20, worker: 1 << 20, least: 3 << 20, room: 4 << 20 };
        let first = admit(shares, &budget).unwrap();
        let mut held = first.held();
        held.set(1 << 20, "test").unwrap();
        first.lend();
        assert_eq!(budget.used(), 1 << 20);
        assert!(first.could_take_back());
        let second = admit(shares, &budget).unwrap();
        assert!(!first.could_take_back() && !first.take_back());
        held.set(1 << 19, "test").unwrap();
        assert!(!first.take_back());
        drop(second);
        assert!(first.could_take_back() && first.take_back());
        assert_eq!(budget.used(), 3 << 20);
        drop((held, first));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn many_queries_at_once_stay_within_the_budget() {
        let budget = MemoryBudget::new(64 << 20);
        let pool = budget.reserve("a pool", 48 << 20).unwrap();
        let shares = Shares::new(budget.total(), pool.bytes(), None);
        let running: Vec<MemoryShare> = (0..64).map_while(|_| admit(shares, &budget).ok()).collect();
        assert_eq!(running.len(), 16);
        let mut helds: Vec<Held> = running.iter().map(MemoryShare::held).collect();
        for held in &mut helds {
            while !held.is_tight(held.bytes() + 1000) {
                held.add(1000, "test").unwrap();
            }
            assert!(held.bytes() >= shares.worker / 4);
        }
        assert!(budget.peak() <= budget.total());
        drop((helds, running));
        let pipelines = (0..64).map_while(|_| admit(shares.gathering(0), &budget).ok());
        assert_eq!(pipelines.collect::<Vec<_>>().len(), 32, "those that gather nothing need less");
    }
}
