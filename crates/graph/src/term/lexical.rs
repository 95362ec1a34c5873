//! From an inline id to its lexical form and value: the inverse of `term::inline`.

use std::fmt::{self, Write};

use crate::term::civil::date_of;
use crate::term::layout::{
    BODY_BITS, DAYS, DECIMAL, DECIMAL_OFFSET, DERIVED, DERIVED_OFFSET, DIGIT_BITS, FIRST_REGISTERED,
    INTEGER_OFFSET, MAX_DIGITS, MS_PER_DAY, SCALE, SHORT_STRING_BYTES, XSD_STRING,
};
use crate::term::{TermId, TermKind};

/// The value that an inline id carries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum InlineValue {
    /// An xsd:string.
    String(ShortString),
    /// An xsd:integer.
    Integer(i64),
    /// A value of a datatype derived from integer, by its code (1 to 12).
    Derived {
        /// Code of the datatype, see [`TermId::fixed_datatype`].
        datatype: u8,
        /// The value.
        value: i64,
    },
    /// An xsd:decimal (code 0) or a literal of a registered datatype that looks like one (codes
    /// from 16).
    Decimal {
        /// Code of the datatype.
        datatype: u8,
        /// The value times 10^6.
        micros: i64,
        /// Digits after the point in the lexical form.
        digits: u8,
    },
    /// An xsd:double.
    Double(f64),
    /// An xsd:float.
    Float(f32),
    /// An xsd:boolean.
    Boolean(bool),
    /// An xsd:date.
    Date {
        /// Days since 0001-01-01.
        days: u32,
        /// `Z`, or no time zone.
        utc: bool,
    },
    /// An xsd:dateTime.
    DateTime {
        /// Milliseconds since 0001-01-01T00:00:00.
        ms: u64,
        /// `Z`, or no time zone.
        utc: bool,
    },
}

/// A string of at most seven bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortString {
    bytes: [u8; 8],
    len: u8,
}

impl ShortString {
    /// Its bytes: UTF-8, if the id came from a term.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The string; empty if the id was made of bytes that are not UTF-8.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

impl TermId {
    /// The value of an inline id; `None` for other kinds, and for payloads that no term has.
    #[inline]
    pub fn inline_value(self) -> Option<InlineValue> {
        let payload = self.payload();
        match self.kind() {
            TermKind::ShortString => short_string(payload),
            TermKind::Integer => Some(InlineValue::Integer(payload as i64 - INTEGER_OFFSET)),
            TermKind::Decimal => decimal(payload),
            TermKind::Double => Some(InlineValue::Double(double_of(payload))),
            TermKind::Float => Some(InlineValue::Float(float_of(u32::try_from(payload).ok()?))),
            TermKind::Boolean => (payload < 2).then_some(InlineValue::Boolean(payload == 1)),
            TermKind::Date => {
                let days = u32::try_from(payload >> 1).ok().filter(|days| *days < DAYS)?;
                Some(InlineValue::Date { days, utc: payload & 1 == 1 })
            }
            TermKind::DateTime => {
                let ms = payload >> 1;
                (ms < u64::from(DAYS) * MS_PER_DAY)
                    .then_some(InlineValue::DateTime { ms, utc: payload & 1 == 1 })
            }
            _ => None,
        }
    }

    /// The datatype IRI of an inline id, if the format fixes it; `None` for registered datatypes
    /// (decimal ids from code 16) and for ids that are not inline.
    pub fn fixed_datatype(self) -> Option<&'static str> {
        match self.kind() {
            TermKind::ShortString => Some(XSD_STRING),
            TermKind::Integer => Some("http://www.w3.org/2001/XMLSchema#integer"),
            TermKind::Decimal => fixed_decimal_datatype(self.decimal_code()),
            TermKind::Double => Some("http://www.w3.org/2001/XMLSchema#double"),
            TermKind::Float => Some("http://www.w3.org/2001/XMLSchema#float"),
            TermKind::Boolean => Some("http://www.w3.org/2001/XMLSchema#boolean"),
            TermKind::Date => Some("http://www.w3.org/2001/XMLSchema#date"),
            TermKind::DateTime => Some("http://www.w3.org/2001/XMLSchema#dateTime"),
            _ => None,
        }
    }

    /// The datatype code of a decimal-like id.
    #[inline]
    pub const fn decimal_code(self) -> u8 {
        (self.payload() >> BODY_BITS) as u8
    }
}

fn fixed_decimal_datatype(code: u8) -> Option<&'static str> {
    match code {
        DECIMAL => Some("http://www.w3.org/2001/XMLSchema#decimal"),
        _ => DERIVED.get(usize::from(code) - 1).map(|derived| derived.iri),
    }
}

fn short_string(payload: u64) -> Option<InlineValue> {
    let len = (payload & 0xF) as usize;
    let bytes = ((payload & !0xF) << 4).to_be_bytes();
    let valid = len <= SHORT_STRING_BYTES && bytes[len..].iter().all(|&byte| byte == 0);
    valid.then_some(InlineValue::String(ShortString { bytes, len: len as u8 }))
}

