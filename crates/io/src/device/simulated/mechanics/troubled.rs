//! A device with [`Troubles`].
//!
//! 1. A read whose place is bad, unwritten or in the cache in front is answered without the
//!    device.
//! 2. All others go to the device of the moment, and stay with it when it becomes another.
//! 3. Their answers are told later: by chance, and not before a stall is over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use snowmelt_base::random::Random;

use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::bounds::ModelError;
use crate::device::simulated::troubles::{Stalls, TroubledShare, Troubles};
use crate::device::timed::{Transfer, TransferKind};

/// A tail's times fall off with this power: the mean is finite, the variance is not.
const TAIL_POWER: f64 = 1.5;
/// The longest delay of a tail, in nanoseconds.
const MOST_TAIL_NS: f64 = 2e9;

pub(crate) struct Troubled {
    troubles: Troubles,
    /// Devices with the moments from which requests go to them.
    devices: Vec<(u64, Box<dyn Mechanics>)>,
    random: Random,
    /// (told, id) of what the devices have done.
    done: BinaryHeap<Reverse<(u64, usize)>>,
    /// The last stall that was drawn, from when until when.
    stall: (u64, u64),
    stalls: Random,
}

impl Troubled {
    pub(crate) fn new(model: &DeviceModel, troubles: Troubles) -> Result<Troubled, ModelError> {
        assert!(troubles.becomes.is_sorted_by_key(|(from, _)| *from), "changes come in order of time");
        let mut devices = vec![(0, model.build()?)];
        for (from, model) in &troubles.becomes {
            devices.push((*from, model.build()?));
        }
        let (random, stalls) = (Random(troubles.seed), Random(!troubles.seed));
        Ok(Troubled { troubles, devices, random, done: BinaryHeap::new(), stall: (0, 0), stalls })
    }

    fn happens(&mut self, share: Option<TroubledShare>) -> Option<u64> {
        share.filter(|share| self.random.unit() < share.share).map(|share| share.ns)
    }

    /// When what is done at `at` is told.
    fn told(&mut self, at: u64) -> u64 {
        let scatter = self.random.below(self.troubles.scatter_ns.max(1));
        let tail = match self.happens(self.troubles.tail) {
            None => 0.0,
            Some(mean_ns) => {
                let least = mean_ns as f64 * (TAIL_POWER - 1.0);
                let times = (1.0 - self.random.unit()).powf(-1.0 / TAIL_POWER) - 1.0;
                (least * times).min(MOST_TAIL_NS)
            }
        };
        self.after_stalls(at + scatter + tail as u64)
    }

    fn after_stalls(&mut self, at: u64) -> u64 {
        let Some(Stalls { pause_ns, least_ns, most_ns }) = self.troubles.stalls else { return at };
        while self.stall.1 <= at {
            let begin = self.stall.1 + 1 + self.stalls.below(pause_ns);
            self.stall = (begin, begin + least_ns + self.stalls.below(most_ns - least_ns + 1));
        }
        if at < self.stall.0 { at } else { self.stall.1 }
    }

    /// Takes in what the devices have done by `now_ns`.
    fn collect(&mut self, now_ns: u64) {
        while let Some((due, device)) = self.next_inside().filter(|(due, _)| *due <= now_ns) {
            if let Some((id, over)) = self.devices[device].1.pop_due(due) {
                let told = self.told(over);
                self.done.push(Reverse((told, id)));
            }
        }
    }

    fn next_inside(&self) -> Option<(u64, usize)> {
        let all = self.devices.iter().enumerate();
        all.filter_map(|(i, (_, device))| Some((device.next_due()?, i))).min()
    }
}

