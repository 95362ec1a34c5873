//! Turns of queries and of changes: so many run at the same time, others wait.
//!
//! There are two lines. One is of those that come, the other of those that have begun, have lent
//! their slots and want one again. The latter go first: they hold what others wait for. Of a few
//! slots in a row one is for those that come, so that neither line stands still.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use snowmelt_sparql::QuerySlot;
use tokio::sync::oneshot;

use crate::running::LOOK;

/// Slots in a row that go to those that want one again, while others wait for their first.
const AGAIN_IN_A_ROW: usize = 3;

/// The slots of one kind of work.
pub struct Slots {
    queue: Arc<SlotQueue>,
}

/// The slots that are free, and the requests that wait for one.
struct SlotQueue {
    /// free or not
    all: usize,
    lines: Mutex<SlotLines>,
    /// those that had to wait, and how long all together
    waited: AtomicU64,
    waited_ns: AtomicU64,
}

/// A request that waits is told by the slot that it gets.
type Waiting = oneshot::Sender<Held>;

/// Invariant: while a slot is free, no request waits.
#[derive(Default)]
struct SlotLines {
    free: usize,
    /// that want one again, and that want their first, in the order of their coming
    again: VecDeque<Waiting>,
    first: VecDeque<Waiting>,
    /// slots that the first of these got since the second got one, or was empty
    in_a_row: usize,
    /// requests that have lent their slots for want of memory
    short: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotLine {
    First,
    Again,
}

impl SlotLines {
    /// The next to get a slot.
    fn next(&mut self) -> Option<Waiting> {
        for line in [&mut self.again, &mut self.first] {
            while line.front().is_some_and(Waiting::is_closed) {
                line.pop_front();
            }
        }
        if self.first.is_empty() {
            self.in_a_row = 0;
            return self.again.pop_front();
        }
        if self.in_a_row < AGAIN_IN_A_ROW
            && let Some(waiting) = self.again.pop_front()
        {
            self.in_a_row += 1;
            return Some(waiting);
        }
        self.in_a_row = 0;
        self.first.pop_front()
    }
}

impl Slots {
    pub fn new(all: usize) -> Self {
        let lines = Mutex::new(SlotLines { free: all, ..SlotLines::default() });
        let (waited, waited_ns) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { queue: Arc::new(SlotQueue { all, lines, waited, waited_ns }) }
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.queue.all
    }

    /// A slot, if one comes free in time.
    pub async fn take(&self, wait: Duration) -> Option<Slot> {
        let held = tokio::time::timeout(wait, self.queue.take(SlotLine::First)).await.ok()?;
        Some(Slot::new(held, &self.queue))
    }

    /// How many have waited, in vain or not, and how long all together.
    pub fn waited(&self) -> (u64, Duration) {
        let time = Duration::from_nanos(self.queue.waited_ns.load(Ordering::Relaxed));
        (self.queue.waited.load(Ordering::Relaxed), time)
    }

    #[cfg(test)]
    pub fn try_take(&self) -> Option<Slot> {
        let held = self.queue.enter(SlotLine::First).ok()?;
        Some(Slot::new(held, &self.queue))
    }
}

impl SlotQueue {
    fn lines(&self) -> MutexGuard<'_, SlotLines> {
        self.lines.lock().expect("no holder panics")
    }

    /// A slot that is free, or a place in a line.
    fn enter(self: &Arc<Self>, line: SlotLine) -> Result<Held, oneshot::Receiver<Held>> {
        let mut lines = self.lines();
        if lines.free > 0 {
            lines.free -= 1;
            return Ok(Held(Some(Arc::clone(self))));
        }
        let line = if line == SlotLine::Again { &mut lines.again } else { &mut lines.first };
        // those that gave up, while all slots are held for long
        line.retain(|waiting| !waiting.is_closed());
        let (waiting, place) = oneshot::channel();
        line.push_back(waiting);
        Err(place)
    }

    async fn take(self: &Arc<Self>, line: SlotLine) -> Held {
        match self.enter(line) {
            Ok(held) => held,
            Err(place) => {
                let _counted = CountedWait { of: self, begun: Instant::now() };
                place.await.expect("a line lives as long as those in it")
            }
        }
    }

    /// Gives a slot to the next that waits.
    fn pass_on(self: Arc<Self>) {
        let mut held = Held(Some(Arc::clone(&self)));
        loop {
            let mut lines = self.lines();
            let Some(next) = lines.next() else {
                lines.free += 1;
                assert!(lines.free <= self.all, "a slot is given back once");
                held.0 = None;
                return;
            };
            drop(lines);
            match next.send(held) {
                Ok(()) => return,
                // it has given up just now
                Err(back) => held = back,
            }
        }
    }
}

/// One slot. Dropped, it goes to the next that waits.
struct Held(Option<Arc<SlotQueue>>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.pass_on();
        }
    }
}

/// A request without slot for want of memory.
struct Short(Arc<SlotQueue>);

impl Short {
    /// As many as there are slots may be so at the same time.
    fn begin(queue: &Arc<SlotQueue>) -> Option<Self> {
        let mut lines = queue.lines();
        if lines.short >= queue.all {
            return None;
        }
        lines.short += 1;
        Some(Self(Arc::clone(queue)))
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        self.0.lines().short -= 1;
    }
}

