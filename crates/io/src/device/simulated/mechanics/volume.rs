//! A device without an arm: every request takes its latency, many at once, under caps on
//! requests and bytes.
//!
//! 1. A request gets one of `width` places in order of arrival.
//! 2. It starts when the caps allow (see `caps.rs`).
//! 3. It is over after the latency and its bytes at the line's rate. The latency of a share of
//!    the requests is longer: the tail.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use snowmelt_base::random::Random;

use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::mechanics::caps::Caps;
use crate::device::simulated::model::bounds::{self, ModelError};
use crate::device::simulated::model::parameters::VolumeModel;
use crate::device::timed::{Transfer, TransferKind};

pub(crate) struct Volume {
    latency_ns: f64,
    write_latency_ns: f64,
    jitter: f64,
    tail_share: f64,
    tail_ns: f64,
    tail_jitter: f64,
    random: Random,
    width: usize,
    line_ns_per_byte: f64,
    caps: Caps,
    /// (over, id) of what has a place.
    placed: BinaryHeap<Reverse<(u64, usize)>>,
    waiting: VecDeque<(usize, Transfer)>,
    /// (over, id) of flushes, which need no place.
    flushing: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Volume {
    pub(crate) fn new(v: &VolumeModel) -> Result<Volume, ModelError> {
        bounds::check_volume(v)?;
        Ok(Volume {
            latency_ns: v.latency_us * 1e3,
            write_latency_ns: v.write_latency_us.unwrap_or(v.latency_us) * 1e3,
            jitter: v.jitter,
            tail_share: v.tail_share,
            tail_ns: v.tail_us * 1e3,
            tail_jitter: v.tail_jitter,
            random: Random(v.seed),
            width: v.width,
            line_ns_per_byte: 1e9 / v.line_bytes_per_s,
            caps: Caps::new(v),
            placed: BinaryHeap::new(),
            waiting: VecDeque::new(),
            flushing: BinaryHeap::new(),
        })
    }

    fn place(&mut self, id: usize, transfer: Transfer, at: u64) {
        let start = self.caps.start(&transfer, at);
        let over = start + self.latency(transfer.kind) + transfer.len as f64 * self.line_ns_per_byte;
        self.placed.push(Reverse((over.round() as u64, id)));
    }

    fn latency(&mut self, kind: TransferKind) -> f64 {
        let mean_ns = if kind == TransferKind::Write { self.write_latency_ns } else { self.latency_ns };
        let usual_ns = self.chance(mean_ns, self.jitter);
        if self.tail_share == 0.0 || self.random.unit() >= self.tail_share {
            return usual_ns;
        }
        usual_ns + self.chance(self.tail_ns, self.tail_jitter)
    }

    /// A log-normal time with the given mean.
    fn chance(&mut self, mean_ns: f64, jitter: f64) -> f64 {
        if jitter == 0.0 {
            return mean_ns;
        }
        // A sum of twelve uniform numbers is normal enough.
        let normal = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
        mean_ns * (jitter * normal - jitter * jitter / 2.0).exp()
    }
}

impl Mechanics for Volume {
    fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64) {
        if transfer.kind == TransferKind::Flush {
            // Everything answered is durable: only the way there and back.
            let over = now_ns as f64 + self.latency(transfer.kind);
            self.flushing.push(Reverse((over.round() as u64, id)));
        } else if self.placed.len() < self.width {
            self.place(id, transfer, now_ns);
        } else {
            self.waiting.push_back((id, transfer));
        }
    }

    fn next_due(&self) -> Option<u64> {
        let first = |heap: &BinaryHeap<Reverse<(u64, usize)>>| heap.peek().map(|Reverse((over, _))| *over);
        first(&self.placed).into_iter().chain(first(&self.flushing)).min()
    }

    fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        let due = self.next_due().filter(|due| *due <= now_ns)?;
        if self.flushing.peek().is_some_and(|Reverse((over, _))| *over == due) {
            return self.flushing.pop().map(|Reverse((over, id))| (id, over));
        }
        let Reverse((over, id)) = self.placed.pop().expect("it is due");
        if let Some((next, transfer)) = self.waiting.pop_front() {
            self.place(next, transfer, over);
        }
        Some((id, over))
    }

    fn rest(&mut self) {
        self.caps.fill();
    }

    fn spend_credits(&mut self, now_ns: u64) {
        self.caps.spend_credits(now_ns);
    }

    fn credits(&self, now_ns: u64) -> Option<f64> {
        self.caps.credits(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::simulated::model::DeviceModel;

    /// Keeps `depth` requests of `len` outstanding until `n` are over; nanoseconds from first
    /// arrival to last completion.
    fn run(model: &DeviceModel, depth: usize, n: usize, len: u64) -> f64 {
        let mut device = model.build().expect("in bounds");
        let read = |i: usize| Transfer { offset: i as u64 * len * 7, len, kind: TransferKind::Read };
        (0..depth.min(n)).for_each(|i| device.arrive(i, read(i), 0));
        let mut sent = depth.min(n);
        let mut last = 0;
        for _ in 0..n {
            let due = device.next_due().expect("requests are outstanding");
            let (_, over) = device.pop_due(due).expect("it is due");
            assert!(over >= last, "completions come in order of time");
            last = over;
            if sent < n {
                device.arrive(sent, read(sent), over);
                sent += 1;
            }
        }
        assert!(device.next_due().is_none());
        last as f64
    }

    fn close(is: f64, should: f64) {
        assert!((is / should - 1.0).abs() < 0.01, "{is} is not within 1 % of {should}");
    }

    #[test]
    fn a_wide_volume_keeps_to_latency_caps_and_width() {
        let model = DeviceModel::wide_slow();
        let page = 8192;
        close(run(&model, 1, 1000, page), 1000.0 * (3e6 + 8192.0)); // one at a time: the latency
        close(run(&model, 32, 30_000, page), 10e9); // many: 3000 per second
        close(run(&model, 4, 10_000, page), 10_000.0 / 4.0 * (3e6 + 8192.0)); // Little's law
        close(run(&model, 4, 1000, 2 << 20), 1000.0 * 2.0 / 125.0 * 1e9); // extents: 125 MiB/s
        let narrow = DeviceModel::Volume(VolumeModel { width: 2, ..VolumeModel::default() });
        close(run(&narrow, 32, 10_000, page), 10_000.0 / 2.0 * (3e6 + 8192.0));
        close(run(&DeviceModel::nvme(), 1, 10_000, page), 10_000.0 * (80e3 + 8192.0 / 3.0));
    }

    #[test]
    fn a_burst_goes_at_once_and_only_after_a_pause() {
        let model = DeviceModel::wide_slow_burst();
        let page = 8192;
        close(run(&model, 32, 32, page), run(&model, 1, 1, page)); // 32 take as long as one
        close(run(&model, 32, 30_032, page), 10e9 + 3e6); // but the cap stays
        let mut device = model.build().expect("in bounds");
        let read = |i: usize| Transfer { offset: i as u64 * page, len: page, kind: TransferKind::Read };
        (0..64).for_each(|i| device.arrive(i, read(i), 0));
        (0..64).for_each(|_| assert!(device.pop_due(u64::MAX).is_some()));
        device.arrive(64, read(64), 6_000_000);
        let spent = device.next_due().expect("on its way") - 6_000_000;
        assert!(spent > 6_000_000, "{spent} ns: the budget is used up");
        device.arrive(65, Transfer { offset: 0, len: 0, kind: TransferKind::Flush }, 6_000_000);
        assert_eq!(device.pop_due(u64::MAX), Some((65, 9_000_000)), "a flush needs none");
        device.rest();
        device.arrive(66, read(66), 7_000_000);
        assert!(device.pop_due(u64::MAX).is_some());
    }

    #[test]
    fn jitter_keeps_the_mean_and_follows_the_seed() {
        let with = |seed| DeviceModel::Volume(VolumeModel { jitter: 0.5, seed, ..VolumeModel::default() });
        let mean = run(&with(1), 1, 20_000, 8192) / 20_000.0;
        assert!((mean / 3e6 - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(run(&with(2), 8, 1000, 8192), run(&with(2), 8, 1000, 8192));
        assert_ne!(run(&with(2), 8, 1000, 8192), run(&with(3), 8, 1000, 8192));
    }
}
