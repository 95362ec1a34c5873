//! A schedule with its clock and what is at the device, for tests of policies, here and in other
//! crates. It checks the rules of every device request.

use std::collections::VecDeque;

use super::{Next, Schedule, ScheduleLimits};
use crate::cost::CostModel;
use crate::memory::buffer::RawBuf;
use crate::queue::background::Background;
use crate::queue::costs::DeviceCosts;
use crate::queue::device_load::DeviceLoad;
use crate::queue::device_request::{DeviceRequest, Pending};
use crate::queue::order::{Policy, Rules};
use crate::queue::request::{Class, Request};

const PAGE: u64 = 8192;
const MS: u64 = 1_000_000;

/// A schedule under test. Pages have 8 KiB.
pub struct ScheduleBench {
    pub(crate) schedule: Schedule,
    /// Its limits.
    pub limits: ScheduleLimits,
    /// The time, in nanoseconds.
    pub now: u64,
    at_device: VecDeque<DeviceRequest>,
}

/// A request for `pages` from `page` on.
#[allow(unsafe_code)]
pub fn pending(page: u64, pages: u64, class: Class, write: bool, tag: u64) -> Pending {
    let (start, len) = (std::ptr::without_provenance_mut(4096), (pages * PAGE) as usize);
    // SAFETY: the schedule never touches the memory, and nothing is carried out.
    let buf = unsafe {
        match write {
            true => RawBuf::write_from(start, len),
            false => RawBuf::read_into(start, len),
        }
    };
    let request = Request { offset: page * PAGE, buf, class, tag };
    Pending { request, arrived_ns: 0, order: 0, alone: false, again: false, client: 0 }
}

/// A planned read of a page.
pub fn read(page: u64, tag: u64) -> Pending {
    pending(page, 1, Class::Planned, false, tag)
}

fn tags(request: &DeviceRequest) -> Vec<u64> {
    request.pieces.iter().map(|p| p.request.tag).collect()
}

impl ScheduleBench {
    /// Limits as of a slow disk: depth 4, gaps of 3 pages, requests of 16.
    pub fn limits() -> ScheduleLimits {
        let costs = DeviceCosts::from_reads(CostModel::hdd());
        ScheduleLimits {
            rules: Rules { fairness: 8, cost: CostModel::hdd(), max_request_bytes: 16 * PAGE },
            gap_bytes: 3 * PAGE,
            max_bytes: 16 * PAGE,
            unit: 512,
            patience: 5,
            depth: 4,
            is_few: false,
            background: Background::new(&costs, 4, 16 * PAGE),
        }
    }

    /// A schedule of this policy.
    pub fn new(policy: &Policy, limits: ScheduleLimits) -> ScheduleBench {
        ScheduleBench { schedule: Schedule::new(policy, limits), limits, now: 0, at_device: VecDeque::new() }
    }

    /// One page per device request, no gaps.
    pub fn single(policy: &Policy) -> ScheduleBench {
        let limits = ScheduleLimits { gap_bytes: 0, max_bytes: PAGE, ..ScheduleBench::limits() };
        ScheduleBench::new(policy, limits)
    }

    /// Background requests go out as they do on a device of this cost.
    pub fn set_background(&mut self, cost: CostModel, max_bytes: u64) {
        let limits = ScheduleLimits {
            background: Background::new(&DeviceCosts::from_reads(cost), 4, max_bytes),
            ..self.limits
        };
        self.schedule.set_limits(limits);
    }

    /// Takes a request of a client in.
    pub fn push(&mut self, client: u64, one: Pending) {
        self.schedule.push(Pending { client, arrived_ns: self.now, ..one });
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.schedule.len()
    }

    /// A reader waits for the reads at these offsets: how many are of `class` from here on.
    pub fn hurry(&mut self, offsets: &[u64], class: Class) -> usize {
        self.schedule.hurry(offsets, class)
    }

    /// Takes out every read that waits.
    pub fn take_reads(&mut self) -> Vec<Pending> {
        self.schedule.take_reads()
    }

    pub(crate) fn next(&mut self, outstanding: DeviceLoad) -> Next {
        let mut request = DeviceRequest::new();
        let next = self.schedule.next(&mut request, outstanding, self.now);
        if next == Next::Begun {
            check(&request, &self.limits);
            self.at_device.push_back(request);
        }
        next
    }

    /// The next move with this much outstanding.
    pub fn next_beside(&mut self, requests: usize, bytes: u64) -> Next {
        self.next(DeviceLoad { requests, bytes, ..DeviceLoad::default() })
    }

    /// Class and tags of the device request that went out last.
    pub fn last(&self) -> Option<(Class, Vec<u64>)> {
        self.at_device.back().map(|request| (request.class, tags(request)))
    }

    /// Device requests that are not over.
    pub fn at_device(&self) -> usize {
        self.at_device.len()
    }

    /// The device's oldest request takes `ms`.
    pub fn finish(&mut self, ms: u64) {
        self.now += ms * MS;
        if let Some(request) = self.at_device.pop_front() {
            let now = self.now;
            self.schedule.over(&request, &|| now);
        }
    }

    /// Serves one request, waiting as long as the policy likes: its tags.
    pub fn serve(&mut self) -> Vec<u64> {
        while let Next::NotBefore(at) = self.next(DeviceLoad::default()) {
            assert!(at > self.now, "held for no time");
            self.now = at;
        }
        let (_, served) = self.last().expect("nothing goes out and nothing is at the device");
        self.finish(5);
        served
    }
}

/// Rules of every device request.
fn check(request: &DeviceRequest, limits: &ScheduleLimits) {
    assert!(request.pieces.len() == 1 || request.len <= limits.max_bytes);
    let mut gaps = 0;
    for pair in request.pieces.windows(2) {
        let gap = pair[1].request.offset.checked_sub(pair[0].end()).expect("in order, without overlap");
        assert!(gap <= if request.write { 0 } else { limits.gap_bytes });
        gaps += gap;
    }
    assert_eq!(gaps, request.gap_bytes);
    assert_eq!(request.offset, request.pieces[0].request.offset);
    assert_eq!(request.end(), request.pieces.last().expect("not empty").end());
    assert!(request.pieces.iter().all(|p| p.request.buf.is_write() == request.write));
    assert!(request.pieces.iter().all(|p| p.request.class == request.class));
}
