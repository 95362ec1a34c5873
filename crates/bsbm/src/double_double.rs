//! Numbers of about 32 decimal digits: the unevaluated sum of two f64, `high + low`.
//!
//! Only what the table of the normal distribution needs: sums, products, quotients, exp and erfc.
//! Algorithms: Dekker, A floating-point technique for extending the available precision, 1971;
//! Hida, Li, Bailey, Quad-double arithmetic, 2000. Invariant: |low| <= half an ulp of `high`.

use std::f64::consts;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `high + low`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoubleDouble {
    pub high: f64,
    pub low: f64,
}

const LN_2: DoubleDouble = DoubleDouble { high: consts::LN_2, low: 2.3190468138462996e-17 };
const TWO_OVER_SQRT_PI: DoubleDouble =
    DoubleDouble { high: consts::FRAC_2_SQRT_PI, low: 1.533545961316588e-17 };
/// The square root of two.
pub(crate) const SQRT_2: DoubleDouble = DoubleDouble { high: consts::SQRT_2, low: -9.667293313452913e-17 };

/// Sum and rounding error, for any order of magnitudes (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Sum and rounding error when |a| >= |b|.
fn quick_two_sum(a: f64, b: f64) -> DoubleDouble {
    let high = a + b;
    DoubleDouble { high, low: b - (high - a) }
}

/// Product and rounding error.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

impl From<f64> for DoubleDouble {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for DoubleDouble {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        let (low, low_error) = two_sum(self.low, other.low);
        let first = quick_two_sum(high, error + low);
        quick_two_sum(first.high, first.low + low_error)
    }
}

impl Neg for DoubleDouble {
    type Output = Self;
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (high, error) = two_product(self.high, other.high);
        quick_two_sum(high, error + (self.high * other.low + self.low * other.high))
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    /// Long division with three partial quotients.
    fn div(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self - other * first.into();
        let second = rest.high / other.high;
        let rest = rest - other * second.into();
        let third = rest.high / other.high;
        quick_two_sum(first, second) + third.into()
    }
}

impl DoubleDouble {
    /// Multiplies by a power of two, exactly.
    fn scale(self, factor: f64) -> Self {
        Self { high: self.high * factor, low: self.low * factor }
    }

    /// e to this power: `x = n ln 2 + r`, the Taylor series of `r`, `|r| <= ln 2 / 2`.
    pub(crate) fn exp(self) -> Self {
        let n = (self.high / LN_2.high).round();
        let r = self - LN_2 * n.into();
        let (mut sum, mut term) = (Self::from(1.0) + r, r);
        for k in 2..30 {
            term = term * r / f64::from(k).into();
            sum = sum + term;
        }
        sum.scale(2f64.powi(n as i32))
    }

    /// 1 - erf(x) for 0 <= x <= 5, to about 30 digits absolutely.
    ///
    /// erf(x) = 2/sqrt(pi) exp(-x^2) sum over n of 2^n x^(2n+1) / (1*3*...*(2n+1)): all terms
    /// positive. (Abramowitz and Stegun 7.1.6.)
    pub(crate) fn erfc(self) -> Self {
        let square = self * self;
        let (mut sum, mut term) = (self, self);
        let mut odd = 3.0;
        while term.high > sum.high * 1e-34 {
            term = term * square.scale(2.0) / odd.into();
            sum = sum + term;
            odd += 2.0;
        }
        Self::from(1.0) - TWO_OVER_SQRT_PI * (-square).exp() * sum
    }

    /// The f64 nearest to this positive value rounded to 12 significant decimal digits.
    pub(crate) fn to_12_digits(self) -> f64 {
        let mut decimals = 11 - self.high.log10().floor() as i32;
        let mut scaled = self * power_of_ten(decimals);
        if scaled.high >= 1e12 {
            decimals -= 1;
            scaled = self * power_of_ten(decimals);
        }
        let floor = scaled.high.floor();
        let fraction = (scaled.high - floor) + scaled.low;
        let digits = (floor + (fraction + 0.5).floor()) as u64;
        format!("{digits}e{}", -decimals).parse().expect("an integer and an exponent are a number")
    }
}

/// 10^n; exact for |n| <= 22 when positive, to 32 digits when negative.
fn power_of_ten(n: i32) -> DoubleDouble {
    let power = DoubleDouble::from(10f64.powi(n.abs()));
    if n >= 0 { power } else { DoubleDouble::from(1.0) / power }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: DoubleDouble, high: f64, low: f64) {
        let error = ((got.high - high) + (got.low - low)).abs();
        assert!(error <= high.abs() * 1e-29, "{got:?} is not {high:e} + {low:e}: {error:e}");
    }

    #[test]
    fn e_and_erfc_to_thirty_digits() {
        // e = 2.71828182845904523536028747135266249775724709...
        close(DoubleDouble::from(1.0).exp(), consts::E, 1.4456468917292502e-16);
        // erfc(1) = 0.157299207050285130658779364917390740703933...
        close(DoubleDouble::from(1.0).erfc(), 0.15729920705028513, -2.954563826510312e-18);
        close(DoubleDouble::from(1.0) / DoubleDouble::from(3.0), 1.0 / 3.0, 1.850371707708594e-17);
    }

    #[test]
    fn twelve_digits() {
        assert_eq!(DoubleDouble::from(1.0).to_12_digits(), 1.0);
        assert_eq!((DoubleDouble::from(2.0) / DoubleDouble::from(3.0)).to_12_digits(), 0.666666666667);
        assert_eq!((DoubleDouble::from(2e9) / DoubleDouble::from(3.0)).to_12_digits(), 666666666.667);
    }
}
