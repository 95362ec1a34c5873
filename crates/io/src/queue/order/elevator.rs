//! C-SCAN: sweeps from low to high offsets.
//!
//! A newcomer ahead of the sweep joins it, as long as the sweep has not taken `fairness`
//! newcomers; all others wait for the next sweep. So a request waits for at most what was there
//! before it plus `fairness` requests per sweep, however many keep arriving.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::queue::device_request::Pending;

#[derive(Default)]
pub(crate) struct Elevator {
    sweep: BinaryHeap<Reverse<ByOffset>>,
    next_sweep: BinaryHeap<Reverse<ByOffset>>,
    /// End of the last request of this sweep.
    head: u64,
    /// Newcomers this sweep has taken.
    joined: usize,
}

struct ByOffset(Pending);

impl Ord for ByOffset {
    fn cmp(&self, other: &ByOffset) -> Ordering {
        (self.0.request.offset, self.0.order).cmp(&(other.0.request.offset, other.0.order))
    }
}
impl PartialOrd for ByOffset {
    fn partial_cmp(&self, other: &ByOffset) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for ByOffset {
    fn eq(&self, other: &ByOffset) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for ByOffset {}

impl Elevator {
    pub(crate) fn is_empty(&self) -> bool {
        self.sweep.is_empty() && self.next_sweep.is_empty()
    }

    pub(crate) fn push(&mut self, pending: Pending, fairness: usize) {
        let ahead = !self.sweep.is_empty() && pending.request.offset >= self.head;
        if ahead && self.joined < fairness {
            self.joined += 1;
            self.sweep.push(Reverse(ByOffset(pending)));
        } else {
            self.next_sweep.push(Reverse(ByOffset(pending)));
        }
    }

    /// Turns round when the sweep is at its end.
    pub(crate) fn choose(&mut self) {
        if self.sweep.is_empty() {
            std::mem::swap(&mut self.sweep, &mut self.next_sweep);
            self.joined = 0;
        }
    }

    pub(crate) fn peek(&self) -> Option<&Pending> {
        self.sweep.peek().map(|Reverse(next)| &next.0)
    }

    pub(crate) fn pop(&mut self) -> Option<Pending> {
        self.sweep.pop().map(|Reverse(next)| next.0)
    }

    pub(crate) fn sent(&mut self, end: u64) {
        self.head = end;
    }

    /// Takes out those for which `is_wanted` holds.
    pub(crate) fn take_where(&mut self, is_wanted: &dyn Fn(&Pending) -> bool, into: &mut Vec<Pending>) {
        for heap in [&mut self.sweep, &mut self.next_sweep] {
            heap.retain(|Reverse(ByOffset(pending))| {
                let is_wanted = is_wanted(pending);
                into.extend(is_wanted.then_some(*pending));
                !is_wanted
            });
        }
    }

    pub(crate) fn drain(&mut self) -> Vec<Pending> {
        self.sweep.drain().chain(self.next_sweep.drain()).map(|Reverse(p)| p.0).collect()
    }
}
