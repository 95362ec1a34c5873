//! Ranks that follow Zipf's law: rank k of n comes with a probability proportional to k^-theta.
//!
//! Drawn by rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate
//! variates from monotone discrete distributions", ACM TOMACS 6(3), 1996). The density x^-theta is
//! inverted over 1/2 ..= n + 1/2 instead of the sum of the probabilities, and the few draws between
//! the two are thrown away. So the probabilities are exact, for any n and without a table; fio sums
//! up n terms first, and draws by an approximation.

use snowmelt_base::random::{GOLDEN, Random, mix};

/// The law over so many ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ZipfLaw {
    ranks: f64,
    theta: f64,
    /// The integral of the density up to 3/2, less the density at 1: where inversion begins.
    from: f64,
    /// The integral of the density up to n + 1/2.
    to: f64,
    /// A draw so near above a rank is always the rank's.
    near: f64,
}

impl ZipfLaw {
    /// `theta` is above 0; 0 would be every rank alike.
    pub(super) fn new(ranks: u64, theta: f64) -> ZipfLaw {
        assert!(ranks > 0 && theta > 0.0 && theta.is_finite(), "a law has ranks and an exponent");
        let mut law = ZipfLaw { ranks: ranks as f64, theta, from: 0.0, to: 0.0, near: 0.0 };
        law.from = law.integral(1.5) - 1.0;
        law.to = law.integral(law.ranks + 0.5);
        law.near = 2.0 - law.inverse(law.integral(2.5) - law.density(2.0));
        law
    }

    /// Rank number `i` of a sequence, from 0: the same whenever it is asked for.
    pub(super) fn rank(&self, seed: u64, i: u64) -> u64 {
        let mut random = Random(mix(seed ^ mix(i.wrapping_mul(GOLDEN))));
        loop {
            let drawn = self.to + random.unit() * (self.from - self.to);
            let x = self.inverse(drawn);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.near || drawn >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of the density from 1 to x: (x^(1-theta) - 1) / (1-theta), the logarithm at
    /// theta 1, and exact around it.
    fn integral(&self, x: f64) -> f64 {
        let ln = x.ln();
        exp_m1_over((1.0 - self.theta) * ln) * ln
    }

    fn inverse(&self, integral: f64) -> f64 {
        // Rounding can leave the domain by the last digit.
        let t = (integral * (1.0 - self.theta)).max(-1.0);
        (ln_1p_over(t) * integral).exp()
    }
}

/// (e^x - 1) / x, and 1 at 0.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, and 1 at 0.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Probabilities of the first ranks, by the definition.
    fn exact(ranks: u64, theta: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=ranks).map(|k| (k as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / sum).collect()
    }

    const DRAWS: u64 = 200_000;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Pearson's chi-square over the ranks, those of few expected draws in one bin. For up to
        /// 50 degrees of freedom chance exceeds `df + 6 sqrt(2 df) + 20` about once in 10^8.
        #[test]
        fn ranks_come_as_often_as_the_law_says(
            ranks in 1u64..3000,
            theta in prop_oneof![Just(1.0), Just(1.1), 0.05f64..3.0, 0.999_999f64..1.000_001],
            seed in any::<u64>(),
        ) {
            let law = ZipfLaw::new(ranks, theta);
            let mut counts = vec![0u64; ranks as usize];
            (0..DRAWS).for_each(|i| counts[law.rank(seed, i) as usize] += 1);
            let mut bins: Vec<(f64, f64)> = Vec::new();
            for (probability, count) in exact(ranks, theta).into_iter().zip(&counts) {
                let (expected, seen) = (probability * DRAWS as f64, *count as f64);
                match bins.last_mut() {
                    Some(last) if last.0 < DRAWS as f64 / 50.0 => *last = (last.0 + expected, last.1 + seen),
                    _ => bins.push((expected, seen)),
                }
            }
            let chi: f64 = bins.iter().filter(|b| b.0 > 5.0).map(|(e, o)| (o - e).powi(2) / e).sum();
            let degrees = bins.len() as f64;
            let bound = degrees + 6.0 * (2.0 * degrees).sqrt() + 20.0;
            prop_assert!(chi < bound, "chi-square {chi} of {degrees} bins is above {bound}");
        }
    }

    /// Of 10^9 ranks: the sum of the probabilities up to n is n terms and Euler and Maclaurin's
    /// rest.
    #[test]
    fn a_thousand_million_ranks_take_no_table() {
        const RANKS: u64 = 1_000_000_000;
        for theta in [0.9, 1.0, 1.1, 1.5] {
            let first = 10_000u64;
            let head = |k: u64| (1..=k).map(|k| (k as f64).powf(-theta)).sum::<f64>();
            let primitive = |x: f64| if theta == 1.0 { x.ln() } else { x.powf(1.0 - theta) / (1.0 - theta) };
            let tail = primitive(RANKS as f64) - primitive(first as f64)
                + ((RANKS as f64).powf(-theta) - (first as f64).powf(-theta)) / 2.0;
            let all = head(first) + tail;
            let law = ZipfLaw::new(RANKS, theta);
            for most in [1u64, 10, 1000, first] {
                let wanted = head(most) / all;
                let draws = 400_000u64;
                let got = (0..draws).filter(|i| law.rank(7, *i) < most).count() as f64 / draws as f64;
                let deviation = (wanted * (1.0 - wanted) / draws as f64).sqrt();
                assert!((got - wanted).abs() < 5.0 * deviation, "theta {theta}, {most}: {got}, not {wanted}");
            }
            assert!((0..1000).all(|i| law.rank(1, i) < RANKS));
        }
    }
}
