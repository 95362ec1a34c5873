//! Which request next, and which go along with it.
//!
//! Requests wait in one lane per class. The first non-empty lane in order of priority is served, unless a lower one has been
//! passed over `patience` times. Inside a lane:
//!
//! * fifo: in order of arrival;
//! * elevator (C-SCAN): sweeps from low to high offsets. A newcomer ahead of the sweep joins it, as long as the sweep
//!   has not taken `fairness` newcomers; all others wait for the next sweep. So a request waits for at most what was
//!   there before it plus `fairness` requests per sweep, however many keep arriving.
//!
//! The requests that follow the chosen one go along while they are of the same direction, at most a gap away (reads), and the
//! whole stays within `max_bytes`. Requests that overlap are never merged, and never ordered against each other.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use crate::operation::{DeviceRequest, IOV_MAX, Pending, SCRATCH_BYTES};
use crate::queue::{Class, Policy};

/// The numbers a schedule obeys.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) policy: Policy,
    /// Longest gap read through, in bytes.
    pub(crate) gap_bytes: u64,
    /// Longest merged device request, in bytes.
    pub(crate) max_bytes: u64,
    /// Offsets and lengths must be multiples of this for a gap to be read.
    pub(crate) unit: u64,
    pub(crate) fairness: usize,
    pub(crate) patience: u32,
    /// Device requests outstanding, all classes.
    pub(crate) depth: usize,
    /// Speculative and write-back requests are started only while less than this is outstanding: on a device of which the
    /// bandwidth is the limit, what is outstanding is what a demand read waits behind.
    pub(crate) background: Load,
}

/// What is outstanding.
#[derive(Clone, Copy, Default)]
pub(crate) struct Load {
    pub(crate) requests: usize,
    pub(crate) bytes: u64,
}

pub(crate) struct Schedule {
    limits: Limits,
    lanes: [Lane; Class::COUNT],
    waiting: usize,
    arrivals: u64,
}

#[derive(Default)]
struct Lane {
    /// To be tried again alone: first of all.
    alone: VecDeque<Pending>,
    fifo: VecDeque<Pending>,
    sweep: BinaryHeap<Reverse<ByOffset>>,
    next_sweep: BinaryHeap<Reverse<ByOffset>>,
    /// End of the last request of this sweep.
    head: u64,
    /// Newcomers this sweep has taken.
    joined: usize,
    passed_over: u32,
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

impl Schedule {
    pub(crate) fn new(limits: Limits) -> Schedule {
        assert!(
            limits.depth > 0 && limits.background.requests > 0 && limits.background.bytes > 0,
            "a queue without depth moves nothing"
        );
        Schedule { limits, lanes: Default::default(), waiting: 0, arrivals: 0 }
    }

    /// Requests that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub(crate) fn push(&mut self, mut pending: Pending) {
        pending.order = self.arrivals;
        self.arrivals += 1;
        self.waiting += 1;
        let lane = &mut self.lanes[pending.request.class as usize];
        if pending.alone {
            lane.alone.push_back(pending);
        } else if self.limits.policy == Policy::Fifo {
            lane.fifo.push_back(pending);
        } else if !lane.sweep.is_empty()
            && pending.request.offset >= lane.head
            && lane.joined < self.limits.fairness
        {
            lane.joined += 1;
            lane.sweep.push(Reverse(ByOffset(pending)));
        } else {
            lane.next_sweep.push(Reverse(ByOffset(pending)));
        }
    }

    /// Fills `request` with what should go out next, given how many are outstanding; false when nothing should.
    pub(crate) fn next(&mut self, request: &mut DeviceRequest, outstanding: Load) -> bool {
        if outstanding.requests >= self.limits.depth {
            return false;
        }
        let Some(chosen) = self.choose_lane(outstanding) else { return false };
        let limits = self.limits;
        let lane = &mut self.lanes[chosen];
        if let Some(alone) = lane.alone.pop_front() {
            request.begin(alone);
        } else {
            if lane.sweep.is_empty() {
                std::mem::swap(&mut lane.sweep, &mut lane.next_sweep);
                lane.joined = 0;
            }
            request.begin(lane.pop().expect("a chosen lane is not empty"));
            let mut buffers = 1;
            while let Some(buffers_then) = lane.peek().and_then(|next| limits.fits(request, next, buffers)) {
                request.append(lane.pop().expect("just looked at"));
                buffers = buffers_then;
            }
            lane.head = request.end();
        }
        self.waiting -= request.pieces.len();
        true
    }

