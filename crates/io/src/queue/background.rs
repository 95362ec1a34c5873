//! When background requests (guesses and writes without a waiter) may go out.
//!
//! Where the bandwidth of a device is the limit, a demand read waits behind all bytes that are
//! outstanding. So:
//!
//! 1. A quarter of the depth is kept from the background. Where the device has caps, there is room
//!    for [`APART`] more requests, since its bytes can be free while its requests are not; but not
//!    while the depth is below that number, which is when lone reads are measured.
//! 2. Writes go out while less is outstanding than twice what the device moves during one wait, and
//!    one longest request; and no more of them than fill the device by its learned costs of writes,
//!    so that a commit beside them waits for one of them.
//! 3. Guesses on a device with an arm: the first bound, because an arm wants to know much at
//!    once. On other devices they go out while less is outstanding than fills the device (bandwidth
//!    times delay, as BBR bounds what it sends, and one request), in requests that are not longer
//!    than they must be. More would only make demand reads wait.
//! 4. On flash a page costs as much alone as among many, so guesses save only waiting. There they
//!    leave the device to more urgent requests once those are a quarter of what fills it.
//! 5. Demand reads may keep the device busy all the time. So a guess goes out past these bounds
//!    once [`SHARE`] times its device time has passed since the last one. So does a lone write:
//!    commits wait in the end for a checkpoint that gets no turn.

use crate::cost::{CostModel, GUESS_KNEES};
use crate::queue::costs::DeviceCosts;
use crate::queue::device_load::DeviceLoad;
use crate::queue::request::Class;
use crate::write_cost::WriteCost;

/// One part in this many of the device's time is for guesses, whatever else it has to do.
const SHARE: u64 = 16;

/// Length of a guess as a multiple of what the device moves in the fixed time of a request: that
/// time is then a tenth of the cost.
const GUESS_GAPS: u64 = 10;

/// Guesses are shorter than [`GUESS_KNEES`] where the price of requests is below this: a demand
/// read may wait for them.
const DEAR: f64 = 0.67;

/// Length of the blocks that are hurried whole on a device with caps, as a multiple of what it
/// transfers while it takes one more request.
const HURRIED_KNEES: u64 = 2;

/// Background requests that have room besides all others.
pub(crate) const APART: usize = 4;

/// Until the limit of the device was reached once, this many times as much may be outstanding as
/// fills it by its believed costs, as in the startup of BBR. The factor is lower than BBR's,
/// because demand reads wait behind it.
const STARTUP_GAIN: u64 = 2;

/// The shortest bound on guesses, in bytes.
const LEAST_GUESS: u64 = 64 << 10;

/// Factor over the time by the cost model from which the model counts as wrong.
const UNLIKE: u64 = 4;

/// The bounds of a queue.
#[derive(Clone, Copy)]
pub struct Background {
    cost: CostModel,
    writes: WriteCost,
    /// Device requests outstanding.
    pub requests: usize,
    /// Background requests that may be outstanding besides a full depth of others. Where the device
    /// has caps, its bytes can be free while its requests are not.
    pub(crate) apart: usize,
    /// Bytes outstanding for writes, and for guesses of an arm.
    pub bytes: u64,
    /// Longest merged device request, in bytes.
    max_bytes: u64,
    /// True until the limit of the device was reached once: guesses seek it.
    pub(crate) is_sought: bool,
}

impl Background {
    pub(crate) fn new(costs: &DeviceCosts, depth: usize, max_bytes: u64) -> Background {
        let DeviceCosts { reads: cost, writes } = *costs;
        Background {
            cost,
            writes,
            requests: (depth * 3 / 4).max(1),
            apart: if cost.has_caps() && depth >= APART { APART } else { 0 },
            bytes: cost.bytes_per_latency().saturating_mul(2).saturating_add(max_bytes.max(1)),
            max_bytes,
            is_sought: false,
        }
    }

    /// True for the classes that keep to these bounds.
    pub(crate) fn includes(class: usize) -> bool {
        class >= Class::Speculative as usize
    }

