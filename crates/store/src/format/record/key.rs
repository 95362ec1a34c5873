//! Memcomparable keys: tuples as bytes whose order is the order of the tuples.
//!
//! ```text
//! u64     8 bytes, big endian
//! i64     8 bytes, big endian, sign bit flipped
//! f64     8 bytes, big endian; negative: all bits flipped, else the sign bit (so −NaN < −∞ … −0 < 0 … ∞ < NaN)
//! bytes   each 00 as 00 FF; then 00 00
//! ```
//!
//! A part has no tag: the reader of a key knows its columns. Any prefix of the parts is a prefix of
//! the bytes, so prefix scans work.

use crate::format::encoding::{Bad, Decode};

const SIGN: u64 = 1 << 63;

/// Builds a key part by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyWriter(Vec<u8>);

impl KeyWriter {
    /// An empty key.
    pub fn new() -> KeyWriter {
        KeyWriter::default()
    }

    /// Appends an unsigned integer.
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// Appends a signed integer.
    pub fn i64(self, value: i64) -> Self {
        self.u64(value as u64 ^ SIGN)
    }

    /// Appends a float; `total_cmp` order.
    pub fn f64(self, value: f64) -> Self {
        let bits = value.to_bits();
        self.u64(if bits & SIGN != 0 { !bits } else { bits ^ SIGN })
    }

    /// Appends a byte string.
    pub fn bytes(mut self, value: &[u8]) -> Self {
        for &b in value {
            self.0.push(b);
            if b == 0 {
                self.0.push(0xFF);
            }
        }
        self.0.extend([0, 0]);
        self
    }

    /// Appends a string; the order is that of its UTF-8 bytes, which is that of its code points.
    pub fn str(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// The key.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// A key that is not made of the parts it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key does not have the parts it should have: {0}")]
pub struct BadKey(&'static str);

/// Reads a key part by part.
#[derive(Clone, Copy, Debug)]
pub struct KeyReader<'a>(&'a [u8]);

impl<'a> KeyReader<'a> {
    /// Reads `key` from its begin.
    pub fn new(key: &'a [u8]) -> KeyReader<'a> {
        KeyReader(key)
    }

    /// True when all parts were read.
    pub fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads an unsigned integer.
    pub fn u64(&mut self) -> Result<u64, BadKey> {
        let (part, rest) = self.0.split_at_checked(8).ok_or(BadKey("it ends within a number"))?;
        self.0 = rest;
        Ok(u64::from_be_bytes(part.try_into().expect("eight bytes")))
    }

    /// Reads a signed integer.
    pub fn i64(&mut self) -> Result<i64, BadKey> {
        Ok((self.u64()? ^ SIGN) as i64)
    }

    /// Reads a float.
    pub fn f64(&mut self) -> Result<f64, BadKey> {
        let bits = self.u64()?;
        Ok(f64::from_bits(if bits & SIGN != 0 { bits ^ SIGN } else { !bits }))
    }

    /// Reads a byte string.
    pub fn bytes(&mut self) -> Result<Vec<u8>, BadKey> {
        let mut out = Vec::new();
        loop {
            match self.0 {
                [0, 0, rest @ ..] => {
                    self.0 = rest;
                    return Ok(out);
                }
                [0, 0xFF, rest @ ..] => {
                    out.push(0);
                    self.0 = rest;
                }
                [b, rest @ ..] if *b != 0 => {
                    out.push(*b);
                    self.0 = rest;
                }
                _ => return Err(BadKey("it ends within a string")),
            }
        }
    }

    /// Reads a string.
    pub fn str(&mut self) -> Result<String, BadKey> {
        String::from_utf8(self.bytes()?).map_err(|_| BadKey("a string is not UTF-8"))
    }
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The shortest key above `before` and not above `key`.
pub(crate) fn shortest_above<'k>(before: &[u8], key: &'k [u8]) -> &'k [u8] {
    &key[..(common_prefix(before, key) + 1).min(key.len())]
}

/// A stored length that must not pass `most`.
pub(crate) fn bounded(value: u64, most: usize) -> Decode<usize> {
    usize::try_from(value).ok().filter(|&v| v <= most).ok_or(Bad("a length that does not fit its page"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Tuple = (u64, i64, f64, Vec<u8>, String);

    fn tuple() -> impl Strategy<Value = Tuple> {
        let u = prop_oneof![0u64..3, any::<u64>(), Just(u64::MAX)];
        let i = prop_oneof![-2i64..3, any::<i64>(), Just(i64::MIN)];
        let f = prop_oneof![any::<f64>(), Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::NEG_INFINITY)];
        let b = prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xFF)], 0..4);
        (u, i, f, b, "[a-b\0é]{0,3}")
    }

    fn encode(t: &Tuple) -> Vec<u8> {
        KeyWriter::new().u64(t.0).i64(t.1).f64(t.2).bytes(&t.3).str(&t.4).finish()
    }

    proptest! {
        #[test]
        fn bytes_order_as_tuples(a in tuple(), b in tuple(), same in 0usize..5) {
            let mut b = b;
            if same > 0 { b.0 = a.0; }
            if same > 1 { b.1 = a.1; }
            if same > 2 { b.2 = a.2; }
            if same > 3 { b.3 = a.3.clone(); }
            let order = a.0.cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3)).then(a.4.cmp(&b.4));
            prop_assert_eq!(encode(&a).cmp(&encode(&b)), order);
        }

        #[test]
        fn parts_round_trip(t in tuple()) {
            let key = encode(&t);
            let mut r = KeyReader::new(&key);
            prop_assert_eq!((r.u64().unwrap(), r.i64().unwrap(), r.f64().unwrap().to_bits()), (t.0, t.1, t.2.to_bits()));
            prop_assert_eq!((r.bytes().unwrap(), r.str().unwrap()), (t.3, t.4));
            prop_assert!(r.is_done());
        }

        #[test]
        fn any_bytes_read_or_fail(key in prop::collection::vec(any::<u8>(), 0..30)) {
            let mut r = KeyReader::new(&key);
            let _ = (r.bytes(), r.str(), r.f64());
        }

        #[test]
        fn the_shortest_key_separates(a in prop::collection::vec(0u8..3, 0..5), b in prop::collection::vec(0u8..3, 0..5)) {
            prop_assume!(a < b);
            let s = shortest_above(&a, &b);
            prop_assert!(&a[..] < s && s <= &b[..]);
        }
    }
}
