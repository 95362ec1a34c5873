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

use crate::queue::device_request::{DeviceRequest, Pending};
use crate::queue::order::elevator::Elevator;
use crate::queue::order::{Choice, Rules};

#[derive(Default)]
pub(crate) struct Anticipatory {
    pub(crate) elevator: Elevator,
    last: Option<Last>,
    readers: HashMap<u64, ReaderHistory>,
}

/// The client that was served last.
struct Last {
    client: u64,
    /// Where the arm is.
    end: u64,
    write: bool,
    /// The client has had the device since then.
    since_ns: u64,
}

/// Facts about a client.
#[derive(Default)]
struct ReaderHistory {
    /// Device requests at the device.
    outstanding: usize,
    over_ns: u64,
    end: u64,
    /// Expectations disappointed in a row.
    missed: u32,
    /// It was not waited out yet since its last request was over.
    expected: bool,
}

/// Readers remembered before the idle ones are forgotten.
const MOST_READERS: usize = 1024;

impl Rules {
    /// Getting from `end` to `offset` costs no more than one request does.
    fn near(&self, end: u64, offset: u64) -> bool {
        offset.abs_diff(end) <= self.cost.gap_bytes()
    }
}

impl Anticipatory {
    pub(crate) fn is_empty(&self) -> bool {
        self.elevator.is_empty()
    }

    pub(crate) fn push(&mut self, pending: Pending, rules: &Rules) {
        if let Some(reader) = self.readers.get_mut(&pending.client)
            && reader.outstanding == 0
            && reader.expected
        {
            let thought_ns = pending.arrived_ns.saturating_sub(reader.over_ns);
            let in_time = thought_ns <= rules.tuning.anticipate_ns;
            let came = in_time && rules.near(reader.end, pending.request.offset);
            reader.missed = if came { 0 } else { reader.missed + 1 };
            reader.expected = false;
        }
        self.elevator.push(pending, rules.fairness);
    }

    pub(crate) fn choose(&mut self, now_ns: u64, rules: &Rules) -> Choice {
        self.elevator.choose();
        let (Some(next), Some(last)) = (self.elevator.peek(), &self.last) else { return Choice::Take };
        let had_long = now_ns.saturating_sub(last.since_ns) >= rules.tuning.slice_ns;
        let at_hand = next.client == last.client || rules.near(last.end, next.request.offset);
        let Some(reader) = self.readers.get_mut(&last.client) else { return Choice::Take };
        if at_hand || last.write || had_long || reader.missed >= 2 {
            return Choice::Take;
        }
        if reader.outstanding > 0 {
            return Choice::Hold;
        }
        let until = reader.over_ns + rules.tuning.anticipate_ns;
        if reader.expected && now_ns < until {
            return Choice::HoldUntil(until);
        }
        if std::mem::take(&mut reader.expected) {
            reader.missed += 1;
        }
        Choice::Take
    }

    pub(crate) fn sent(&mut self, request: &DeviceRequest, now_ns: u64) {
        self.elevator.sent(request.end());
        let client = request.client;
        let same = self.last.as_ref().filter(|last| last.client == client);
        let since_ns = same.map_or(now_ns, |last| last.since_ns);
        self.last = Some(Last { client, end: request.end(), write: request.write, since_ns });
        if self.readers.len() >= MOST_READERS {
            self.readers.retain(|_, reader| reader.outstanding > 0);
        }
        let reader = self.readers.entry(client).or_default();
        reader.outstanding += 1;
        reader.end = request.end();
    }

    pub(crate) fn over(&mut self, request: &DeviceRequest, now_ns: u64) {
        if let Some(reader) = self.readers.get_mut(&request.client) {
            reader.outstanding = reader.outstanding.saturating_sub(1);
            reader.over_ns = now_ns;
            reader.expected = reader.outstanding == 0;
        }
    }
}