    /// Longest device request of a class, in bytes, when a read takes at least `least_ns`.
    pub(crate) fn max_bytes(&self, class: usize, least_ns: u64) -> u64 {
        match self.keeps_to_the_pipe(class) {
            true => self.guess_bytes(least_ns),
            false => self.max_bytes,
        }
    }

    /// Length of the blocks that are hurried whole, in bytes: on flash a read goes alone.
    pub(crate) fn hurried_bytes(&self) -> u64 {
        match self.cost.is_flash() {
            true => 1,
            false if self.cost.has_caps() => HURRIED_KNEES.saturating_mul(self.cost.bytes_per_request()),
            false => self.guess_bytes(0).max(1),
        }
    }

    /// True when a request of the class may go out. The last one, of `last_bytes`, did so
    /// `since_ns` ago.
    pub(crate) fn has_room(&self, class: usize, at: &DeviceLoad, since_ns: u64, last_bytes: u64) -> bool {
        let is_due = || since_ns >= SHARE.saturating_mul(self.cost.request_ns(last_bytes));
        let is_write = class > Class::Speculative as usize;
        if is_write && at.writes == 0 && is_due() {
            return true;
        }
        if at.requests >= self.requests && at.background >= self.apart {
            return false;
        }
        if is_write && at.writes >= self.writes.window(last_bytes) {
            return false;
        }
        if !self.keeps_to_the_pipe(class) {
            return at.bytes < self.bytes;
        }
        let fills = self.bytes_per_latency(at.least_ns);
        let is_busy = self.cost.is_flash() && at.urgent_bytes >= (fills / 4).max(1);
        let has_room = match self.cost.has_caps() {
            // All that is outstanding takes the longer of its requests and of its bytes.
            true => {
                let requests_ns = at.requests as u64 * self.cost.ns_per_request;
                let gain = if self.is_sought { STARTUP_GAIN } else { 1 };
                self.cost.transfer_ns(at.bytes) < requests_ns.max(gain * self.cost.latency_ns)
            }
            false => at.bytes < fills.saturating_add(self.guess_bytes(at.least_ns)),
        };
        (has_room && !is_busy) || is_due()
    }

    fn keeps_to_the_pipe(&self, class: usize) -> bool {
        class == Class::Speculative as usize && !self.cost.has_arm()
    }

    /// Longest request that guesses, in bytes.
    fn guess_bytes(&self, least_ns: u64) -> u64 {
        if self.cost.has_caps() {
            let knees = (GUESS_KNEES as f64 * self.cost.request_share() / DEAR).min(GUESS_KNEES as f64);
            let mut bytes = (knees * self.cost.bytes_per_request() as f64) as u64;
            if self.is_sought {
                // It is not known that requests are dear.
                bytes = bytes.min(self.cost.bytes_per_latency());
            }
            return bytes.clamp(LEAST_GUESS, self.max_bytes.max(LEAST_GUESS));
        }
        let long = GUESS_GAPS * self.cost.gap_bytes();
        long.max(self.bytes_per_latency(least_ns) / 2).min(self.max_bytes)
    }

