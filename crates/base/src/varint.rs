//! Varints: LEB128, seven bits a byte, lowest first, the upper bit set in all but the last. Signed
//! values are zigzag.

/// Reason why there is no varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoVarint {
    /// The bytes end within it.
    Cut,
    /// It has more bytes than it may have.
    TooLong,
}

impl NoVarint {
    /// In words.
    pub fn why(self) -> &'static str {
        match self {
            NoVarint::Cut => "a number ends too early",
            NoVarint::TooLong => "a number is too long",
        }
    }
}

/// Appends a varint.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a varint of at most `MOST_BYTES` bytes from the front: 10 hold every value, 5 those below
/// 2³⁵.
///
/// # Errors
/// The bytes do not begin with such a varint.
#[inline]
pub fn take<const MOST_BYTES: usize>(bytes: &mut &[u8]) -> Result<u64, NoVarint> {
    let mut value = 0u64;
    for place in 0..MOST_BYTES {
        let (byte, rest) = bytes.split_first().ok_or(NoVarint::Cut)?;
        *bytes = rest;
        if place == 9 && *byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(NoVarint::TooLong)
}

/// A signed value as one that is short near zero.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The signed value of [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_with_what_follows_them() {
        for value in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, u64::MAX >> bit]) {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert!(bytes.len() <= 10);
            for end in 0..bytes.len() {
                assert_eq!(take::<10>(&mut &bytes[..end]), Err(NoVarint::Cut), "{value} cut at {end}");
            }
            bytes.extend([0xFF, 7]);
            let mut rest = &bytes[..];
            assert_eq!((take::<10>(&mut rest), rest), (Ok(value), &[0xFF, 7][..]));
            let signed = value as i64;
            assert_eq!(unzigzag(zigzag(signed)), signed);
        }
        assert_eq!(take::<10>(&mut &[0x80; 11][..]), Err(NoVarint::TooLong));
        let beyond = [&[0xFF; 9][..], &[2]].concat();
        assert_eq!(take::<10>(&mut &beyond[..]), Err(NoVarint::TooLong), "2⁶⁴ and more");
        assert_eq!(take::<5>(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 1][..]), Err(NoVarint::TooLong));
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
