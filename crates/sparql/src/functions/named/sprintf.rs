//! afn:sprintf: values by a format, as Java's Formatter lays them out.
//!
//! A place is `%[argument$][flags][width][.precision]conversion`, with the conversions `s` `S`
//! `d` `f` `e` `E` `x` `X` `o` `b` `%` and `n`, and the flags `-` `0` `+` `,` and space. Any
//! other, and a value that does not fit its conversion, is an error.

use std::iter::Peekable;
use std::str::Chars;

use super::text::text_of;
use crate::functions::string::string;
use crate::value::{Cast, Decimal, Integer, Terms, Ties, Value, cast};

/// Largest width and precision.
const MOST: usize = 1000;
/// Most digits of a double in decimal.
const DIGITS_OF_DOUBLE: usize = 767;

/// A place in a format.
#[derive(Default)]
struct FormatPlace {
    argument: Option<usize>,
    left: bool,
    zeros: bool,
    plus: bool,
    space: bool,
    grouped: bool,
    width: usize,
    precision: Option<usize>,
}

pub(super) fn sprintf(args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    let format = string(args.first()?)?.0;
    let (mut out, mut next) = (String::new(), 1);
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        terms.poll(1)?;
        if c != '%' {
            out.push(c);
            continue;
        }
        let place = FormatPlace::read(&mut rest)?;
        let conversion = rest.next()?;
        let shown = match conversion {
            '%' => "%".to_owned(),
            'n' => "\n".to_owned(),
            _ => {
                let at = place.argument.unwrap_or(next);
                next += usize::from(place.argument.is_none());
                place.convert(conversion, args.get(at)?)?
            }
        };
        place.pad(&shown, &mut out);
        terms.fits(out.len())?;
    }
    terms.fits(out.len())?;
    Some(Value::String(out.into()))
}

/// Digits as a number of at most [`MOST`].
fn number(rest: &mut Peekable<Chars<'_>>) -> Option<Option<usize>> {
    let mut value = None;
    while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
        rest.next();
        value = Some(value.unwrap_or(0) * 10 + digit as usize).filter(|v| *v <= MOST);
        value?;
    }
    Some(value)
}

impl FormatPlace {
    /// Reads what is between `%` and the conversion.
    fn read(rest: &mut Peekable<Chars<'_>>) -> Option<Self> {
        let mut place = FormatPlace::default();
        if rest.peek().is_some_and(|c| matches!(c, '1'..='9')) {
            let digits = number(rest)??;
            if rest.next_if_eq(&'$').is_some() {
                place.argument = Some(digits);
            } else {
                place.width = digits;
                place.precision = Self::precision(rest)?;
                return Some(place);
            }
        }
        while let Some(flag) = rest.next_if(|c| "-0+ ,".contains(*c)) {
            match flag {
                '-' => place.left = true,
                '0' => place.zeros = true,
                '+' => place.plus = true,
                ' ' => place.space = true,
                _ => place.grouped = true,
            }
        }
        place.width = number(rest)?.unwrap_or(0);
        place.precision = Self::precision(rest)?;
        Some(place)
    }

    fn precision(rest: &mut Peekable<Chars<'_>>) -> Option<Option<usize>> {
        match rest.next_if_eq(&'.') {
            Some(_) => Some(Some(number(rest)??)),
            None => Some(None),
        }
    }

    /// A value as its conversion writes it.
    fn convert(&self, conversion: char, v: &Value<'_>) -> Option<String> {
        let cut = |text: &str| match self.precision {
            Some(chars) => text.chars().take(chars).collect(),
            None => text.to_owned(),
        };
        Some(match conversion {
            's' => cut(&text_of(v)?),
            'S' => cut(&text_of(v)?).to_uppercase(),
            'b' => cut(if crate::value::effective_boolean(v)? { "true" } else { "false" }),
            'd' => self.signed(integer(v)?.to_string()),
            'x' => format!("{:x}", u128::try_from(integer(v)?).ok()?),
            'X' => format!("{:X}", u128::try_from(integer(v)?).ok()?),
            'o' => format!("{:o}", u128::try_from(integer(v)?).ok()?),
            'f' => self.signed(self.fixed(v)?),
            'e' => self.signed(self.scientific(v)?),
            'E' => self.signed(self.scientific(v)?).to_uppercase(),
            _ => return None,
        })
    }

