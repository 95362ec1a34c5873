//! Numbers with a point: units · 10^-places.
//!
//! Invariant: the last digit of the units is not 0, or there are no places. So equal numbers
//! are equal structures, and the canonical form is at hand.
//!
//! A quotient that ends is exact where the divisor's units have at most [`EXACT_BITS`] bits.
//! Any other is rounded, halves to even, to [`QUOTIENT_DIGITS`] digits behind the point, those
//! zeros not counted that come before its first digit.

use std::cmp::Ordering;
use std::fmt;

use dashu_int::ops::{BitTest, DivRem, UnsignedAbs};
use dashu_int::{Sign, UBig};

use super::integer::{
    Integer, MOST_BITS, MOST_PLACES, bytes_of, digits_fit, of_digits, power_of_ten, split_sign,
};

/// Digits of a quotient that does not end.
const QUOTIENT_DIGITS: i64 = 18;

/// Divisors up to so many bits are tried for a quotient that ends.
const EXACT_BITS: usize = 4096;

/// The logarithm of 10 to base 2.
const LOG2_OF_10: f64 = std::f64::consts::LOG2_10;

/// Where a number goes that is halfway between two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// To the greater one.
    Up,
    /// To the one whose last digit is even.
    Even,
}

/// A decimal number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Decimal {
    units: Integer,
    places: u32,
}

impl Decimal {
    /// units · 10^-places, rounded to [`MOST_PLACES`] places; `None` if it is too large.
    #[must_use]
    pub fn new(units: Integer, places: usize) -> Option<Self> {
        let (units, places) = match places.checked_sub(MOST_PLACES as usize) {
            Some(beyond) if beyond > 0 => (divide_rounded(&units, &power_of_ten(beyond)), MOST_PLACES),
            _ => (units, places as u32),
        };
        let number = Self::stripped(units, places);
        let fraction_bits = (f64::from(number.places) * LOG2_OF_10) as usize;
        (number.units.bit_len() <= MOST_BITS + fraction_bits).then_some(number)
    }

    /// Takes zeros off the end.
    fn stripped(units: Integer, places: u32) -> Self {
        if places == 0 {
            return Self { units, places };
        }
        if let Ok(units) = i64::try_from(&units) {
            return Self::of_word(units, places);
        }
        // a number that 10^n divides has n trailing zero bits
        let most = units.trailing_zeros().unwrap_or(0).min(places as usize);
        let (mut units, mut places) = (units, places);
        let mut step = if most == 0 { 0 } else { 1 << most.ilog2() };
        while step > 0 {
            if places as usize >= step {
                let (quotient, rest) = (&units).div_rem(&power_of_ten(step));
                if rest.is_zero() {
                    (units, places) = (quotient, places - step as u32);
                }
            }
            step /= 2;
        }
        Self { units, places }
    }

    /// Takes zeros off the end, for units of 64 bits.
    fn of_word(mut units: i64, mut places: u32) -> Self {
        if units == 0 {
            places = 0;
        }
        while places > 0 && units % 10 == 0 {
            units /= 10;
            places -= 1;
        }
        Self { units: units.into(), places }
    }