impl Mechanics for Troubled {
    fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64) {
        if transfer.kind == TransferKind::Read {
            let without = self.troubles.answered_without(transfer.offset);
            if let Some(ns) = without.or_else(|| self.happens(self.troubles.hits)) {
                let told = self.after_stalls(now_ns + ns);
                return self.done.push(Reverse((told, id)));
            }
        }
        let now = self.devices.partition_point(|(from, _)| *from <= now_ns) - 1;
        self.devices[now].1.arrive(id, transfer, now_ns);
    }

    /// As the first device would: the others are of its kind.
    fn parts(&self, transfer: &Transfer) -> u64 {
        self.devices[0].1.parts(transfer)
    }

    fn next_due(&self) -> Option<u64> {
        let told = self.done.peek().map(|Reverse((told, _))| *told);
        told.into_iter().chain(self.next_inside().map(|(due, _)| due)).min()
    }

    fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        self.collect(now_ns);
        let Reverse((told, _)) = self.done.peek().filter(|Reverse((told, _))| *told <= now_ns)?;
        let over = *told;
        self.done.pop().map(|Reverse((_, id))| (id, over))
    }

    fn rest(&mut self) {
        self.devices.iter_mut().for_each(|(_, device)| device.rest());
    }

    fn spend_credits(&mut self, now_ns: u64) {
        self.devices.iter_mut().for_each(|(_, device)| device.spend_credits(now_ns));
    }

    fn credits(&self, now_ns: u64) -> Option<f64> {
        self.devices.iter().filter_map(|(_, device)| device.credits(now_ns)).reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 8192;
    const MS: u64 = 1_000_000;

    /// When each of `count` reads is told, that come `apart_ns` after each other.
    fn told(troubles: Troubles, count: usize, apart_ns: u64) -> Vec<u64> {
        let mut device = Troubled::new(&DeviceModel::nvme(), troubles).expect("it is in bounds");
        let read = |i: usize| Transfer { offset: i as u64 * (2 << 20), len: PAGE, kind: TransferKind::Read };
        let mut told = vec![0; count];
        let mut take = |device: &mut Troubled, until: u64| {
            while let Some((id, over)) = device.pop_due(until) {
                assert!(told[id] == 0 && over <= until, "told once, when it is due");
                told[id] = over;
            }
        };
        for i in 0..count {
            let now = i as u64 * apart_ns;
            take(&mut device, now);
            device.arrive(i, read(i), now);
        }
        take(&mut device, u64::MAX);
        assert!(device.next_due().is_none() && told.iter().all(|ns| *ns > 0));
        told
    }

    fn times(troubles: Troubles) -> Vec<u64> {
        let told = told(troubles, 4000, MS);
        told.into_iter().enumerate().map(|(i, over)| over - i as u64 * MS).collect()
    }

    fn share(times: &[u64], is: impl Fn(u64) -> bool) -> f64 {
        times.iter().filter(|ns| is(**ns)).count() as f64 / times.len() as f64
    }

    #[test]
    fn without_troubles_it_is_its_model() {
        assert!(times(Troubles::default()).iter().all(|ns| (80_000..90_000).contains(ns)));
    }

    #[test]
    fn shares_are_answered_in_their_time() {
        let quick = Some(TroubledShare { share: 0.3, ns: 7 });
        let hits = times(Troubles { hits: quick, ..Troubles::default() });
        let unwritten = times(Troubles { unwritten: quick, ..Troubles::default() });
        let bad = times(Troubles { bad: quick, ..Troubles::default() });
        for all in [&hits, &unwritten, &bad] {
            let quick = share(all, |ns| ns == 7);
            assert!((0.27..0.33).contains(&quick), "{quick}");
        }
        assert!(unwritten != bad && hits != bad, "each share is one of its own");
        let tail = Troubles { tail: Some(TroubledShare { share: 0.3, ns: 50 * MS }), ..Troubles::default() };
        let tail = times(tail);
        let (late, very) = (share(&tail, |ns| ns > MS), share(&tail, |ns| ns > 200 * MS));
        assert!((0.22..0.31).contains(&late) && (0.005..0.1).contains(&very), "{late}, {very}");
    }

    #[test]
    fn nothing_is_told_in_a_stall() {
        let stalls = Some(Stalls { pause_ns: 400 * MS, least_ns: 100 * MS, most_ns: 300 * MS });
        let mut told = told(Troubles { stalls, ..Troubles::default() }, 4000, MS);
        told.sort_unstable();
        let pauses: Vec<u64> = told.windows(2).map(|w| w[1] - w[0]).filter(|ns| *ns > 50 * MS).collect();
        assert!((6..20).contains(&pauses.len()), "{pauses:?}");
        assert!(pauses.iter().all(|ns| (98 * MS..301 * MS).contains(ns)), "{pauses:?}");
    }

    #[test]
    fn it_becomes_another_device() {
        let becomes = vec![(2000 * MS, DeviceModel::wide_slow()), (3000 * MS, DeviceModel::nvme())];
        let times = times(Troubles { becomes, ..Troubles::default() });
        assert!(times[..2000].iter().chain(&times[3000..]).all(|ns| *ns < MS));
        assert!(times[2000..3000].iter().all(|ns| *ns >= 3 * MS));
    }
}
