//! The inverse normal distribution in the quick, table-driven form the benchmark's data depends on.
//!
//! Marsaglia, Zaman, Marsaglia: Rapid evaluation of the inverse of the normal distribution
//! function,
//! 1994. Absolute error about 1e-7, which is visible in the data: a better function gives other
//!       data.
//!
//! Table: entry i belongs to the tail probability g(i) = (1/2 + (i mod 32)/64) / 2^(31 - i div
//! 32). `quantile[i]` is z with 2(1 - Phi(z)) = g(i), `slope[i]` the derivative sqrt(pi)/2 *
//! exp(z^2/2), both rounded to 12 significant decimal digits, as the published table is. Entry
//! 1024 is (0, 0).

use std::sync::LazyLock;

use crate::double_double::{DoubleDouble, SQRT_2};

const ENTRIES: usize = 1024;

struct Table {
    quantile: Box<[f64]>,
    slope: Box<[f64]>,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::compute);

/// The point below which a standard normal variable lies with this probability.
pub(crate) fn inverse_normal(probability: f64) -> f64 {
    if probability <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if probability >= 1.0 {
        return f64::INFINITY;
    }
    let negative = probability < 0.5;
    let tail = 2.0 * if negative { probability } else { 1.0 - probability };
    let z = TABLE.tail_quantile(tail);
    if negative { -z } else { z }
}

impl Table {
    /// z with 2(1 - Phi(z)) = `tail`, for 0 < tail <= 1.
    #[inline]
    fn tail_quantile(&self, tail: f64) -> f64 {
        let exponent = (tail.to_bits() >> 52) as i32;
        let doublings = (1022 - exponent).max(0);
        // The tail doubled to lie in [1/2, 1], in 64ths; the scaling is by a power of two, so
        // exact.
        let sixty_fourths = (tail * power_of_two(doublings + 6)) as i32;
        let entry = 992 - 32 * doublings + (sixty_fourths - 32);
        if entry < 0 {
            return 100.0;
        }
        let (a, b) = (self.quantile[entry as usize], self.slope[entry as usize]);
        let grid = f64::from(sixty_fourths) * power_of_two(-(doublings + 6));
        let h = (tail - grid) * b;
        // The published formula's constants, not better ones.
        #[allow(clippy::approx_constant)]
        let root_two = 1.414214;
        a - h * (root_two - h * (a - 0.4714045 * (1.0 + 2.0 * a * a) * h))
    }

    fn compute() -> Self {
        let half_sqrt_pi = DoubleDouble::from(88622692335705.0) / DoubleDouble::from(1e14);
        let mut quantile = vec![0.0; ENTRIES + 1].into_boxed_slice();
        let mut slope = quantile.clone();
        let mut x = DoubleDouble::from(0.0);
        // From the largest tail down, so that each root is a good start for the next.
        for i in (0..ENTRIES).rev() {
            let tail = (0.5 + (i % 32) as f64 / 64.0) * power_of_two(i as i32 / 32 - 31);
            x = inverse_erfc(tail, x);
            quantile[i] = (SQRT_2 * x).to_12_digits();
            slope[i] = (half_sqrt_pi * (x * x).exp()).to_12_digits();
        }
        Self { quantile, slope }
    }
}

/// The root of erfc(x) = `tail`, by Newton's method from a smaller x (erfc is convex there).
fn inverse_erfc(tail: f64, start: DoubleDouble) -> DoubleDouble {
    const HALF_SQRT_PI: f64 = 0.886226925452758;
    let mut x = start;
    loop {
        let residual = x.erfc() - tail.into();
        let step = residual.high * HALF_SQRT_PI * (x.high * x.high).exp();
        x = x + step.into();
        if step.abs() < 1e-9 * x.high {
            // The last step doubled the digits from 9; the error left is below 1e-17, one more
            // ends it.
            let residual = x.erfc() - tail.into();
            return x + (residual.high * HALF_SQRT_PI * (x.high * x.high).exp()).into();
        }
    }
}

/// 2^n for a normal result.
#[inline]
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn table_is_the_published_one() {
        let mut hash = Sha256::new();
        for value in TABLE.quantile.iter().chain(&TABLE.slope) {
            hash.update(value.to_le_bytes());
        }
        let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "0da6bfa4aedfbc6d525f30c6a8636c9fca120cfc479a002c9a40c753a4c565c3");
    }

    #[test]
    fn well_known_quantiles() {
        for (probability, z) in
            [(0.5, 0.0), (0.975, 1.959963984540054), (0.1, -1.2815515655446004), (1e-6, -4.753424308822899)]
        {
            let got = inverse_normal(probability);
            assert!((got - z).abs() < 2e-7, "inverse_normal({probability}) = {got}, not {z}");
        }
        assert_eq!(inverse_normal(0.0), f64::NEG_INFINITY);
        assert_eq!(inverse_normal(1.0), f64::INFINITY);
        assert_eq!(inverse_normal(1e-12), -100.0);
    }
}
