//! Numbers as XPath has them, by integers of another library than the engine's: slow, simple,
//! exact. An exact number is units · 10^-places; a float is the nearest one to a quotient of
//! two integers, found by a division.

use std::cmp::Ordering;

use num_bigint::BigInt;

/// A number of one of the four types.
#[derive(Clone, Debug)]
pub enum Number {
    Integer(BigInt),
    Decimal(BigInt, usize),
    Float(f32),
    Double(f64),
}

use Number::{Decimal, Double, Float, Integer};

pub fn power(base: u32, exponent: usize) -> BigInt {
    BigInt::from(base).pow(exponent as u32)
}

fn zero() -> BigInt {
    BigInt::from(0)
}

fn magnitude(v: &BigInt) -> BigInt {
    if *v < zero() { -v } else { v.clone() }
}

/// Rounded down.
fn floor(v: &BigInt, by: &BigInt) -> BigInt {
    let (quotient, rest) = (v / by, v % by);
    if rest < zero() { quotient - 1 } else { quotient }
}

/// Of numbers that are not negative, rounded to the nearest, halves to even.
fn nearest_quotient(v: &BigInt, by: &BigInt) -> BigInt {
    let (quotient, rest) = (v / by, v % by);
    match (rest * 2_u32).cmp(by) {
        Ordering::Less => quotient,
        Ordering::Greater => quotient + 1,
        Ordering::Equal => &quotient + (&quotient % 2_u32),
    }
}