/// A wait that is counted when it ends, or is given up.
struct CountedWait<'a> {
    of: &'a SlotQueue,
    begun: Instant,
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        self.of.waited.fetch_add(1, Ordering::Relaxed);
        self.of.waited_ns.fetch_add(self.begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

/// A slot; others get it when this is dropped, and while it is released.
pub struct Slot {
    held: Mutex<Option<Held>>,
    short: Mutex<Option<Short>>,
    of: Arc<SlotQueue>,
}

impl Slot {
    fn new(held: Held, of: &Arc<SlotQueue>) -> Self {
        Self { held: Mutex::new(Some(held)), short: Mutex::default(), of: Arc::clone(of) }
    }

    /// Lets others have it.
    pub fn release(&self) {
        let held = self.held.lock().expect("no holder panics").take();
        drop(held);
    }

    /// Lets others have it, unless too many requests wait for memory without one.
    fn release_while_short(&self) -> bool {
        let mut short = self.short.lock().expect("no holder panics");
        if short.is_none() {
            *short = Short::begin(&self.of);
        }
        let is_short = short.is_some();
        drop(short);
        if is_short {
            self.release();
        }
        is_short
    }

    /// Waits until one is free again.
    pub async fn take_again(&self) {
        let short = self.short.lock().expect("no holder panics").take();
        drop(short);
        if self.held.lock().expect("no holder panics").is_none() {
            let held = self.of.take(SlotLine::Again).await;
            *self.held.lock().expect("no holder panics") = Some(held);
        }
    }
}

/// The slot of a request that waits for other machines, or for memory, on a thread of its own. It
/// needs no runtime, which may be about to end.
#[derive(Clone)]
pub struct LentSlot(pub Arc<Slot>);

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl fmt::Debug for LentSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LentSlot")
    }
}

impl QuerySlot for LentSlot {
    fn lend(&self) {
        self.0.release();
    }

    fn lend_for_memory(&self) -> bool {
        self.0.release_while_short()
    }

    fn take_again(&self, go_on: &dyn Fn() -> bool) -> bool {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut taking = pin!(self.0.take_again());
        while taking.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park_timeout(LOOK);
            if !go_on() {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_that_wait_are_counted() {
        let slots = Slots::new(1);
        let wait = Duration::from_millis(20);
        let first = slots.take(wait).await.expect("it is free");
        assert_eq!(slots.waited(), (0, Duration::ZERO));
        assert!(slots.take(wait).await.is_none());
        let (waited, time) = slots.waited();
        assert!(waited == 1 && time >= wait, "{waited}, {time:?}");
        drop(first);
        assert!(slots.take(wait).await.is_some());
        assert_eq!(slots.waited().0, 1);
    }

    /// Without a runtime: one that gives up leaves its place, the others come in their order.
    #[test]
    fn a_lent_slot_is_taken_again_in_order() {
        let slots = Slots::new(1);
        let lent: Vec<LentSlot> = (0..3)
            .map(|_| {
                let slot = LentSlot(Arc::new(slots.try_take().expect("it is free")));
                slot.lend();
                slot
            })
            .collect();
        let holder = slots.try_take().unwrap();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (n, slot) in lent.iter().enumerate() {
                let (order, slots) = (&order, &slots);
                scope.spawn(move || {
                    let until = Instant::now() + Duration::from_millis(if n == 1 { 100 } else { 60_000 });
                    let has_slot = slot.take_again(&|| Instant::now() < until);
                    order.lock().unwrap().push((n, has_slot));
                    slot.lend();
                    assert!(slots.all() == 1);
                });
                thread::sleep(Duration::from_millis(50));
            }
            thread::sleep(Duration::from_millis(300));
            drop(holder);
        });
        assert_eq!(order.into_inner().unwrap(), [(1, false), (0, true), (2, true)]);
        assert_eq!(slots.waited().0, 3);
    }

    /// The slots in a row that go to those that want one again while others want their first.
    #[test]
    fn those_that_take_a_slot_again_go_before_newcomers() {
        let slots = Slots::new(1);
        let mut held = slots.try_take();
        let mut places: Vec<(String, oneshot::Receiver<Held>)> = Vec::new();
        for (name, line, count) in [("first", SlotLine::First, 3), ("again", SlotLine::Again, 5)] {
            for n in 0..count {
                places.push((format!("{name} {n}"), slots.queue.enter(line).err().unwrap()));
            }
        }
        places.retain(|(name, _)| name != "again 1"); // one that has given up
        let mut order = Vec::new();
        while !places.is_empty() {
            drop(held.take());
            let at = places.iter_mut().position(|(_, place)| {
                let got = place.try_recv().ok();
                got.is_some_and(|got| {
                    held = Some(Slot::new(got, &slots.queue));
                    true
                })
            });
            order.push(places.remove(at.expect("the slot went to one that waits")).0);
        }
        let again_first = ["again 0", "again 2", "again 3", "first 0", "again 4", "first 1", "first 2"];
        assert_eq!(order, again_first);
        drop(held);
        assert!(slots.try_take().is_some());
    }

    /// Two slots: two requests without memory lend theirs, and a third one keeps its own until one
    /// of them has memory.
    #[test]
    fn so_many_lend_their_slots_for_want_of_memory() {
        let slots = Slots::new(2);
        let take = || LentSlot(Arc::new(slots.try_take().expect("it is free")));
        let lent = [take(), take()];
        assert!(lent.iter().all(LentSlot::lend_for_memory));
        let third = take();
        assert!(!third.lend_for_memory());
        let fourth = take();
        assert!(slots.try_take().is_none());
        drop(fourth);
        assert!(lent[0].take_again(&|| true));
        assert!(third.lend_for_memory() && third.lend_for_memory());
        assert!(!lent[0].lend_for_memory());
        drop((lent, third));
        let all = [take(), take()];
        assert!(slots.try_take().is_none() && all.iter().all(LentSlot::lend_for_memory));
    }
}
