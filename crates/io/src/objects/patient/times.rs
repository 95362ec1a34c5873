//! Times of gets by their length, learned from the latest: when a get is slow.
//!
//! A get is slow when it takes longer than 95 of 100 of the latest gets of about its length (the
//! same power of four). One that was given up unanswered counts with the time it had taken if that
//! was slow already: it is among the slow ones either way.

/// Latest gets of a length that count.
const LATEST: usize = 128;
/// Gets before it is known what is slow.
const LEAST: usize = 20;
/// One get in this many is slow.
const SLOW: usize = 20;

/// Lengths: up to 4 KiB, and four times as much each; the last for objects of unknown length.
const LENGTHS: usize = 12;
const FIRST_BITS: u32 = 12;

/// See the head of the file.
#[derive(Default)]
pub(super) struct GetTimes {
    lengths: [LatestTimes; LENGTHS],
}

#[derive(Default)]
struct LatestTimes {
    /// A ring.
    ns: Vec<u64>,
    next: usize,
    /// The slow end, until another time comes.
    slow_ns: Option<u64>,
}

impl GetTimes {
    /// Takes note of a get of so many bytes, or of a whole object.
    pub(super) fn add(&mut self, bytes: Option<u64>, ns: u64) {
        let latest = &mut self.lengths[place(bytes)];
        if latest.ns.len() < LATEST {
            latest.ns.push(ns);
        } else {
            latest.ns[latest.next] = ns;
            latest.next = (latest.next + 1) % LATEST;
        }
        latest.slow_ns = None;
    }

    /// Takes note of a get that was given up after `ns`.
    pub(super) fn add_unanswered(&mut self, bytes: Option<u64>, ns: u64) {
        if self.slow_ns(bytes).is_some_and(|slow_ns| ns >= slow_ns) {
            self.add(bytes, ns);
        }
    }

    /// The time from which on such a get is slow; `None` while too few are known.
    pub(super) fn slow_ns(&mut self, bytes: Option<u64>) -> Option<u64> {
        let latest = &mut self.lengths[place(bytes)];
        if latest.ns.len() < LEAST {
            return None;
        }
        let slow_ns = latest.slow_ns.unwrap_or_else(|| {
            let mut sorted = latest.ns.clone();
            let at = sorted.len() - 1 - sorted.len() / SLOW;
            *sorted.select_nth_unstable(at).1
        });
        latest.slow_ns = Some(slow_ns);
        Some(slow_ns)
    }
}

fn place(bytes: Option<u64>) -> usize {
    let Some(bytes) = bytes else { return LENGTHS - 1 };
    let bits = u64::BITS - bytes.saturating_sub(1).leading_zeros();
    (bits.saturating_sub(FIRST_BITS).div_ceil(2) as usize).min(LENGTHS - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_is_the_end_of_the_latest() {
        let mut times = GetTimes::default();
        (1..LEAST as u64).for_each(|ns| times.add(Some(100), ns));
        assert_eq!(times.slow_ns(Some(100)), None);
        (0..1000).for_each(|i| times.add(Some(100), i % 100 + 1));
        assert!((93..=97).contains(&times.slow_ns(Some(4096)).unwrap()));
        assert_eq!(times.slow_ns(Some(4097)), None);
        (0..LATEST).for_each(|_| times.add_unanswered(Some(100), 50));
        assert!((93..=97).contains(&times.slow_ns(Some(100)).unwrap()));
        (0..50).for_each(|_| times.add_unanswered(Some(100), 99));
        assert_eq!(times.slow_ns(Some(100)), Some(99));
        (0..LATEST as u64).for_each(|_| times.add(Some(1), 7));
        assert_eq!(times.slow_ns(Some(1)), Some(7));
    }

    #[test]
    fn lengths_have_their_places() {
        let places: Vec<usize> =
            [1, 4096, 4097, 16384, 16385, 1 << 20, 1 << 50].into_iter().map(|n| place(Some(n))).collect();
        assert_eq!(places, [0, 0, 1, 1, 2, 4, 10]);
        assert_eq!(place(None), 11);
    }
}
