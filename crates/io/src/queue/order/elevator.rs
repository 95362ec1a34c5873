//! C-SCAN: sweeps from low to high offsets.
//!
//! A newcomer ahead of the sweep joins it, as long as the sweep has not taken `fairness`
//! newcomers; all others wait for the next sweep. So a request waits for at most what was there
//! before it plus `fairness` requests per sweep, however many keep arriving.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::queue::device_request::Pending;

/// Requests by offset and arrival.
type ByOffset = BTreeMap<(u64, u64), Pending>;

#[derive(Default)]
pub(crate) struct Elevator {
    sweep: ByOffset,
    next_sweep: ByOffset,
    /// End of the last request of this sweep.
    head: u64,
    /// Newcomers this sweep has taken.
    joined: usize,
}

impl Elevator {
    pub(crate) fn is_empty(&self) -> bool {
        self.sweep.is_empty() && self.next_sweep.is_empty()
    }

    pub(crate) fn push(&mut self, pending: Pending, fairness: usize) {
        let ahead = !self.sweep.is_empty() && pending.request.offset >= self.head;
        let key = (pending.request.offset, pending.order);
        if ahead && self.joined < fairness {
            self.joined += 1;
            self.sweep.insert(key, pending);
        } else {
            self.next_sweep.insert(key, pending);
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
        self.sweep.first_key_value().map(|(_, next)| next)
    }

    pub(crate) fn pop(&mut self) -> Option<Pending> {
        self.sweep.pop_first().map(|(_, next)| next)
    }

    pub(crate) fn sent(&mut self, end: u64) {
        self.head = end;
    }

    /// Takes out the reads that begin within `offsets`.
    pub(crate) fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        for sweep in [&mut self.sweep, &mut self.next_sweep] {
            into.extend(reads_of(sweep, offsets.clone()));
        }
    }

    pub(crate) fn drain(&mut self) -> Vec<Pending> {
        let all = [&mut self.sweep, &mut self.next_sweep].map(std::mem::take);
        all.into_iter().flat_map(BTreeMap::into_values).collect()
    }
}

/// Takes out the reads that begin within `offsets`.
pub(super) fn reads_of(
    waiting: &mut BTreeMap<(u64, u64), Pending>,
    offsets: Range<u64>,
) -> impl Iterator<Item = Pending> {
    let keys = (offsets.start, 0)..(offsets.end, 0);
    waiting.extract_if(keys, |_, pending| !pending.request.buf.is_write()).map(|(_, pending)| pending)
}
