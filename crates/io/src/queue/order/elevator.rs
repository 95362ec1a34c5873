//! C-SCAN: sweeps from low to high offsets.
//!
//! A newcomer ahead of the sweep joins it, as long as the sweep has not taken `fairness`
//! newcomers; all others wait for the next sweep. So a request waits for at most what was there
//! before it plus `fairness` requests per sweep, however many keep arriving.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::queue::device_request::{DeviceRequest, Pending};
use crate::queue::order::{Choice, Order, Rules};

/// Requests by offset and arrival.
type ByOffset = BTreeMap<(u64, u64), Pending>;

/// The order of [`Policy::Elevator`](crate::Policy::Elevator); other orders may be made of it.
#[derive(Default)]
pub struct Elevator {
    sweep: ByOffset,
    next_sweep: ByOffset,
    /// End of the last request of this sweep.
    head: u64,
    /// Newcomers this sweep has taken.
    joined: usize,
}

impl Order for Elevator {
    fn is_empty(&self) -> bool {
        self.sweep.is_empty() && self.next_sweep.is_empty()
    }

    fn push(&mut self, pending: Pending, rules: &Rules) {
        let ahead = !self.sweep.is_empty() && pending.request.offset >= self.head;
        let key = (pending.request.offset, pending.order);
        if ahead && self.joined < rules.fairness {
            self.joined += 1;
            self.sweep.insert(key, pending);
        } else {
            self.next_sweep.insert(key, pending);
        }
    }

    /// Turns round when the sweep is at its end.
    fn choose(&mut self, _now_ns: u64, _rules: &Rules) -> Choice {
        if self.sweep.is_empty() {
            std::mem::swap(&mut self.sweep, &mut self.next_sweep);
            self.joined = 0;
        }
        Choice::Take
    }

    fn peek(&self) -> Option<&Pending> {
        self.sweep.first_key_value().map(|(_, next)| next)
    }

    fn pop(&mut self) -> Option<Pending> {
        self.sweep.pop_first().map(|(_, next)| next)
    }

    fn sent(&mut self, request: &DeviceRequest, _now_ns: u64, _rules: &Rules) {
        self.head = request.end();
    }

    fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        let keys = (offsets.start, 0)..(offsets.end, 0);
        for sweep in [&mut self.sweep, &mut self.next_sweep] {
            let reads = sweep.extract_if(keys.clone(), |_, pending| !pending.request.buf.is_write());
            into.extend(reads.map(|(_, pending)| pending));
        }
    }

    fn drain(&mut self) -> Vec<Pending> {
        let all = [&mut self.sweep, &mut self.next_sweep].map(std::mem::take);
        all.into_iter().flat_map(BTreeMap::into_values).collect()
    }
}
