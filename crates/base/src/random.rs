//! Small seeded generators, for simulations, measurements and tests. None is fit for secrets.
//!
//! Invariant: the sequence of a seed never changes. Simulated devices, fault injection and random
//! tests are repeated by their seeds, so their results depend on it; the tests below pin the first
//! numbers.
//!
//! New code takes [`Random`]. The functions are generators that older sequences were made with:
//!
//! | generator         | source                                                                  |
//! |-------------------|------------------------------------------------------------------------|
//! | [`Random`]        | SplitMix64: Steele, Lea, Flood, OOPSLA 2014                            |
//! | [`lcg`]           | Knuth's MMIX: a linear congruence modulo 2^64; its low bits are weak   |
//! | [`xorshift`]      | Marsaglia, "Xorshift RNGs", 2003: shifts 13, 7, 17                     |
//! | [`xorshift_star`] | Vigna, 2014: shifts 12, 25, 27, and a multiplication                   |

/// 2^64 over the golden ratio: multiples of it spread evenly over all words.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The end of SplitMix64: every bit of the answer depends on every bit of `z`.
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// SplitMix64; any seed will do.
#[derive(Debug, Clone, Default)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.word() % n.max(1)
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The next state of Knuth's linear congruence. Take the high bits.
pub fn lcg(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state
}

/// The next state of xorshift64. The state must not be 0.
pub fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The next number of xorshift64*. The state must not be 0.
pub fn xorshift_star(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Fills `bytes` with words of [`xorshift`], which no device can compress.
pub fn fill(bytes: &mut [u8], state: &mut u64) {
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&xorshift(state).to_ne_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three(mut next: impl FnMut() -> u64) -> [u64; 3] {
        std::array::from_fn(|_| next())
    }

    #[test]
    fn sequences_never_change() {
        let mut random = Random(0);
        assert_eq!(
            three(|| random.word()),
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]
        );
        let (mut a, mut b, mut c) = (1, 1, 1);
        assert_eq!(
            three(|| lcg(&mut a)),
            [0x6c57_6fac_43fd_007c, 0x8268_86b3_864a_1b1b, 0xa5fa_e199_2097_aa0e]
        );
        assert_eq!(
            three(|| xorshift(&mut b)),
            [0x0000_0000_4082_2041, 0x1000_4106_0c01_1441, 0x9b1e_842f_6e86_2629]
        );
        assert_eq!(
            three(|| xorshift_star(&mut c)),
            [0x47e4_ce4b_896c_dd1d, 0xabcf_a6a8_e079_651d, 0xb9d1_0d8f_eb73_1f57]
        );
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut random = Random(7);
        assert!((0..1000).all(|n| random.below(n) < n.max(1)));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }

    #[test]
    fn a_part_of_a_word_fills_the_end() {
        let (mut long, mut short, mut state) = ([0; 16], [0; 11], 9);
        fill(&mut long, &mut state);
        state = 9;
        fill(&mut short, &mut state);
        assert_eq!(short, long[..11]);
    }
}
