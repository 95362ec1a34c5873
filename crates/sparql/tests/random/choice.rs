//! Choices that generators make.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// A source of choices; the same for the same seed.
pub struct Choice(StdRng);

impl Choice {
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.0).expect("not empty")
    }

    /// One of them, if there is any.
    pub fn some<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.choose(&mut self.0)
    }

    pub fn up_to(&mut self, n: u32) -> u32 {
        self.0.random_range(0..n)
    }

    pub fn within<T, R>(&mut self, range: R) -> T
    where
        T: rand::distr::uniform::SampleUniform,
        R: rand::distr::uniform::SampleRange<T>,
    {
        self.0.random_range(range)
    }
}
