//! The places of a job's requests: a pure function from the number of a request to its offset,
//! so that threads share only a counter.
//!
//! Random places are a permutation: no place comes twice before every place has come once (as
//! with fio's random map), which keeps a page cache from answering. The permutation is a
//! Feistel network of four rounds over the next even power of two, walked until the place is
//! inside. It takes no memory and 20 ns.
//!
//! By Zipf's law some places come again and again, others never. The ranks are scattered by the
//! permutation of the first round: the places of the most frequent ones are not neighbours, and
//! none has the share of two.

use snowmelt_base::random::{GOLDEN, mix};

use super::zipf::ZipfLaw;

/// In which order places come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// One after the other.
    Sequential,
    /// Every place once in a random order, then again.
    Random,
    /// Every so many bytes; at the end again from the start, a request further on.
    Stride(u64),
}

/// The places of a job.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    pattern: Pattern,
    from: u64,
    align: u64,
    /// Distance of neighbouring places.
    step: u64,
    count: u64,
    half_bits: u32,
    seed: u64,
    /// How often random places come; each as often as any other without.
    zipf: Option<ZipfLaw>,
}

impl Places {
    /// Places for requests of `bs` bytes inside `from .. from + len`, at multiples of `align`
    /// from its start. `None` when not one request fits. Sequential requests and strides do not
    /// overlap; random ones do when `align` is less than `bs`.
    pub fn new(pattern: Pattern, bs: u64, align: u64, from: u64, len: u64, seed: u64) -> Option<Places> {
        let align = align.max(1);
        let step = match pattern {
            Pattern::Random => align,
            Pattern::Sequential | Pattern::Stride(_) => bs.next_multiple_of(align),
        };
        let count = len.checked_sub(bs)? / step + 1;
        let bits = 64 - (count - 1).leading_zeros();
        Some(Places {
            pattern,
            from,
            align,
            step,
            count,
            half_bits: bits.div_ceil(2).max(1),
            seed,
            zipf: None,
        })
    }

    /// Random places of which the one of rank k comes with a probability proportional to
    /// k^-theta (fio: `random_distribution=zipf:THETA`), scattered over the whole.
    pub fn by_zipf(self, theta: f64) -> Places {
        assert!(self.pattern == Pattern::Random, "an order that is set has no distribution");
        Places { zipf: Some(ZipfLaw::new(self.count, theta)), ..self }
    }

    /// True when each place comes once before any comes twice.
    pub fn each_once(&self) -> bool {
        self.zipf.is_none()
    }