/// The nearest number of `bits` bits and an exponent of at least `lowest` to a quotient.
fn nearest(v: &BigInt, by: &BigInt, bits: i64, lowest: i64) -> f64 {
    let (a, negative) = (magnitude(v), *v < zero());
    if a == zero() {
        return 0.0;
    }
    let mut shift = bits - (a.bits() as i64 - by.bits() as i64) + 1;
    let quotient = loop {
        shift = shift.min(-lowest);
        let (up, down) = (shift.max(0) as usize, (-shift).max(0) as usize);
        let quotient = nearest_quotient(&(&a << up), &(by << down));
        if quotient <= BigInt::from(1_u64 << bits) {
            break quotient;
        }
        shift -= 1;
    };
    let mantissa: u64 = quotient.to_string().parse().expect("at most 54 bits");
    if mantissa == 0 {
        return if negative { -0.0 } else { 0.0 };
    }
    if i64::from(mantissa.ilog2()) - shift > 1023 {
        return if negative { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    // in two steps, neither of which rounds
    let half = shift / 2;
    let value = mantissa as f64 * 2_f64.powi(-half as i32) * 2_f64.powi(-(shift - half) as i32);
    if negative { -value } else { value }
}

impl Number {
    /// Units and places of an exact number.
    pub fn exact(&self) -> Option<(BigInt, usize)> {
        match self {
            Integer(v) => Some((v.clone(), 0)),
            Decimal(units, places) => Some((units.clone(), *places)),
            _ => None,
        }
    }

    pub fn double(&self) -> f64 {
        match self {
            Float(v) => f64::from(*v),
            Double(v) => *v,
            exact => {
                let (units, places) = exact.exact().expect("an exact number");
                nearest(&units, &power(10, places), 53, -1074)
            }
        }
    }

    pub fn float(&self) -> f32 {
        match self {
            Float(v) => *v,
            Double(v) => *v as f32,
            exact => {
                let (units, places) = exact.exact().expect("an exact number");
                nearest(&units, &power(10, places), 24, -149) as f32
            }
        }
    }

    pub fn is_true(&self) -> bool {
        match self {
            Float(v) => *v != 0.0 && !v.is_nan(),
            Double(v) => *v != 0.0 && !v.is_nan(),
            exact => exact.exact().is_some_and(|(units, _)| units != zero()),
        }
    }

    /// The canonical lexical form and the datatype's name.
    pub fn literal(&self) -> (String, &'static str) {
        match self {
            Integer(v) => (v.to_string(), "integer"),
            Decimal(units, places) => (decimal_text(units.clone(), *places), "decimal"),
            Float(v) => (real_text(f64::from(*v), &format!("{v:E}")), "float"),
            Double(v) => (real_text(*v, &format!("{v:E}")), "double"),
        }
    }
}

fn decimal_text(mut units: BigInt, mut places: usize) -> String {
    while places > 0 && &units % 10_u32 == zero() {
        units /= 10_u32;
        places -= 1;
    }
    let digits = format!("{:0>width$}", magnitude(&units).to_string(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let sign = if units < zero() { "-" } else { "" };
    if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn real_text(v: f64, scientific: &str) -> String {
    match v {
        v if v.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "INF".to_owned(),
        f64::NEG_INFINITY => "-INF".to_owned(),
        _ if scientific.contains('.') => scientific.to_owned(),
        _ => scientific.replace('E', ".0E"),
    }
}

/// The value of a literal; None for one that has none.
pub fn read(lexical: &str, datatype: &str) -> Option<Number> {
    let special = ["NaN", "INF", "-INF"].contains(&lexical);
    let real = special || lexical.bytes().all(|b| b"0123456789+-.eE".contains(&b));
    match datatype {
        "double" => real.then(|| lexical.to_lowercase().parse().ok().map(Double))?,
        "float" => real.then(|| lexical.to_lowercase().parse().ok().map(Float))?,
        "decimal" => {
            let (whole, fraction) = lexical.split_once('.').unwrap_or((lexical, ""));
            Some(Decimal(format!("{whole}{fraction}").parse().ok()?, fraction.len()))
        }
        derived => {
            let v: BigInt = lexical.parse().ok()?;
            let within =
                |least: i128, greatest: i128| BigInt::from(least) <= v && v <= BigInt::from(greatest);
            let valid = match derived {
                "long" => within(i64::MIN.into(), i64::MAX.into()),
                "int" => within(i32::MIN.into(), i32::MAX.into()),
                "byte" => within(-128, 127),
                "unsignedLong" => within(0, u64::MAX.into()),
                "nonNegativeInteger" => v >= zero(),
                "positiveInteger" => v > zero(),
                "negativeInteger" => v < zero(),
                _ => true,
            };
            valid.then_some(Integer(v))
        }
    }
}

/// The order of exact numbers.
fn compare_exact(a: (BigInt, usize), b: (BigInt, usize)) -> Ordering {
    (a.0 * power(10, b.1)).cmp(&(b.0 * power(10, a.1)))
}

/// `<` and `=` by the wider type; None for NaN.
pub fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a, b) {
        (Double(_), _) | (_, Double(_)) => a.double().partial_cmp(&b.double()),
        (Float(_), _) | (_, Float(_)) => a.float().partial_cmp(&b.float()),
        _ => Some(compare_exact(a.exact()?, b.exact()?)),
    }
}

/// Whether ORDER BY may give `a` before `b`.
pub fn may_precede(a: &Number, b: &Number) -> bool {
    match (a.exact(), b.exact()) {
        (Some(a), Some(b)) => compare_exact(a, b).is_le(),
        _ => a.double().is_nan() || a.double() <= b.double(),
    }
}

/// `+ - * /`; None for a division of exact numbers by 0.
pub fn arithmetic(op: char, a: &Number, b: &Number) -> Option<Number> {
    macro_rules! real {
        ($a:expr, $b:expr) => {
            match op {
                '+' => $a + $b,
                '-' => $a - $b,
                '*' => $a * $b,
                _ => $a / $b,
            }
        };
    }
    if matches!(a, Double(_)) || matches!(b, Double(_)) {
        return Some(Double(real!(a.double(), b.double())));
    }
    if matches!(a, Float(_)) || matches!(b, Float(_)) {
        return Some(Float(real!(a.float(), b.float())));
    }
    let ((ua, pa), (ub, pb)) = (a.exact()?, b.exact()?);
    let places = pa.max(pb);
    let (la, lb) = (&ua * power(10, places - pa), &ub * power(10, places - pb));
    let (units, places) = match op {
        '+' => (la + lb, places),
        '-' => (la - lb, places),
        '*' => (ua * ub, pa + pb),
        _ => return divide(&la, &lb),
    };
    let integers = matches!((a, b), (Integer(_), Integer(_)));
    Some(if integers { Integer(units) } else { Decimal(units, places) })
}

/// Exact where the quotient ends; else 18 digits, zeros behind the point not counted.
pub fn divide(v: &BigInt, by: &BigInt) -> Option<Number> {
    if *by == zero() {
        return None;
    }
    let negative = (*v < zero()) != (*by < zero());
    let signed = |v: BigInt| if negative { -v } else { v };
    let (v, by) = (magnitude(v), magnitude(by));
    let (mut a, mut b) = (v.clone(), by.clone());
    while b != zero() {
        (a, b) = (b.clone(), a % b);
    }
    let mut rest = &by / &a;
    let mut powers = [0, 0];
    for (count, factor) in powers.iter_mut().zip([2_u32, 5]) {
        while &rest % factor == zero() {
            rest /= factor;
            *count += 1;
        }
    }
    if rest == BigInt::from(1) {
        let places = powers[0].max(powers[1]);
        return Some(Decimal(signed(v * power(10, places) / by), places));
    }
    let mut zeros = 0;
    while &v * power(10, zeros + 1) < by {
        zeros += 1;
    }
    let places = 18 + zeros;
    Some(Decimal(signed(nearest_quotient(&(v * power(10, places)), &by)), places))
}

/// ABS, CEIL, FLOOR, ROUND, and `-` for the unary minus.
pub fn unary(function: &str, v: &Number) -> Number {
    match v {
        Float(v) => Float(real(function, f64::from(*v)) as f32),
        Double(v) => Double(real(function, *v)),
        exact => {
            let (units, places) = exact.exact().expect("an exact number");
            let one = power(10, places);
            let (units, places) = match function {
                "ABS" => (magnitude(&units), places),
                "-" => (-units, places),
                "FLOOR" => (floor(&units, &one), 0),
                "CEIL" => (-floor(&-units, &one), 0),
                _ => (floor(&(units * 2_u32 + &one), &(one * 2_u32)), 0),
            };
            if matches!(v, Integer(_)) { Integer(units) } else { Decimal(units, places) }
        }
    }
}

fn real(function: &str, v: f64) -> f64 {
    match function {
        "ABS" => v.abs(),
        "-" => -v,
        "FLOOR" => v.floor(),
        "CEIL" => v.ceil(),
        _ if !v.is_finite() || v.fract() == 0.0 => v,
        // a zero keeps the sign
        _ => (if v - v.floor() >= 0.5 { v.floor() + 1.0 } else { v.floor() }).copysign(v),
    }
}

/// The very number a finite double is.
fn expand(v: f64) -> Option<(BigInt, usize)> {
    if !v.is_finite() {
        return None;
    }
    // doubling is exact, and a double is whole after at most 1074 of them
    let mut places = 0;
    let (mut whole, mut rest) = (v.trunc(), v.fract());
    let mut units = zero();
    loop {
        let mut part = zero();
        let mut bits = 0_usize;
        while whole.abs() >= 9_007_199_254_740_992.0 {
            whole /= 2.0;
            bits += 1;
        }
        part += BigInt::from(whole as i64);
        units = units * 2_u32 + (part << bits);
        if rest == 0.0 {
            return Some((units * power(5, places), places));
        }
        rest *= 2.0;
        (whole, rest) = (rest.trunc(), rest.fract());
        places += 1;
    }
}

/// A cast to a datatype.
pub fn cast(to: &str, v: &Number) -> Option<Number> {
    let exact = || match v {
        Float(_) | Double(_) => expand(v.double()),
        exact => exact.exact(),
    };
    Some(match to {
        "integer" => {
            let (units, places) = exact()?;
            Integer(units / power(10, places))
        }
        "decimal" => {
            let (units, places) = exact()?;
            Decimal(units, places)
        }
        "float" => Float(v.float()),
        _ => Double(v.double()),
    })
}

#[test]
fn the_model_agrees_with_numbers_known_by_heart() {
    let number = |text: &str| read(text, "decimal").unwrap();
    assert_eq!(number("9007199254740993").double(), 9_007_199_254_740_992.0);
    assert_eq!(number("9007199254740993.0000000001").double(), 9_007_199_254_740_994.0);
    assert_eq!(number("0.1").double(), 0.1);
    assert_eq!(number(&format!("0.{}5", "0".repeat(323))).double(), 5e-324);
    assert_eq!(number(&"9".repeat(400)).double(), f64::INFINITY);
    assert_eq!(number("16777217").float(), 16_777_216.0);
    assert_eq!(arithmetic('/', &number("1"), &number("30")).unwrap().literal().0, "0.0333333333333333333");
    assert_eq!(arithmetic('/', &number("2"), &number("3")).unwrap().literal().0, "0.666666666666666667");
    assert_eq!(cast("decimal", &Double(-0.375)).unwrap().literal().0, "-0.375");
    assert_eq!(cast("integer", &Double(1e18)).unwrap().literal().0, "1000000000000000000");
    assert_eq!(unary("ROUND", &number("-2.5")).literal().0, "-2");
    assert_eq!(unary("ROUND", &Double(0.499_999_999_999_999_94)).literal().0, "0.0E0");
}
