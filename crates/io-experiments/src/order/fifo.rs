//! First come, first served. A request that lies directly behind the one before it is merged with
//! it all the same.

use std::collections::VecDeque;
use std::ops::Range;

use snowmelt_io::{Choice, DeviceRequest, Order, Pending, Rules};

#[derive(Default)]
pub(crate) struct Fifo {
    queue: VecDeque<Pending>,
}

impl Order for Fifo {
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn push(&mut self, pending: Pending, _rules: &Rules) {
        self.queue.push_back(pending);
    }

    fn choose(&mut self, _now_ns: u64, _rules: &Rules) -> Choice {
        Choice::Take
    }

    fn peek(&self) -> Option<&Pending> {
        self.queue.front()
    }

    fn pop(&mut self) -> Option<Pending> {
        self.queue.pop_front()
    }

    fn sent(&mut self, _request: &DeviceRequest, _now_ns: u64, _rules: &Rules) {}

    fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        self.queue.retain(|pending| {
            let is_wanted = !pending.request.buf.is_write() && offsets.contains(&pending.request.offset);
            into.extend(is_wanted.then_some(*pending));
            !is_wanted
        });
    }

    fn drain(&mut self) -> Vec<Pending> {
        self.queue.drain(..).collect()
    }
}