    /// Number of different places.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn align(&self) -> u64 {
        // Where all is measured from must be aligned as well.
        if self.from == 0 { self.align } else { self.align.min(1 << self.from.trailing_zeros()) }
    }

    /// End of the last byte that any request touches.
    pub(super) fn end(&self, bs: u64) -> u64 {
        self.from + (self.count - 1) * self.step + bs
    }

    /// Offset of request number `i`.
    pub fn at(&self, i: u64) -> u64 {
        self.offset(self.place(i))
    }

    /// Offset of the place of this number, in order of offsets.
    pub fn offset(&self, place: u64) -> u64 {
        self.from + place * self.step
    }

    /// Number of the place of request number `i`, below [`count`](Self::count).
    pub fn place(&self, i: u64) -> u64 {
        match self.pattern {
            Pattern::Sequential => i % self.count,
            Pattern::Random => match self.zipf {
                None => self.shuffled(i % self.count, i / self.count),
                Some(law) => self.shuffled(law.rank(self.seed, i), 0),
            },
            Pattern::Stride(bytes) => {
                let stride = (bytes / self.step).max(1);
                let per_round = self.count.div_ceil(stride);
                (i % per_round * stride + i / per_round % stride) % self.count
            }
        }
    }

    fn shuffled(&self, i: u64, round: u64) -> u64 {
        let key = self.seed.wrapping_add(round.wrapping_mul(GOLDEN));
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = i;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for turn in 1..=4u64 {
                let mixed = mix(right ^ key.wrapping_mul(turn | 1).rotate_left(turn as u32 * 13));
                (left, right) = (right, left ^ (mixed & mask));
            }
            x = (left << self.half_bits) | right;
            // At most four times the places there are: a few turns at most.
            if x < self.count {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn random_places_are_a_permutation_and_differ_per_round_and_seed() {
        for count in [1u64, 2, 3, 5, 64, 1000, 4097] {
            let places = Places::new(Pattern::Random, 4096, 4096, 8192, count * 4096, 7).unwrap();
            assert_eq!(places.count(), count);
            let round = |n: u64| (n * count..(n + 1) * count).map(|i| places.at(i)).collect::<Vec<_>>();
            let distinct: HashSet<u64> = round(0).into_iter().collect();
            assert_eq!(distinct.len() as u64, count);
            assert!(distinct.iter().all(|at| at % 4096 == 0 && (8192..8192 + count * 4096).contains(at)));
            if count > 60 {
                let other = Places::new(Pattern::Random, 4096, 4096, 8192, count * 4096, 8).unwrap();
                assert_ne!(round(0), round(1));
                assert_ne!(places.at(0), other.at(0));
            }
        }
    }

    #[test]
    fn random_places_are_spread_evenly() {
        let places = Places::new(Pattern::Random, 512, 512, 0, 512 * 100_000, 3).unwrap();
        let mut tenths = [0u32; 10];
        (0..10_000).for_each(|i| tenths[(places.at(i) / (512 * 10_000)) as usize] += 1);
        assert!(tenths.iter().all(|n| (850..1150).contains(n)), "{tenths:?}");
        let adjacent = (0..10_000).filter(|i| places.at(*i).abs_diff(places.at(i + 1)) <= 512).count();
        assert!(adjacent < 10, "{adjacent} neighbours in a row");
    }

    #[test]
    fn zipf_places_are_scattered_and_the_law_holds_place_by_place() {
        const COUNT: u64 = 1000;
        let places = Places::new(Pattern::Random, 4096, 4096, 0, COUNT * 4096, 5).unwrap().by_zipf(1.1);
        let mut counts = vec![0u32; COUNT as usize];
        (0..100_000).for_each(|i| counts[(places.at(i) / 4096) as usize] += 1);
        let mut by_count: Vec<usize> = (0..COUNT as usize).collect();
        by_count.sort_by_key(|place| std::cmp::Reverse(counts[*place]));
        let sum: f64 = (1..=COUNT).map(|k| (k as f64).powf(-1.1)).sum();
        for k in 1..=5usize {
            let (got, wanted) = (f64::from(counts[by_count[k - 1]]) / 1e5, (k as f64).powf(-1.1) / sum);
            assert!((got / wanted - 1.0).abs() < 0.06, "rank {k}: {got}, not {wanted}");
        }
        // By a hash that is no permutation, places of two ranks would have the sum of both.
        let apart = |pair: &[usize]| pair[0].abs_diff(pair[1]) > 1;
        assert!(by_count[..6].windows(2).all(apart), "neighbours: {:?}", &by_count[..6]);
        assert_eq!(places.at(17), places.at(17));
    }

    #[test]
    fn unaligned_places_touch_seven_of_eight_offsets_inside_a_page() {
        let places = Places::new(Pattern::Random, 8192, 512, 0, 64 << 20, 1).unwrap();
        let pages: u64 = (0..places.count())
            .map(|i| {
                let at = places.at(i);
                (at + 8191) / 4096 - at / 4096 + 1
            })
            .sum();
        let mean = pages as f64 / places.count() as f64;
        assert!((mean - 2.875).abs() < 0.001, "{mean}");
    }

    #[test]
    fn sequences_and_strides() {
        let at = |p: Places, n: u64| (0..n).map(|i| p.at(i)).collect::<Vec<_>>();
        let places = Places::new(Pattern::Sequential, 10, 10, 5, 35, 0).unwrap();
        assert_eq!(at(places, 4), [5, 15, 25, 5]);
        let places = Places::new(Pattern::Stride(40), 10, 10, 0, 100, 0).unwrap();
        assert_eq!(at(places, 6), [0, 40, 80, 10, 50, 90]);
        assert!(Places::new(Pattern::Random, 4096, 1, 0, 4095, 0).is_none());
    }
}