fn decimal(payload: u64) -> Option<InlineValue> {
    let datatype = (payload >> BODY_BITS) as u8;
    let body = payload & ((1 << BODY_BITS) - 1);
    if datatype == DECIMAL || datatype >= FIRST_REGISTERED {
        let digits = (body & ((1 << DIGIT_BITS) - 1)) as u8;
        let micros = (body >> DIGIT_BITS) as i64 - DECIMAL_OFFSET;
        return (usize::from(digits) <= MAX_DIGITS).then_some(InlineValue::Decimal {
            datatype,
            micros,
            digits,
        });
    }
    let value = body as i64 - DERIVED_OFFSET;
    (usize::from(datatype) <= DERIVED.len()).then_some(InlineValue::Derived { datatype, value })
}

pub(crate) fn double_of(payload: u64) -> f64 {
    let ordered = payload << 4;
    f64::from_bits(if ordered >> 63 == 1 { ordered ^ 1 << 63 } else { !(ordered | 0xF) })
}

pub(crate) fn float_of(ordered: u32) -> f32 {
    f32::from_bits(if ordered >> 31 == 1 { ordered ^ 1 << 31 } else { !ordered })
}

/// A buffer on the stack for the lexical form of one inline id.
#[derive(Clone)]
pub struct Lexical {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Default for Lexical {
    fn default() -> Self {
        Self::new()
    }
}

impl Lexical {
    /// Longest lexical form: a double of 17 digits (24 bytes), a dateTime (24).
    const MAX: usize = 32;

    /// An empty buffer.
    pub const fn new() -> Self {
        Lexical { bytes: [0; Self::MAX], len: 0 }
    }

    /// Writes the lexical form of `id`; `None` if it is not inline, or is the id of no term.
    #[inline]
    pub fn write(&mut self, id: TermId) -> Option<&str> {
        self.len = 0;
        match id.inline_value()? {
            InlineValue::String(string) => self.bytes(string.bytes()),
            InlineValue::Integer(value) | InlineValue::Derived { value, .. } => {
                self.integer(value.unsigned_abs(), value < 0);
            }
            InlineValue::Decimal { micros, digits, .. } => self.decimal(micros, usize::from(digits)),
            InlineValue::Double(value) => {
                self.real(value, f64::is_nan(value), f64::is_infinite(value), value < 0.0)
            }
            InlineValue::Float(value) => {
                self.real(value, f32::is_nan(value), f32::is_infinite(value), value < 0.0)
            }
            InlineValue::Boolean(value) => self.bytes(if value { b"true" } else { b"false" }),
            InlineValue::Date { days, utc } => self.date(days, utc),
            InlineValue::DateTime { ms, utc } => self.date_time(ms, utc),
        }
        std::str::from_utf8(&self.bytes[..self.len]).ok()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn integer(&mut self, mut magnitude: u64, negative: bool) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (magnitude % 10) as u8;
            magnitude /= 10;
            if magnitude == 0 {
                break;
            }
        }
        if negative {
            self.byte(b'-');
        }
        self.bytes(&digits[at..]);
    }

    /// Writes `value` with leading zeros, `len` digits long.
    fn padded(&mut self, mut value: u32, len: usize) {
        for place in (self.len..self.len + len).rev() {
            self.bytes[place] = b'0' + (value % 10) as u8;
            value /= 10;
        }
        self.len += len;
    }

    fn decimal(&mut self, micros: i64, digits: usize) {
        let magnitude = micros.unsigned_abs();
        self.integer(magnitude / SCALE as u64, micros < 0);
        if digits > 0 {
            let fraction = (magnitude % SCALE as u64) as u32;
            self.byte(b'.');
            self.padded(fraction / 10u32.pow((MAX_DIGITS - digits) as u32), digits);
        }
    }

    fn date(&mut self, days: u32, utc: bool) {
        let (year, month, day) = date_of(days);
        self.padded(year, 4);
        self.byte(b'-');
        self.padded(month, 2);
        self.byte(b'-');
        self.padded(day, 2);
        if utc {
            self.byte(b'Z');
        }
    }

    fn date_time(&mut self, ms: u64, utc: bool) {
        self.date((ms / MS_PER_DAY) as u32, false);
        let of_day = (ms % MS_PER_DAY) as u32;
        let seconds = of_day / 1000;
        for (separator, part) in [(b'T', seconds / 3600), (b':', seconds / 60 % 60), (b':', seconds % 60)] {
            self.byte(separator);
            self.padded(part, 2);
        }
        match of_day % 1000 {
            0 => {}
            fraction => {
                self.byte(b'.');
                self.padded(fraction, 3);
                while self.bytes[self.len - 1] == b'0' {
                    self.len -= 1;
                }
            }
        }
        if utc {
            self.byte(b'Z');
        }
    }

    /// Writes the canonical form of XML Schema 1.0: one digit, a point, at least one digit, `E`,
    /// the exponent.
    fn real(&mut self, value: impl fmt::UpperExp, nan: bool, infinite: bool, negative: bool) {
        if nan {
            return self.bytes(b"NaN");
        }
        if infinite {
            return self.bytes(if negative { b"-INF" } else { b"INF" });
        }
        write!(self, "{value:E}").expect("the shortest digits of a double fit");
        let written = &self.bytes[..self.len];
        if !written.contains(&b'.') {
            let exponent = written.iter().position(|&byte| byte == b'E').expect("{:E} writes an E");
            self.bytes.copy_within(exponent..self.len, exponent + 2);
            self.bytes[exponent..exponent + 2].copy_from_slice(b".0");
            self.len += 2;
        }
    }
}

impl fmt::Write for Lexical {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.bytes.len() - self.len {
            return Err(fmt::Error);
        }
        self.bytes(text.as_bytes());
        Ok(())
    }
}