    /// Digits behind the point of `f` and `e`.
    fn places(&self) -> usize {
        self.precision.unwrap_or(6)
    }

    fn fixed(&self, v: &Value<'_>) -> Option<String> {
        let exact: Decimal = match v {
            Value::Integer(v) => v.clone().into(),
            Value::Decimal(v) => v.clone(),
            v => {
                let v = real(v)?;
                match exact_of(v) {
                    Some(exact) if v.is_sign_negative() => return self.fixed_of(exact, true),
                    Some(exact) => exact,
                    None if v.is_finite() => return Some(format!("{v:.*}", self.places())),
                    None => return Some(named(v)),
                }
            }
        };
        let is_negative = exact < Integer::ZERO.into();
        self.fixed_of(exact, is_negative)
    }

    /// An exact number; halves go away from 0.
    fn fixed_of(&self, exact: Decimal, is_negative: bool) -> Option<String> {
        let rounded = exact.abs().rounded(self.places() as i64, Ties::Up)?.to_string();
        let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
        let sign = if is_negative { "-" } else { "" };
        Some(match self.places() {
            0 => format!("{sign}{whole}"),
            places => format!("{sign}{whole}.{fraction:0<places$}"),
        })
    }

    /// With an exponent of two digits at least; halves go away from 0.
    fn scientific(&self, v: &Value<'_>) -> Option<String> {
        let v = real(v)?;
        if !v.is_finite() {
            return Some(named(v));
        }
        let exact = format!("{:.*e}", DIGITS_OF_DOUBLE, v.abs());
        let (mantissa, exponent) = exact.split_once('e')?;
        let mut exponent: i32 = exponent.parse().ok()?;
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        let is_up = digits.get(self.places() + 1).is_some_and(|digit| *digit >= b'5');
        digits.resize(self.places() + 1, b'0');
        if is_up && next_up(&mut digits) {
            exponent += 1;
        }
        let (first, rest) = str::from_utf8(&digits).ok()?.split_at(1);
        let (minus, point) =
            (if v.is_sign_negative() { "-" } else { "" }, if rest.is_empty() { "" } else { "." });
        let sign = if exponent < 0 { '-' } else { '+' };
        Some(format!("{minus}{first}{point}{rest}e{sign}{:0>2}", exponent.unsigned_abs()))
    }

    /// A number with the sign, the groups and the zeros that the flags want.
    fn signed(&self, number: String) -> String {
        let (sign, digits) = match number.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None if self.plus => ("+", number.as_str()),
            None if self.space => (" ", number.as_str()),
            None => ("", number.as_str()),
        };
        let digits = if self.grouped { grouped(digits) } else { digits.to_owned() };
        let room = self.width.saturating_sub(sign.len());
        match self.zeros && !self.left {
            true => format!("{sign}{digits:0>room$}"),
            false => format!("{sign}{digits}"),
        }
    }

    fn pad(&self, shown: &str, out: &mut String) {
        let missing = self.width.saturating_sub(shown.chars().count());
        let blanks = std::iter::repeat_n(' ', missing);
        if self.left {
            out.push_str(shown);
            out.extend(blanks);
        } else {
            out.extend(blanks);
            out.push_str(shown);
        }
    }
}

/// The next number of as many digits; true where all were nines and it has one more, its last 0
/// left out.
fn next_up(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    digits[0] = b'1';
    true
}

/// The exact value of a finite double.
fn exact_of(v: f64) -> Option<Decimal> {
    match cast(Cast::Decimal, &Value::Double(v.into()))? {
        Value::Decimal(exact) => Some(exact),
        _ => None,
    }
}

/// NaN and the infinite numbers.
fn named(v: f64) -> String {
    let name = if v.is_nan() {
        "NaN"
    } else if v > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    name.to_owned()
}

/// Commas between thousands, before the point.
fn grouped(digits: &str) -> String {
    let whole = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits[..whole].chars().enumerate() {
        if at > 0 && (whole - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + &digits[whole..]
}

fn integer<'v>(v: &'v Value<'_>) -> Option<&'v Integer> {
    match v {
        Value::Integer(v) => Some(v),
        _ => None,
    }
}

fn real(v: &Value<'_>) -> Option<f64> {
    match cast(Cast::Double, v).filter(|_| v.is_numeric())? {
        Value::Double(v) => Some(v.into()),
        _ => None,
    }
}