    /// A number of millionths.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self::of_word(micros, 6)
    }

    /// The number in millionths, where it is a whole number of them within 64 bits.
    #[must_use]
    pub fn micros(&self) -> Option<i64> {
        let missing = 6_u32.checked_sub(self.places)?;
        i64::try_from(&self.units).ok()?.checked_mul(10_i64.pow(missing))
    }

    /// The greatest number of millionths that is not above this one, saturating, and whether it
    /// is below.
    #[must_use]
    pub fn floor_micros(&self) -> (i128, bool) {
        let (units, exact) = match self.places.checked_sub(6) {
            None => (&self.units * power_of_ten(6 - self.places as usize), true),
            Some(0) => (self.units.clone(), true),
            Some(beyond) => (divide_down(&self.units, &power_of_ten(beyond as usize)), false),
        };
        let saturated = if units.sign() == Sign::Negative { i128::MIN } else { i128::MAX };
        (i128::try_from(&units).unwrap_or(saturated), !exact)
    }

    /// The number in units of 10^-18, rounded, halves to even; `None` where 128 bits do not hold
    /// it.
    #[must_use]
    pub fn attos(&self) -> Option<i128> {
        const PLACES: u32 = 18;
        let units = match self.places.checked_sub(PLACES) {
            None | Some(0) => &self.units * power_of_ten((PLACES - self.places) as usize),
            Some(beyond) => divide_rounded(&self.units, &power_of_ten(beyond as usize)),
        };
        i128::try_from(&units).ok()
    }

    /// The value of a lexical form of xsd:decimal.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = split_sign(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        if !digits_fit(whole.len(), fraction.len()) {
            return None;
        }
        let units = match (whole, fraction) {
            ("", "") => Integer::ZERO,
            (whole, "") => of_digits(whole)?,
            ("", fraction) => of_digits(fraction)?,
            (whole, fraction) => of_digits(&[whole, fraction].concat())?,
        };
        Self::new(if negative { -units } else { units }, fraction.len())
    }

    /// Units and places.
    pub(super) fn parts(&self) -> (&Integer, u32) {
        (&self.units, self.places)
    }

    /// Whether it has so few digits that it is the shortest decimal of its nearest double.
    #[must_use]
    pub fn is_short(&self) -> bool {
        /// The least number of 16 digits.
        const LEAST: u64 = 1_000_000_000_000_000;
        // far from the least double
        self.places <= 22 && i64::try_from(&self.units).is_ok_and(|units| units.unsigned_abs() < LEAST)
    }

    /// Whether it is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.units.is_zero()
    }

    /// Bytes it holds beside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        bytes_of(&self.units)
    }

    /// The units of both at the same number of places.
    fn aligned(&self, other: &Self) -> (Integer, Integer, u32) {
        let places = self.places.max(other.places);
        let lifted = |v: &Self| match places - v.places {
            0 => v.units.clone(),
            missing => &v.units * power_of_ten(missing as usize),
        };
        (lifted(self), lifted(other), places)
    }

    /// The sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Option<Self> {
        let (a, b, places) = self.aligned(other);
        Self::new(a + b, places as usize)
    }

    /// The difference.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Option<Self> {
        let (a, b, places) = self.aligned(other);
        Self::new(a - b, places as usize)
    }

    /// The product.
    #[must_use]
    pub fn multiply(&self, other: &Self) -> Option<Self> {
        Self::new(&self.units * &other.units, self.places as usize + other.places as usize)
    }

    /// The quotient; `None` for a division by 0, too.
    #[must_use]
    pub fn divide(&self, by: &Self) -> Option<Self> {
        if by.is_zero() {
            return None;
        }
        // it has no first digit to look for
        if self.is_zero() {
            return Some(self.clone());
        }
        let shift = i64::from(self.places) - i64::from(by.places);
        if by.units.bit_len() <= EXACT_BITS {
            // 2^n·5^m divides 10^max(n, m), and neither n nor m is more than the bits
            let lift = by.units.bit_len();
            let (quotient, rest) = (&self.units * power_of_ten(lift)).div_rem(&by.units);
            if rest.is_zero() {
                return Self::scaled(quotient, lift as i64 + shift);
            }
        }
        let mut places = self.zeros_at_least(by) + QUOTIENT_DIGITS;
        loop {
            places = places.min(i64::from(MOST_PLACES));
            let (v, by) = self.lifted(by, places - shift);
            let enough = places == i64::from(MOST_PLACES) || has_digits(&v, &by);
            if enough {
                return Self::scaled(divide_rounded(&v, &by), places);
            }
            places += 1;
        }
    }

    /// Zeros between the point and the first digit of a quotient, or up to two less.
    fn zeros_at_least(&self, by: &Self) -> i64 {
        let shift = f64::from(self.places) - f64::from(by.places);
        // its logarithm to base 2, at most so much
        let bits = self.units.bit_len() as f64 - by.units.bit_len() as f64 + 1.0 - shift * LOG2_OF_10;
        ((-bits / LOG2_OF_10).floor() as i64 - 1).max(0)
    }

    /// Dividend and divisor of the units with so many more places.
    fn lifted(&self, by: &Self, lift: i64) -> (Integer, Integer) {
        let power = power_of_ten(lift.unsigned_abs() as usize);
        if lift < 0 {
            (self.units.clone(), &by.units * power)
        } else {
            (&self.units * power, by.units.clone())
        }
    }

    /// units · 10^-places for places of either sign.
    fn scaled(units: Integer, places: i64) -> Option<Self> {
        match usize::try_from(places) {
            Ok(places) => Self::new(units, places),
            Err(_) => Self::new(units * power_of_ten(places.unsigned_abs() as usize), 0),
        }
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negate(&self) -> Self {
        Self { units: -&self.units, places: self.places }
    }

    /// The number without sign.
    #[must_use]
    pub fn abs(&self) -> Self {
        Self { units: self.units.clone().unsigned_abs().into(), places: self.places }
    }

    /// The greatest whole number that is not above it.
    #[must_use]
    pub fn floor(&self) -> Integer {
        divide_down(&self.units, &power_of_ten(self.places as usize))
    }

    /// The least whole number that is not below it.
    #[must_use]
    pub fn ceil(&self) -> Integer {
        -self.negate().floor()
    }

    /// The nearest whole number; halves go up.
    #[must_use]
    pub fn round_half_up(&self) -> Integer {
        let unit = power_of_ten(self.places as usize);
        divide_down(&(&self.units * Integer::from(2) + &unit), &(unit * Integer::from(2)))
    }

    /// The nearest number with so many digits behind the point; fewer than none end before it.
    #[must_use]
    pub fn rounded(&self, places: i64, ties: Ties) -> Option<Self> {
        /// More digits than any number has.
        const ALL_DIGITS: usize = 160_000;
        let surplus = match usize::try_from(i64::from(self.places).saturating_sub(places)) {
            Ok(surplus) if surplus > 0 => surplus,
            _ => return Some(self.clone()),
        };
        if surplus > ALL_DIGITS {
            return Some(Integer::ZERO.into());
        }
        let unit = power_of_ten(surplus);
        let units = match ties {
            Ties::Up => divide_down(&(&self.units * Integer::from(2) + &unit), &(unit * Integer::from(2))),
            Ties::Even => divide_rounded(&self.units, &unit),
        };
        Self::scaled(units, places)
    }

    /// Its whole part.
    #[must_use]
    pub fn truncate(&self) -> Integer {
        &self.units / power_of_ten(self.places as usize)
    }

    /// Its sign and between which powers of 2 it is: the order, where these tell.
    fn compare_roughly(&self, other: &Self) -> Option<Ordering> {
        let sign = |v: &Self| match v.units.sign() {
            Sign::Negative => -1,
            Sign::Positive => i8::from(!v.is_zero()),
        };
        let (a, b) = (sign(self), sign(other));
        if a != b || a == 0 {
            return Some(a.cmp(&b));
        }
        let bits = |v: &Self| v.units.bit_len() as f64 - f64::from(v.places) * LOG2_OF_10;
        let apart = bits(self) - bits(other);
        if apart.abs() < 2.0 {
            return None;
        }
        Some(if (apart > 0.0) == (a > 0) { Ordering::Greater } else { Ordering::Less })
    }
}

