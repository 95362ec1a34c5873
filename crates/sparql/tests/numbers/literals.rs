//! Literals of numbers near every border that a machine's number has, in all their forms.

use num_bigint::BigInt;
use snowmelt_base::random::Random;

use super::model::power;

/// A literal: its lexical form and the name of its datatype.
pub type Literal = (String, &'static str);

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

/// Whole numbers at which something ends: bits of ids, of doubles and floats, of words, powers
/// of ten, the largest double.
fn border(random: &mut Random) -> BigInt {
    let power_of_two = *pick(random, &[0, 7, 8, 24, 31, 32, 48, 51, 53, 59, 63, 64, 127, 128, 200, 1024]);
    let power_of_ten = *pick(random, &[0, 6, 9, 15, 18, 19, 20, 38, 39, 60, 309]);
    let base = match random.below(4) {
        0 => BigInt::from(0),
        1 => power(10, power_of_ten),
        _ => power(2, power_of_two),
    };
    let near: BigInt = base + BigInt::from(random.below(5)) - BigInt::from(2);
    if random.below(2) == 0 { -near } else { near }
}

fn digits(random: &mut Random, count: u64) -> String {
    (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
}

fn decimal(random: &mut Random) -> String {
    let whole = border(random);
    let count = *pick(random, &[1, 3, 6, 7, 12, 17, 18, 19, 25, 40, 330]);
    match random.below(5) {
        0 => format!("{whole}.{}", digits(random, count)),
        1 => format!("{whole}.{}0", digits(random, count)),
        2 => format!("0.{}{}", "0".repeat(count as usize), digits(random, 17)),
        3 => format!("-0.{}{}", "0".repeat(count as usize), digits(random, 3)),
        _ => format!("{}.{}", random.below(10), digits(random, count.min(6))),
    }
}

fn integer(random: &mut Random) -> String {
    let value = border(random);
    let text = value.to_string();
    match (random.below(6), text.strip_prefix('-')) {
        (0, None) => format!("+{text}"),
        (1, None) => format!("000{text}"),
        (1, Some(digits)) => format!("-00{digits}"),
        _ => text,
    }
}

fn double(random: &mut Random) -> f64 {
    match random.below(6) {
        0 => *pick(random, &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX, 5e-324]),
        1 => f64::from_bits(random.word()),
        2 => (random.below(2000) as f64 - 1000.0) / 8.0,
        3 => random.unit() - 0.5,
        _ => {
            let near: f64 = border(random).to_string().parse().expect("digits");
            let bits = near.to_bits().wrapping_add(random.below(3)).wrapping_sub(1);
            if near == 0.0 { near } else { f64::from_bits(bits) }
        }
    }
}

/// One of the forms of a double or float.
fn real(random: &mut Random, v: f64, canonical: &str, short: &str) -> String {
    match v {
        v if v.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "INF".to_owned(),
        f64::NEG_INFINITY => "-INF".to_owned(),
        _ => match random.below(4) {
            0 => short.to_owned(),
            1 => short.replace('e', "E+").replace("E+-", "E-"),
            2 if canonical.len() < 60 => canonical.to_owned(),
            _ if short.contains('.') => short.replace('e', "E"),
            _ => short.replace('e', ".0E"),
        },
    }
}

/// A literal of a numeric datatype; not all have a value.
pub fn literal(random: &mut Random) -> Literal {
    match random.below(10) {
        0..3 => (integer(random), "integer"),
        3..6 => (decimal(random), "decimal"),
        6..8 => {
            let v = double(random);
            (real(random, v, &format!("{v}"), &format!("{v:e}")), "double")
        }
        8 => {
            let v = double(random) as f32;
            (real(random, v.into(), &format!("{v}"), &format!("{v:e}")), "float")
        }
        _ => {
            let types = ["long", "int", "byte", "unsignedLong", "nonNegativeInteger", "positiveInteger"];
            (integer(random), *pick(random, &[&types[..], &["negativeInteger"]].concat()))
        }
    }
}

/// Distinct literals.
pub fn pool(random: &mut Random, count: usize) -> Vec<Literal> {
    let mut pool: Vec<Literal> = Vec::new();
    while pool.len() < count {
        let new = literal(random);
        if !pool.contains(&new) {
            pool.push(new);
        }
    }
    pool
}