    fn choose_lane(&mut self, outstanding: Load) -> Option<usize> {
        let background = self.limits.background;
        let room = outstanding.requests < background.requests && outstanding.bytes < background.bytes;
        let startable = |class: usize| class < Class::Speculative as usize || room;
        let ready = |&class: &usize| !self.lanes[class].is_empty() && startable(class);
        let first = (0..Class::COUNT).find(ready)?;
        let impatient = (first + 1..Class::COUNT)
            .filter(ready)
            .find(|&class| self.lanes[class].passed_over >= self.limits.patience);
        let chosen = impatient.unwrap_or(first);
        for (class, lane) in self.lanes.iter_mut().enumerate() {
            if class == chosen {
                lane.passed_over = 0;
            } else if class > first && !lane.is_empty() {
                lane.passed_over += 1;
            }
        }
        Some(chosen)
    }

    /// Takes out every read that waits (at shutdown; writes are still carried out).
    pub(crate) fn take_reads(&mut self) -> Vec<Pending> {
        let mut reads = Vec::new();
        for lane in &mut self.lanes {
            let all = lane.alone.drain(..).chain(lane.fifo.drain(..));
            let all = all.chain(lane.sweep.drain().chain(lane.next_sweep.drain()).map(|Reverse(p)| p.0));
            let (writes, mut gone): (Vec<_>, Vec<_>) = all.partition(|p| p.request.buf.is_write());
            reads.append(&mut gone);
            lane.alone.extend(writes);
        }
        self.waiting -= reads.len();
        reads
    }
}