/// Whether a quotient has [`QUOTIENT_DIGITS`] digits.
fn has_digits(v: &Integer, by: &Integer) -> bool {
    (v / by).unsigned_abs() >= power_of_ten(QUOTIENT_DIGITS as usize - 1).unsigned_abs()
}

/// Quotient of integers, rounded down.
fn divide_down(v: &Integer, by: &Integer) -> Integer {
    let (quotient, rest) = v.div_rem(by);
    if rest.sign() == Sign::Negative && !rest.is_zero() { quotient - Integer::from(1) } else { quotient }
}

/// Quotient of integers, rounded to the nearest, halves to even.
fn divide_rounded(v: &Integer, by: &Integer) -> Integer {
    let (quotient, rest) = v.div_rem(by);
    let twice: UBig = rest.unsigned_abs() << 1;
    let up = match twice.cmp(&by.clone().unsigned_abs()) {
        Ordering::Less => false,
        Ordering::Equal => quotient.bit(0),
        Ordering::Greater => true,
    };
    match (up, v.sign() == by.sign()) {
        (false, _) => quotient,
        (true, true) => quotient + Integer::from(1),
        (true, false) => quotient - Integer::from(1),
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.places == other.places {
            return self.units.cmp(&other.units);
        }
        self.compare_roughly(other).unwrap_or_else(|| {
            let (a, b, _) = self.aligned(other);
            a.cmp(&b)
        })
    }
}

