//! The distributions from which the generator draws, each with a random stream of its own.

use crate::normal::inverse_normal;
use crate::random::JavaRandom;

/// Uniform moments of a period, in milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Dates {
    random: JavaRandom,
    from: i64,
    to: i64,
}

impl Dates {
    pub(crate) fn new(seed: i64, from: i64, to: i64) -> Self {
        Self { random: JavaRandom::new(seed), from, to }
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> i64 {
        self.draw_in(self.from, self.to)
    }

    /// A moment of another period, from the same stream.
    #[inline]
    pub(crate) fn draw_in(&mut self, from: i64, to: i64) -> i64 {
        (self.random.double() * (to - from) as f64 + from as f64) as i64
    }
}

/// One of a few items, by weight.
#[derive(Clone, Debug)]
pub(crate) struct Weighted<T> {
    random: JavaRandom,
    cumulative: Vec<(f64, T)>,
}

impl<T: Copy> Weighted<T> {
    pub(crate) fn new(seed: i64, items: &[(f64, T)]) -> Self {
        let total: f64 = items.iter().map(|item| item.0).sum();
        let mut sum = 0.0;
        let cumulative = items.iter().map(|&(weight, item)| {
            sum += weight / total;
            (sum, item)
        });
        Self { random: JavaRandom::new(seed), cumulative: cumulative.collect() }
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> T {
        let x = self.random.double();
        let found = self.cumulative.iter().find(|&&(sum, _)| x <= sum);
        found.or(self.cumulative.last()).expect("a weighted choice has items").1
    }
}

/// A coin that shows `true` in a given number of 100 throws.
///
/// Which side comes first matters: the stream is compared with the first side's share.
pub(crate) fn coin(seed: i64, first: (f64, bool)) -> Weighted<bool> {
    Weighted::new(seed, &[first, (100.0 - first.0, !first.1)])
}

/// Numbers 1 to `max`, normally distributed around `mu / limit * max` and cut off at both ends.
#[derive(Clone, Debug)]
pub(crate) struct Bell {
    random: JavaRandom,
    mu: f64,
    max: u32,
    limit: f64,
}

impl Bell {
    /// Standard deviation 1; `limit` is where, on the scale of `mu`, the number `max` ends.
    pub(crate) fn new(seed: i64, mu: f64, max: u32, limit: f64) -> Self {
        Self { random: JavaRandom::new(seed), mu, max, limit }
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> u32 {
        loop {
            let x = self.mu + inverse_normal(self.random.double());
            if (0.0..=self.limit).contains(&x) {
                // x = limit exactly would give max + 1; it never comes, and no such entity exists.
                return ((x / self.limit * f64::from(self.max) + 1.0) as u32).min(self.max);
            }
        }
    }
}

/// Group sizes around a mean, with a third of it as the standard deviation.
#[derive(Clone, Debug)]
pub(crate) struct GroupSize {
    random: JavaRandom,
    mean: f64,
}

impl GroupSize {
    pub(crate) fn new(seed: i64, mean: f64) -> Self {
        Self { random: JavaRandom::new(seed), mean }
    }

    /// A size that may be 0.
    #[inline]
    pub(crate) fn draw(&mut self) -> u32 {
        loop {
            let x = 3.0 + inverse_normal(self.random.double());
            if x >= 0.0 {
                return (x / 3.0 * self.mean) as u32;
            }
        }
    }
}

/// A country of the benchmark, as its two letters and the language of its reviewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Country {
    pub code: &'static str,
    pub language: &'static str,
}

const fn country(code: &'static str, language: &'static str) -> Country {
    Country { code, language }
}

/// Countries by their weights, the same for producers, vendors, reviewers and query parameters.
pub(crate) fn countries(seed: i64) -> Weighted<Country> {
    Weighted::new(
        seed,
        &[
            (40.0, country("US", "en")),
            (10.0, country("GB", "en")),
            (10.0, country("JP", "ja")),
            (10.0, country("CN", "zh")),
            (5.0, country("DE", "de")),
            (5.0, country("FR", "fr")),
            (5.0, country("ES", "es")),
            (5.0, country("RU", "ru")),
            (5.0, country("KR", "ko")),
            (5.0, country("AT", "de")),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        let mut countries = countries(7);
        let american = (0..10_000).filter(|_| countries.draw().code == "US").count();
        assert!((3_800..4_200).contains(&american), "{american} of 10000 are US");
        let mut coin = coin(7, (75.0, false));
        let heads = (0..10_000).filter(|_| coin.draw()).count();
        assert!((2_300..2_700).contains(&heads), "{heads} of 10000 are true");
    }

    #[test]
    fn a_bell_stays_in_its_range_and_reaches_both_ends() {
        let mut bell = Bell::new(1, 2.0, 10, 4.0);
        let draws: Vec<u32> = (0..10_000).map(|_| bell.draw()).collect();
        assert_eq!(draws.iter().min(), Some(&1));
        assert_eq!(draws.iter().max(), Some(&10));
    }
}