    /// Bytes the device moves during one wait.
    fn bytes_per_latency(&self, least_ns: u64) -> u64 {
        let latency_ns = match least_ns >= UNLIKE.saturating_mul(self.cost.latency_ns) {
            true => least_ns,
            false => self.cost.latency_ns,
        };
        CostModel { latency_ns, ..self.cost }.bytes_per_latency().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Law;

    const GUESS: usize = Class::Speculative as usize;
    const PAGE: u64 = 8192;

    fn background(cost: CostModel) -> Background {
        Background::new(&DeviceCosts::from_reads(cost), 32, 2 << 20)
    }

    /// Whether a request may go out when so many pages are outstanding, so many of them urgent.
    fn room(cost: CostModel, class: Class, [pages, urgent]: [u64; 2], least_ns: u64) -> bool {
        let load = DeviceLoad {
            bytes: pages * PAGE,
            urgent_bytes: urgent * PAGE,
            least_ns,
            ..DeviceLoad::default()
        };
        background(cost).has_room(class as usize, &load, 0, PAGE)
    }

    #[test]
    fn guesses_fill_a_device_and_no_more() {
        let [ssd, network, hdd] = [CostModel::ssd(), CostModel::network(), CostModel::hdd()];
        assert!(room(ssd, Class::Speculative, [14, 0], 0));
        assert!(!room(ssd, Class::Speculative, [16, 0], 0));
        assert!(room(ssd, Class::WriteBack, [16, 16], 0), "a checkpoint goes on");
        assert!(room(network, Class::Speculative, [80, 16], 0), "a wide volume takes more");
        assert!(room(hdd, Class::Speculative, [500, 16], 0), "an arm wants to know much");
    }

    #[test]
    fn flash_is_left_to_those_who_wait() {
        assert!(room(CostModel::ssd(), Class::Speculative, [1, 1], 0), "one reader leaves most of it idle");
        assert!(!room(CostModel::ssd(), Class::Speculative, [2, 2], 0));
        assert!(!room(CostModel::nvme(), Class::Speculative, [8, 8], 0));
        let background = background(CostModel::ssd());
        let busy = DeviceLoad { requests: 3, bytes: 1 << 20, urgent_bytes: 1 << 20, ..DeviceLoad::default() };
        let turn_ns = 16 * CostModel::ssd().request_ns(PAGE);
        assert!(!background.has_room(GUESS, &busy, turn_ns - 1, PAGE));
        assert!(background.has_room(GUESS, &busy, turn_ns, PAGE), "but not all the time");
        let deep = DeviceLoad { requests: 24, ..busy };
        assert!(!background.has_room(GUESS, &deep, u64::MAX, PAGE), "a quarter of the depth is kept");
    }

    fn capped(request_share: f64) -> CostModel {
        CostModel { latency_ns: 500_000, law: Law::Caps { request_share }, ..CostModel::network() }
    }

    #[test]
    fn bytes_that_are_free_beside_scarce_requests_are_used() {
        let background = background(capped(0.6));
        let full =
            DeviceLoad { requests: 32, bytes: 32 * PAGE, urgent_bytes: 32 * PAGE, ..DeviceLoad::default() };
        assert!(background.has_room(GUESS, &full, 0, PAGE), "its bytes wait for the requests");
        let enough = DeviceLoad { requests: 33, background: 1, bytes: 2 << 20, ..full };
        assert!(!background.has_room(GUESS, &enough, 0, PAGE));
        let crowded = DeviceLoad { requests: 36, background: APART, ..full };
        assert!(!background.has_room(GUESS, &crowded, u64::MAX, PAGE), "no more than have room apart");
        let written = Class::WriteBack as usize;
        assert!(background.has_room(written, &full, 0, PAGE), "a checkpoint goes on beside readers");
    }

    #[test]
    fn guesses_look_for_the_limit_of_a_device_at_first() {
        let pipe = CostModel { latency_ns: 3_000_000, ..capped(0.5) };
        let quick = CostModel { latency_ns: 300_000, ..capped(0.5) };
        let sought = Background { is_sought: true, ..background(pipe) };
        let outstanding =
            |pages: u64| DeviceLoad { requests: 4, bytes: pages * PAGE, ..DeviceLoad::default() };
        let room = |of: &Background, pages| of.has_room(GUESS, &outstanding(pages), 0, PAGE);
        assert_eq!([40, 60].map(|pages| room(&background(pipe), pages)), [true, false]);
        assert_eq!([60, 90, 110].map(|pages| room(&sought, pages)), [true, true, false]);
        assert_eq!(
            [background(quick), Background { is_sought: true, ..background(quick) }]
                .map(|of| of.max_bytes(GUESS, 0)),
            [260_835, 65_536]
        );
    }

    #[test]
    fn guesses_are_long_where_requests_are_dear() {
        let longest = |share| background(capped(share)).max_bytes(GUESS, 0);
        assert_eq!([0.0, 0.3, 0.67, 1.0].map(longest), [64 << 10, 156_501, 349_520, 349_520]);
    }

    #[test]
    fn a_device_of_which_nothing_is_known_is_measured() {
        assert!(room(CostModel::ssd(), Class::Speculative, [100, 1], 3_000_000), "reads take 3 ms");
        assert!(!room(CostModel::ssd(), Class::Speculative, [100, 1], 300_000), "that is a busy SSD");
        let of = |cost, least_ns| background(cost).max_bytes(GUESS, least_ns);
        assert_eq!(of(CostModel::ssd(), 0), 63_600);
        assert_eq!(of(CostModel::ssd(), 3_000_000), 795_000);
        assert_eq!(of(CostModel::network(), 0), 436_900);
        assert_eq!(of(CostModel::hdd(), 0), 2 << 20);
    }

    /// Costs as they may be read from a file, or be learned.
    fn any_costs() -> impl Iterator<Item = CostModel> {
        let mut random = snowmelt_base::random::Random(9);
        (0..20_000).map(move |_| {
            let mut figure = |most: u64| match random.below(8) {
                0 => most,
                1 => 1 + random.below(4),
                _ => 10f64.powf(random.below(20_000) as f64 / 1e3) as u64 % most + 1,
            };
            let share = figure(1001) as f64 / 1001.0;
            CostModel {
                latency_ns: figure(1_000_000_000_000),
                ns_per_request: figure(1_000_000_000_000),
                bytes_per_s: figure(u64::MAX - 1),
                depth: figure(1024) as u32,
                law: if share < 0.5 { Law::Sum } else { Law::Caps { request_share: share } },
            }
        })
    }

    #[test]
    fn an_idle_device_has_room_for_everything() {
        let mut possible = 0;
        for cost in any_costs().filter(CostModel::is_possible) {
            possible += 1;
            for depth in [1, 2, 3, 4, cost.depth as usize] {
                let background = Background::new(&DeviceCosts::from_reads(cost), depth, 2 << 20);
                let background = Background { is_sought: depth == 2, ..background };
                for class in GUESS..Class::COUNT {
                    for least_ns in [0, 1, u64::MAX] {
                        let idle = DeviceLoad { least_ns, ..DeviceLoad::default() };
                        assert!(background.has_room(class, &idle, 0, 2 << 20), "{class} {depth} {cost:?}");
                        background.max_bytes(class, least_ns);
                    }
                }
                assert!(background.hurried_bytes() > 0 && background.bytes > 0, "{cost:?}");
                let full = DeviceLoad {
                    requests: 1024,
                    bytes: 1 << 40,
                    urgent_bytes: 1 << 40,
                    ..DeviceLoad::default()
                };
                (GUESS..Class::COUNT).for_each(|class| {
                    background.has_room(class, &full, u64::MAX, 1 << 30);
                });
            }
            let bytes = [0, 1, PAGE, 2 << 20, 1 << 40];
            for bytes in bytes {
                let ns = [cost.request_ns(bytes), cost.alone_ns(bytes), cost.transfer_ns(bytes)];
                assert!(ns[..2].iter().all(|ns| *ns > 0) && cost.price_ns(bytes) >= 0.0, "{cost:?}");
            }
            assert!(cost.read_ahead_bytes() > 0 && cost.gap_bytes() <= 2 << 20, "{cost:?}");
            assert!(cost.extent_break_even(PAGE, 2 << 20) > 0.0, "{cost:?}");
        }
        assert!(possible > 10_000, "{possible} of them are");
    }

    #[test]
    fn no_lone_write_waits_for_ever() {
        let full =
            DeviceLoad { requests: 1024, bytes: 1 << 40, urgent_bytes: 1 << 40, ..DeviceLoad::default() };
        for cost in any_costs().filter(CostModel::is_possible) {
            let background = Background::new(&DeviceCosts::from_reads(cost), 1, 2 << 20);
            for class in GUESS + 1..Class::COUNT {
                assert!(background.has_room(class, &full, u64::MAX, PAGE), "{class} {cost:?}");
                assert!(!background.has_room(class, &DeviceLoad { writes: 1024, ..full }, u64::MAX, PAGE));
            }
        }
    }
}