impl From<Integer> for Decimal {
    fn from(units: Integer) -> Self {
        Self { units, places: 0 }
    }
}

/// Seconds of a time.
impl From<oxsdatatypes::Decimal> for Decimal {
    fn from(v: oxsdatatypes::Decimal) -> Self {
        Self::stripped(i128::from_be_bytes(v.to_be_bytes()).into(), 18)
    }
}

/// The canonical form.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, places) = (self.units.to_string(), self.places as usize);
        let (sign, digits) = match units.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", units.as_str()),
        };
        f.write_str(sign)?;
        if places == 0 {
            return f.write_str(digits);
        }
        match digits.len().checked_sub(places) {
            Some(point) if point > 0 => write!(f, "{}.{}", &digits[..point], &digits[point..]),
            _ => write!(f, "0.{digits:0>places$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text} is a decimal"))
    }

    #[test]
    fn forms() {
        for (text, canonical) in [
            ("1.50", "1.5"),
            ("+.5", "0.5"),
            ("-5.", "-5"),
            ("-0.0", "0"),
            ("007.0070", "7.007"),
            ("100", "100"),
            ("-0.000000000000000000000001", "-0.000000000000000000000001"),
            ("123456789012345678901234567890.1234567890", "123456789012345678901234567890.123456789"),
            ("340282366920938463463374607431768211456000.000", "340282366920938463463374607431768211456000"),
        ] {
            assert_eq!(number(text).to_string(), canonical);
            assert_eq!(number(text), number(canonical));
        }
        for text in ["", ".", "+", "1e3", "1.2.3", "1 ", "0x1", "1_0"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn long_fractions_are_rounded_and_large_numbers_refused() {
        let least = format!("0.{}1", "0".repeat(MOST_PLACES as usize - 1));
        let least = number(&least);
        assert!(least.multiply(&number("0.5")).unwrap().is_zero());
        assert_eq!(least.multiply(&number("0.75")), Some(least.clone()));
        assert_eq!(least.divide(&number("1024")), Some(Integer::ZERO.into()));
        assert_eq!(Decimal::parse(&format!("0.{}1", "0".repeat(MOST_PLACES as usize))), None);

        let large = Decimal::from(Integer::from(1) << (MOST_BITS - 1));
        assert_eq!(large.add(&large), None);
        assert_eq!(large.divide(&number("0.5")), None);
        assert!(number("0").divide(&large).unwrap().is_zero());
        assert_eq!(large.multiply(&least).unwrap().divide(&least), Some(large.clone()));
        assert!(large.add(&least).unwrap() > large);
        assert!(large.negate() < large && large > least && large.negate() < least.negate());
    }

    #[test]
    fn micros_are_those_of_ids() {
        for (text, micros, floor) in [
            ("1.5", Some(1_500_000), (1_500_000, false)),
            ("-0.0000001", None, (-1, true)),
            ("0.0000001", None, (0, true)),
            ("9223372036854775808", None, (9_223_372_036_854_775_808_000_000, false)),
            ("1000000000000000000000000000000000000000", None, (i128::MAX, false)),
            ("-1000000000000000000000000000000000000000.1", None, (i128::MIN, false)),
        ] {
            assert_eq!((number(text).micros(), number(text).floor_micros()), (micros, floor), "{text}");
        }
    }
}
