//! Varints as the journal and the catalog write them: LEB128, signed values zigzag.

use crate::format::encoding::{Bad, Decode};

/// Appends a varint.
pub fn put(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Takes a varint from the front.
pub fn take(bytes: &mut &[u8]) -> Decode<u64> {
    let mut v = 0u64;
    for i in 0..10 {
        let (byte, rest) = bytes.split_first().ok_or(Bad("a number ends too early"))?;
        *bytes = rest;
        v |= u64::from(byte & 0x7F) << (7 * i);
        if byte & 0x80 == 0 {
            return Ok(v);
        }
    }
    Err(Bad("a number is too long"))
}

pub(crate) fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

pub(crate) fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}
