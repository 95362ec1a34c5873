//! Deadlines, after Linux's deadline scheduler: sorted batches, but no request waits much
//! longer than a deadline.
//!
//! 1. Reads and writes wait apart, each sorted by offset and by age.
//! 2. A batch of at most `batch` device requests goes upwards from where the last one ended.
//! 3. Between batches: reads go first, unless writes were passed over `writes_starved` times;
//!    and when the oldest of the chosen direction is past its deadline (or nothing lies ahead),
//!    the batch begins with it instead.
//!
//! The elevator bounds the wait by a number of requests, which on a slow device with large
//! requests can take minutes. This order bounds it by a time.

use std::collections::BTreeMap;
use std::ops::Range;

use snowmelt_io::{Choice, DeviceRequest, Order, Pending, Rules};

use crate::tuning::Tuning;

pub(crate) struct Deadline {
    tuning: Tuning,
    reads: Direction,
    writes: Direction,
    /// True while the current batch is one of writes.
    writing: bool,
    /// Device requests this batch may still have.
    left: usize,
    /// Where the batch goes on.
    head: u64,
    /// Times writes were passed over.
    starved: u32,
}

/// The requests of one direction.
#[derive(Default)]
struct Direction {
    /// By offset and order of arrival.
    sorted: BTreeMap<(u64, u64), Pending>,
    /// Order of arrival to offset.
    by_age: BTreeMap<u64, u64>,
}

impl Direction {
    fn ahead(&self, head: u64) -> Option<&Pending> {
        self.sorted.range((head, 0)..).next().map(|(_, pending)| pending)
    }

    fn oldest(&self) -> Option<&Pending> {
        let (&order, &offset) = self.by_age.first_key_value()?;
        Some(&self.sorted[&(offset, order)])
    }
}

impl Deadline {
    pub(crate) fn new(tuning: Tuning) -> Deadline {
        let (reads, writes) = (Direction::default(), Direction::default());
        Deadline { tuning, reads, writes, writing: false, left: 0, head: 0, starved: 0 }
    }

    fn way(&self) -> &Direction {
        if self.writing { &self.writes } else { &self.reads }
    }
}

impl Order for Deadline {
    fn is_empty(&self) -> bool {
        self.reads.sorted.is_empty() && self.writes.sorted.is_empty()
    }

    fn push(&mut self, pending: Pending, _rules: &Rules) {
        let way = if pending.request.buf.is_write() { &mut self.writes } else { &mut self.reads };
        way.by_age.insert(pending.order, pending.request.offset);
        way.sorted.insert((pending.request.offset, pending.order), pending);
    }

    fn choose(&mut self, now_ns: u64, _rules: &Rules) -> Choice {
        if self.left > 0 && self.way().ahead(self.head).is_some() {
            return Choice::Take; // the batch goes on
        }
        let tuning = &self.tuning;
        let (reads, writes) = (!self.reads.sorted.is_empty(), !self.writes.sorted.is_empty());
        self.writing = !reads || (writes && self.starved >= tuning.writes_starved);
        self.starved = match (self.writing, writes) {
            (false, true) => self.starved + 1,
            _ => 0,
        };
        let wait_ns = if self.writing { tuning.write_expire_ns } else { tuning.read_expire_ns };
        if let Some(oldest) = self.way().oldest() {
            let late = now_ns.saturating_sub(oldest.arrived_ns) >= wait_ns;
            let first = oldest.request.offset;
            if late || self.way().ahead(self.head).is_none() {
                self.head = first;
            }
        }
        self.left = self.tuning.batch.max(1);
        Choice::Take
    }

    fn peek(&self) -> Option<&Pending> {
        self.way().ahead(self.head)
    }

    fn pop(&mut self) -> Option<Pending> {
        let next = self.peek()?;
        let (offset, order) = (next.request.offset, next.order);
        let way = if self.writing { &mut self.writes } else { &mut self.reads };
        way.by_age.remove(&order);
        self.head = offset;
        way.sorted.remove(&(offset, order))
    }

    fn sent(&mut self, request: &DeviceRequest, _now_ns: u64, _rules: &Rules) {
        self.head = request.end();
        self.left = self.left.saturating_sub(1);
    }

    fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        let keys = (offsets.start, 0)..(offsets.end, 0);
        for (_, pending) in self.reads.sorted.extract_if(keys, |_, _| true) {
            self.reads.by_age.remove(&pending.order);
            into.push(pending);
        }
    }

    fn drain(&mut self) -> Vec<Pending> {
        self.reads.by_age.clear();
        self.writes.by_age.clear();
        let all = [&mut self.reads, &mut self.writes].map(|way| std::mem::take(&mut way.sorted));
        all.into_iter().flat_map(BTreeMap::into_values).collect()
    }
}
