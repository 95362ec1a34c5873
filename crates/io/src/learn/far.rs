//! Tells that a device has become another one from looks at it.
//!
//! Sums that reach back over a change are of neither device, and go on saying so for as long as
//! they reach. Some looks one after the other that are far from them, to the same side, are no
//! outliers (a stall is one look): what was before them counts no more. Which requests they were
//! of must not differ, or lengths would be taken for devices.

use crate::learn::sums::Sums;

/// Looks one after the other.
const LOOKS: u32 = 3;
/// A request takes so many times as much, or as little, of the device.
const FAR: f64 = 1.3;
/// Lengths that differ by less are the same.
const SAME: f64 = 1.25;
/// A look at fewer requests says little.
const LEAST_REQUESTS: f64 = 4.0;

/// Looks that were far off, since the last that was not.
#[derive(Clone, Default)]
pub(crate) struct Far {
    is_slower: bool,
    looks: u32,
    sums: Sums,
}

impl Far {
    /// A look, beside the sums before it. True when these are of another device: what is so now is
    /// in [`Far::take`].
    pub(crate) fn note(&mut self, tick: &Sums, lately: &Sums) -> bool {
        let within = |times: f64, bound: f64| (1.0 / bound..bound).contains(&times);
        let is_known = tick.requests >= LEAST_REQUESTS && lately.requests >= LEAST_REQUESTS;
        let times = tick.busy_per_request() / lately.busy_per_request();
        let is_same = within(tick.mean_bytes() / lately.mean_bytes(), SAME);
        if !is_known || !is_same || within(times, FAR) {
            *self = Far::default();
            return false;
        }
        let is_slower = times > 1.0;
        if is_slower != self.is_slower {
            *self = Far { is_slower, ..Far::default() };
        }
        self.looks += 1;
        self.sums.add(tick, 1.0);
        self.looks >= LOOKS
    }

    /// The sums of these looks; the next ones are counted anew.
    pub(crate) fn take(&mut self) -> Sums {
        std::mem::take(self).sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(ns: f64, requests: f64, bytes: f64) -> Sums {
        Sums { busy_ns: ns * requests, requests, bytes: bytes * requests, ..Sums::default() }
    }

    #[test]
    fn three_looks_to_the_same_side_are_a_change() {
        let before = sums(1e6, 100.0, 8192.0);
        let [slow, quick, usual] = [2e6, 0.5e6, 1.1e6].map(|ns| sums(ns, 8.0, 8192.0));
        let mut far = Far::default();
        let mut note = |tick: &Sums| far.note(tick, &before);
        assert!(![slow, slow, usual, slow, slow, quick, quick].iter().any(&mut note));
        assert!(note(&quick));
        assert_eq!(far.take().busy_per_request(), 0.5e6, "the three, and none before them");
    }

    #[test]
    fn other_lengths_and_few_requests_are_none() {
        let before = sums(1e6, 100.0, 8192.0);
        let mut far = Far::default();
        for _ in 0..9 {
            assert!(!far.note(&sums(2e6, 8.0, 65536.0), &before), "longer ones take longer");
            assert!(!far.note(&sums(2e6, 3.0, 8192.0), &before), "chance");
            assert!(!far.note(&sums(2e6, 8.0, 8192.0), &Sums::default()), "nothing was known");
        }
    }
}
