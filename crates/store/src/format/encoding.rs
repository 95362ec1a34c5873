//! Shared parts of all page-body encodings: the error of a body that does not decode, and checked
//! loads.
//!
//! A page that reached us passed its checksum, so a body that does not decode is a bug or a
//! forgery; it is still input, so every decoder checks the bounds of what it reads and answers
//! [`Bad`], never a panic. The tree code turns `Bad` into `StoreError::Damaged` with file,
//! offset and page.
//!
//! All integers in bodies are little endian; `uN` fields need no alignment.

pub(crate) mod bits;
pub(crate) mod column;
pub(crate) mod dict;
pub(crate) mod table;

pub(crate) use snowmelt_base::varint::put as store_varint;
use snowmelt_base::varint::{self, NoVarint};

/// A page body that contradicts the format, with what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad(pub &'static str);

/// Result of decoding a page body.
pub(crate) type Decode<T> = Result<T, Bad>;

/// Bytes of the page header; the body follows.
pub(crate) const BODY: usize = 32;

/// Loads `width` (0 to 8) bytes at `at` as an integer.
#[inline(always)]
pub(crate) fn load(bytes: &[u8], at: usize, width: usize) -> Decode<u64> {
    if let Some(word) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        return Ok(if width >= 8 { word } else { word & ((1u64 << (8 * width)) - 1) });
    }
    load_at_end(bytes, at, width)
}

/// The last bytes of a page: no eight bytes to load at once.
#[cold]
fn load_at_end(bytes: &[u8], at: usize, width: usize) -> Decode<u64> {
    let part = bytes.get(at..at + width).ok_or(Bad("a field lies outside the page"))?;
    let mut word = [0u8; 8];
    word[..part.len()].copy_from_slice(part);
    Ok(u64::from_le_bytes(word))
}

/// Appends the `width` low bytes of `value`.
#[inline]
pub(crate) fn store(out: &mut Vec<u8>, value: u64, width: usize) {
    debug_assert!(byte_width(value) <= width, "a value fits its width");
    out.extend_from_slice(&value.to_le_bytes()[..width]);
}

/// Bytes that hold `value`: 0 for 0, up to 8.
#[inline]
pub(crate) fn byte_width(value: u64) -> usize {
    bits(value).div_ceil(8) as usize
}

/// Bits that hold `value`: 0 for 0, up to 64.
#[inline]
pub(crate) fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// One byte.
#[inline]
pub(crate) fn load_u8(bytes: &[u8], at: usize) -> Decode<usize> {
    bytes.get(at).map(|&b| b as usize).ok_or(Bad("a field lies outside the page"))
}

/// A two-byte field.
#[inline]
pub(crate) fn load_u16(bytes: &[u8], at: usize) -> Decode<usize> {
    load(bytes, at, 2).map(|v| v as usize)
}

/// The part `at .. at + len`, if it lies inside.
#[inline]
pub(crate) fn part(bytes: &[u8], at: usize, len: usize) -> Decode<&[u8]> {
    bytes.get(at..).and_then(|b| b.get(..len)).ok_or(Bad("a field lies outside the page"))
}

/// First position of `from .. to` for which `below` does not hold, or `to`; it holds for none
/// behind that one.
#[inline]
pub(crate) fn partition(
    from: usize,
    to: usize,
    mut below: impl FnMut(usize) -> Decode<bool>,
) -> Decode<usize> {
    let (mut lo, mut hi) = (from, to);
    while lo < hi {
        let middle = (lo + hi) / 2;
        if below(middle)? {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    Ok(lo)
}

/// Reads a varint at `*at` and moves `*at` behind it.
#[inline]
pub(crate) fn load_varint(bytes: &[u8], at: &mut usize) -> Decode<u64> {
    let mut rest = bytes.get(*at..).ok_or(Bad("an integer lies outside the page"))?;
    let value = varint::take::<10>(&mut rest).map_err(|no| match no {
        NoVarint::Cut => Bad("an integer lies outside the page"),
        NoVarint::TooLong => Bad("an integer of more than 64 bits"),
    })?;
    *at = bytes.len() - rest.len();
    Ok(value)
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Loads the cache lines of `page[from..to]` at once. A probe would otherwise miss them one
/// after the other, each miss waiting for the one before.
#[inline]
pub(crate) fn touch(page: &[u8], from: usize, to: usize) {
    let mut all = 0;
    for line in page.get(from..to.min(page.len())).unwrap_or_default().iter().step_by(LINE) {
        all |= line;
    }
    std::hint::black_box(all);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_round_trip(values in prop::collection::vec(any::<u64>().prop_flat_map(|v| (0u32..64).prop_map(move |s| v >> s)), 1..50)) {
            let mut out = Vec::new();
            values.iter().for_each(|&v| store_varint(&mut out, v));
            let mut at = 0;
            for &v in &values {
                prop_assert_eq!(load_varint(&out, &mut at), Ok(v));
            }
            prop_assert_eq!(at, out.len());
            prop_assert!(load_varint(&out, &mut at).is_err());
        }

        #[test]
        fn loads_agree_with_stores(value: u64, before in 0usize..20) {
            let width = byte_width(value);
            let mut out = vec![0xAA; before];
            store(&mut out, value, width);
            prop_assert_eq!(load(&out, before, width), Ok(value));
            prop_assert!(load(&out, before + 1, width.max(1)).is_err());
            out.extend([0xBB; 8]);
            prop_assert_eq!(load(&out, before, width), Ok(value));
        }
    }

    #[test]
    fn an_overlong_varint_is_refused() {
        assert!(load_varint(&[0xff; 11], &mut 0).is_err());
        assert!(load_varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], &mut 0).is_err());
    }
}
