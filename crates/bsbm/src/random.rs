//! The random numbers of `java.util.Random`: a 48-bit linear congruential generator.
//!
//! The benchmark's data and parameters are defined by this generator's streams, so every method
//! here gives the same value as the Java method of the same meaning. Algorithm: Knuth, The Art
//! of Computer Programming, volume 2, section 3.2.1; the class's public documentation states
//! the constants.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// One stream of `java.util.Random`.
#[derive(Clone, Debug)]
pub struct JavaRandom {
    state: u64,
}

impl JavaRandom {
    /// The stream that `new java.util.Random(seed)` gives.
    pub fn new(seed: i64) -> Self {
        Self { state: (seed as u64 ^ MULTIPLIER) & MASK }
    }

    /// The top `bits` (1 to 32) bits of the next state, as Java's signed int.
    #[inline]
    fn next(&mut self, bits: u32) -> i32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.state >> (48 - bits)) as i32
    }

    /// 31 uniform bits: the raw material of [`below`](Self::below).
    #[inline]
    pub(crate) fn bits31(&mut self) -> u32 {
        self.next(31) as u32
    }

    /// `nextInt()`: all 32 bits.
    #[inline]
    pub fn int(&mut self) -> i32 {
        self.next(32)
    }

    /// `nextInt(n)`: uniform in `0..n`, for `n` in 1..=i32::MAX.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0 && n <= i32::MAX as u32, "the bound is a positive Java int");
        if n.is_power_of_two() {
            return ((u64::from(n) * u64::from(self.bits31())) >> 31) as u32;
        }
        loop {
            let bits = self.bits31();
            let value = bits % n;
            if !in_last_partial_run(bits, value, n) {
                return value;
            }
        }
    }

    /// Uniform in `low..=high`.
    #[inline]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// `nextLong()`.
    pub fn long(&mut self) -> i64 {
        let high = i64::from(self.next(32)) << 32;
        high.wrapping_add(i64::from(self.next(32)))
    }

    /// `nextDouble()`: uniform in [0, 1) with 53 bits.
    #[inline]
    pub fn double(&mut self) -> f64 {
        let high = (self.next(26) as u64) << 27;
        let low = self.next(27) as u64;
        (high + low) as f64 / (1u64 << 53) as f64
    }
}

/// Java rejects a draw from the incomplete run of `n` values at the top of the 31-bit range.
#[inline]
fn in_last_partial_run(bits: u32, value: u32, n: u32) -> bool {
    bits - value + (n - 1) > i32::MAX as u32
}

/// A fixed bound for many draws: the remainder by two multiplications instead of a division
/// (Lemire, Kaser, Kurz: Faster remainder by direct computation, 2019).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    n: u32,
    reciprocal: u64,
}

impl Bound {
    pub(crate) fn new(n: u32) -> Self {
        assert!(n > 0 && n <= i32::MAX as u32, "the bound is a positive Java int");
        Self { n, reciprocal: (u64::MAX / u64::from(n)).wrapping_add(1) }
    }

    /// The value that `random.below(n)` would give.
    #[inline]
    pub(crate) fn draw(self, random: &mut JavaRandom) -> u32 {
        if self.n.is_power_of_two() {
            return random.below(self.n);
        }
        loop {
            let bits = random.bits31();
            let fraction = self.reciprocal.wrapping_mul(u64::from(bits));
            let value = ((u128::from(fraction) * u128::from(self.n)) >> 64) as u32;
            if !in_last_partial_run(bits, value, self.n) {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values printed by OpenJDK for `new Random(42)` and widely published ones for seed 0.
    #[test]
    fn known_java_values() {
        let mut random = JavaRandom::new(42);
        assert_eq!(random.int(), -1170105035);
        assert_eq!(random.int(), 234785527);
        assert_eq!(JavaRandom::new(0).int(), -1155484576);
        assert_eq!(JavaRandom::new(42).long(), -5025562857975149833);
        assert_eq!(JavaRandom::new(0).long(), -4962768465676381896);
        assert_eq!(JavaRandom::new(42).double(), 0.7275636800328681);
        assert_eq!(JavaRandom::new(0).double(), 0.730967787376657);
        let mut random = JavaRandom::new(42);
        let draws: Vec<u32> = (0..10).map(|_| random.below(10)).collect();
        assert_eq!(draws, [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]);
    }

    #[test]
    fn negative_seed_uses_all_its_bits() {
        assert_ne!(JavaRandom::new(-1).int(), JavaRandom::new(1).int());
        assert_eq!(JavaRandom::new(-1).state, (MASK ^ MULTIPLIER) & MASK);
    }

    /// With a bound just above half the range, Java draws again until a draw lies below it.
    #[test]
    fn draws_again_in_the_last_partial_run() {
        let n = (1 << 30) + 1;
        let mut bits = JavaRandom::new(3);
        let expected: Vec<u32> = (0..40).map(|_| bits.bits31()).filter(|&draw| draw < n).collect();
        assert!(expected.len() < 35, "some draws are refused");
        let mut random = JavaRandom::new(3);
        for draw in expected {
            assert_eq!(random.below(n), draw);
        }
    }

    proptest::proptest! {
        #[test]
        fn bound_equals_below(seed: i64, n in 1u32..=i32::MAX as u32) {
            let (mut one, mut two) = (JavaRandom::new(seed), JavaRandom::new(seed));
            let bound = Bound::new(n);
            for _ in 0..20 {
                proptest::prop_assert_eq!(one.below(n), bound.draw(&mut two));
            }
        }
    }
}
