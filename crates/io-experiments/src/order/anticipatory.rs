//! An elevator that waits a moment for the reader it has just served (deceptive idleness: Iyer
//! and Druschel, SOSP 2001).
//!
//! A reader that asks for one block at a time always has its next request ready just after the
//! arm has gone elsewhere. So after a read, when the best candidate is another client's and far
//! away, nothing goes out
//!
//! 1. until the reader's own request is over, and then
//! 2. for up to `anticipate_ns` more, unless something arrives that lies near.
//!
//! It does not wait for a client whose last two requests came too late or lay far away, after
//! writes, or when the client has had the device for `slice_ns` while others waited.

use std::collections::HashMap;
use std::ops::Range;

use snowmelt_io::{Choice, DeviceRequest, Elevator, Order, Pending, Rules};

use crate::tuning::Tuning;

pub(crate) struct Anticipatory {
    tuning: Tuning,
    elevator: Elevator,
    last: Option<Last>,
    readers: HashMap<u64, ReaderHistory>,
}

/// The client that was served last.
struct Last {
    client: u64,
    /// End of its last request: the place of the arm.
    end: u64,
    write: bool,
    /// Since when the client has had the device.
    since_ns: u64,
}

/// Facts about a client.
#[derive(Default)]
struct ReaderHistory {
    /// Device requests at the device.
    outstanding: usize,
    over_ns: u64,
    end: u64,
    /// Waits in a row in which the client's next request did not come.
    missed: u32,
    /// The wait for its next request, begun when the last one ended, still goes on.
    expected: bool,
}

/// Readers remembered before the idle ones are forgotten.
const MOST_READERS: usize = 1024;

/// True when the way from `end` to `offset` costs no more than one request.
fn is_near(end: u64, offset: u64, rules: &Rules) -> bool {
    offset.abs_diff(end) <= rules.cost.gap_bytes()
}

impl Anticipatory {
    pub(crate) fn new(tuning: Tuning) -> Anticipatory {
        Anticipatory { tuning, elevator: Elevator::default(), last: None, readers: HashMap::new() }
    }
}

impl Order for Anticipatory {
    fn is_empty(&self) -> bool {
        self.elevator.is_empty()
    }

    fn push(&mut self, pending: Pending, rules: &Rules) {
        if let Some(reader) = self.readers.get_mut(&pending.client)
            && reader.outstanding == 0
            && reader.expected
        {
            let thought_ns = pending.arrived_ns.saturating_sub(reader.over_ns);
            let in_time = thought_ns <= self.tuning.anticipate_ns;
            let came = in_time && is_near(reader.end, pending.request.offset, rules);
            reader.missed = if came { 0 } else { reader.missed + 1 };
            reader.expected = false;
        }
        self.elevator.push(pending, rules);
    }

    fn choose(&mut self, now_ns: u64, rules: &Rules) -> Choice {
        self.elevator.choose(now_ns, rules);
        let (Some(next), Some(last)) = (self.elevator.peek(), &self.last) else { return Choice::Take };
        let had_long = now_ns.saturating_sub(last.since_ns) >= self.tuning.slice_ns;
        let at_hand = next.client == last.client || is_near(last.end, next.request.offset, rules);
        let Some(reader) = self.readers.get_mut(&last.client) else { return Choice::Take };
        if at_hand || last.write || had_long || reader.missed >= 2 {
            return Choice::Take;
        }
        if reader.outstanding > 0 {
            return Choice::Hold;
        }
        let until = reader.over_ns + self.tuning.anticipate_ns;
        if reader.expected && now_ns < until {
            return Choice::HoldUntil(until);
        }
        if std::mem::take(&mut reader.expected) {
            reader.missed += 1;
        }
        Choice::Take
    }

    fn peek(&self) -> Option<&Pending> {
        self.elevator.peek()
    }

    fn pop(&mut self) -> Option<Pending> {
        self.elevator.pop()
    }

    fn sent(&mut self, request: &DeviceRequest, now_ns: u64, rules: &Rules) {
        self.elevator.sent(request, now_ns, rules);
        let client = request.client();
        let same = self.last.as_ref().filter(|last| last.client == client);
        let since_ns = same.map_or(now_ns, |last| last.since_ns);
        self.last = Some(Last { client, end: request.end(), write: request.is_write(), since_ns });
        if self.readers.len() >= MOST_READERS {
            self.readers.retain(|_, reader| reader.outstanding > 0);
        }
        let reader = self.readers.entry(client).or_default();
        reader.outstanding += 1;
        reader.end = request.end();
    }

    fn over(&mut self, request: &DeviceRequest, now_ns: &dyn Fn() -> u64) {
        if let Some(reader) = self.readers.get_mut(&request.client()) {
            reader.outstanding = reader.outstanding.saturating_sub(1);
            reader.over_ns = now_ns();
            reader.expected = reader.outstanding == 0;
        }
    }

    fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        self.elevator.take_reads(offsets, into);
    }

    fn drain(&mut self) -> Vec<Pending> {
        self.elevator.drain()
    }
}