impl Limits {
    /// When `next` may go along with `request`: how many buffers they have together.
    fn fits(&self, request: &DeviceRequest, next: &Pending, buffers: usize) -> Option<usize> {
        let gap = next.request.offset.checked_sub(request.end())?;
        let same_way = next.request.buf.is_write() == request.write;
        let bridgeable =
            gap == 0 || (!request.write && gap <= self.gap_bytes && gap.is_multiple_of(self.unit));
        let buffers = buffers + 1 + (gap as usize).div_ceil(SCRATCH_BYTES);
        let small = next.end() - request.offset <= self.max_bytes && buffers <= IOV_MAX;
        (same_way && bridgeable && small).then_some(buffers)
    }
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.fifo.is_empty() && self.sweep.is_empty() && self.next_sweep.is_empty()
    }

    /// The front of the queue or of the sweep.
    fn peek(&self) -> Option<&Pending> {
        self.fifo.front().or_else(|| self.sweep.peek().map(|Reverse(p)| &p.0))
    }

    fn pop(&mut self) -> Option<Pending> {
        self.fifo.pop_front().or_else(|| self.sweep.pop().map(|Reverse(p)| p.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::RawBuf;
    use crate::queue::Request;
    use proptest::prelude::*;

    const PAGE: u64 = 8192;

    fn limits(policy: Policy) -> Limits {
        Limits {
            policy,
            gap_bytes: 3 * PAGE,
            max_bytes: 16 * PAGE,
            unit: 512,
            fairness: 8,
            patience: 5,
            depth: 4,
            background: Load { requests: 3, bytes: 1 << 20 },
        }
    }

    #[allow(unsafe_code)]
    fn pending(page: u64, pages: u64, class: Class, write: bool, tag: u64) -> Pending {
        let (start, len) = (std::ptr::without_provenance_mut(4096), (pages * PAGE) as usize);
        // SAFETY: the schedule never touches the memory, and nothing is carried out.
        let buf = unsafe {
            match write {
                true => RawBuf::write_from(start, len),
                false => RawBuf::read_into(start, len),
            }
        };
        Pending {
            request: Request { offset: page * PAGE, buf, class, tag },
            arrived_ns: 0,
            order: 0,
            alone: false,
        }
    }

    fn tags(request: &DeviceRequest) -> Vec<u64> {
        request.pieces.iter().map(|p| p.request.tag).collect()
    }

    /// What a device request must be like, whatever was chosen.
    fn check(request: &DeviceRequest, limits: &Limits) {
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

    #[derive(Debug, Clone)]
    enum Step {
        Push { page: u64, pages: u64, class: usize, write: bool },
        Take { outstanding: usize },
    }

    fn step() -> impl Strategy<Value = Step> {
        let push = (0..60u64, 1..4u64, 0..Class::COUNT, prop::bool::weighted(0.2));
        let push = push.prop_map(|(page, pages, class, write)| Step::Push { page, pages, class, write });
        prop_oneof![3 => push, 2 => (0..5usize).prop_map(|outstanding| Step::Take { outstanding })]
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice_and_merges_are_right(steps in prop::collection::vec(step(), 1..200), fifo: bool) {
            let limits = limits(if fifo { Policy::Fifo } else { Policy::Elevator });
            let mut schedule = Schedule::new(limits);
            let mut request = DeviceRequest::new();
            let mut waiting = std::collections::BTreeSet::new();
            let mut pushed = 0;
            for step in steps {
                match step {
                    Step::Push { page, pages, class, write } => {
                        schedule.push(pending(page, pages, Class::ALL[class], write, pushed));
                        waiting.insert(pushed);
                        pushed += 1;
                    }
                    Step::Take { outstanding } => {
                        let load = Load { requests: outstanding, bytes: 0 };
                        if schedule.next(&mut request, load) {
                            prop_assert!(outstanding < limits.depth);
                            let background = request.class as usize >= Class::Speculative as usize;
                            prop_assert!(!background || outstanding < limits.background.requests);
                            check(&request, &limits);
                            tags(&request).iter().for_each(|tag| assert!(waiting.remove(tag), "{tag} twice"));
                        }
                    }
                }
                prop_assert_eq!(schedule.len(), waiting.len());
            }
            while schedule.next(&mut request, Load::default()) {
                check(&request, &limits);
                tags(&request).iter().for_each(|tag| assert!(waiting.remove(tag), "{tag} twice"));
            }
            prop_assert!(waiting.is_empty() && schedule.is_empty());
        }
    }

    #[test]
    fn a_sweep_goes_up_and_takes_newcomers_ahead_of_it() {
        let mut schedule = Schedule::new(Limits { gap_bytes: 0, ..limits(Policy::Elevator) });
        let mut request = DeviceRequest::new();
        let mut take = |schedule: &mut Schedule| {
            assert!(schedule.next(&mut request, Load::default()));
            tags(&request)
        };
        for page in [50, 10, 30, 11] {
            schedule.push(pending(page, 1, Class::Planned, false, page));
        }
        assert_eq!(take(&mut schedule), [10, 11]);
        schedule.push(pending(5, 1, Class::Planned, false, 5)); // behind: next sweep
        schedule.push(pending(31, 1, Class::Planned, false, 31)); // ahead: this one
        assert_eq!(take(&mut schedule), [30, 31]);
        assert_eq!(take(&mut schedule), [50]);
        assert_eq!(take(&mut schedule), [5]);
    }

    #[test]
    fn nobody_starves_behind_newcomers_or_classes() {
        let limits = Limits { gap_bytes: 0, max_bytes: PAGE, ..limits(Policy::Elevator) };
        let victims = [Class::Demand, Class::Speculative, Class::WriteBack];
        for (victim, rival) in victims.iter().flat_map(|&v| [(v, v), (v, Class::Journal)]) {
            let mut schedule = Schedule::new(limits);
            let mut request = DeviceRequest::new();
            schedule.push(pending(1000, 1, victim, false, u64::MAX));
            // Two newcomers for each request served, always just ahead of the sweep.
            let mut served = 0;
            loop {
                for i in 0..2 {
                    schedule.push(pending(10 + served % 900 + i, 1, rival, false, served * 2 + i));
                }
                assert!(schedule.next(&mut request, Load::default()));
                if tags(&request) == [u64::MAX] {
                    break;
                }
                served += 1;
                assert!(served < 200, "{victim:?} starves behind {rival:?}");
            }
        }
    }

    #[test]
    fn classes_go_by_priority_and_background_leaves_room() {
        let limits = limits(Policy::Elevator);
        let mut schedule = Schedule::new(limits);
        let mut request = DeviceRequest::new();
        for (i, class) in Class::ALL.into_iter().rev().enumerate() {
            schedule.push(pending(i as u64 * 100, 1, class, false, class as u64));
        }
        for want in 0..3 {
            assert!(schedule.next(&mut request, Load::default()));
            assert_eq!(tags(&request), [want]);
        }
        assert!(!schedule.next(&mut request, Load { requests: 3, bytes: 0 }));
        assert!(!schedule.next(&mut request, Load { requests: 1, bytes: 1 << 20 }));
        assert!(schedule.next(&mut request, Load { requests: 2, bytes: 0 }));
    }
}
