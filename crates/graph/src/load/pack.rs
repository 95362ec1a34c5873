//! Packed blocks of rows, the storage format of sorted runs and waiting rows.
//!
//! A block holds up to [`BLOCK_ROWS`] rows of N columns of u64:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | rows |
//! | N | bits per value of each column |
//! | 8 N | smallest value of each column |
//! | … | per column: value − smallest, packed, padded to whole bytes |
//! | 8 | zeros, so that a value can be read with one or two 8-byte loads |
//!
//! Sorted rows have narrow columns: a BSBM quad takes 5 to 9 bytes instead of 32.

/// Rows per block.
pub(super) const BLOCK_ROWS: usize = 1024;
const PAD: usize = 8;

/// Appends `rows` (at most [`BLOCK_ROWS`], not empty) as one block.
pub(super) fn pack<const N: usize>(rows: &[[u64; N]], out: &mut Vec<u8>) {
    assert!(!rows.is_empty() && rows.len() <= BLOCK_ROWS);
    let mut min = rows[0];
    let mut max = rows[0];
    for row in &rows[1..] {
        for c in 0..N {
            min[c] = min[c].min(row[c]);
            max[c] = max[c].max(row[c]);
        }
    }
    let widths: [u32; N] = std::array::from_fn(|c| 64 - (max[c] - min[c]).leading_zeros());
    out.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    out.extend(widths.iter().map(|&w| w as u8));
    for m in min {
        out.extend_from_slice(&m.to_le_bytes());
    }
    for c in 0..N {
        pack_column(rows, c, min[c], widths[c], out);
    }
    out.extend_from_slice(&[0; PAD]);
}

fn pack_column<const N: usize>(rows: &[[u64; N]], c: usize, min: u64, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut word = 0u64;
    let mut filled = 0;
    for row in rows {
        let v = row[c] - min;
        word |= v << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            // The bits of `v` that did not fit; none if it ended with the word.
            word = if filled == 0 { 0 } else { v >> (width - filled) };
        }
    }
    let bytes = filled.div_ceil(8) as usize;
    out.extend_from_slice(&word.to_le_bytes()[..bytes]);
}

/// Reads the block at the start of `bytes` into `rows`, replacing its contents; returns the
/// block's length.
///
/// The bytes were written by [`pack`] in this process, so a malformed block is a bug and panics.
pub(super) fn unpack<const N: usize>(bytes: &[u8], rows: &mut Vec<[u64; N]>) -> usize {
    let n = u32::from_le_bytes(bytes[..4].try_into().expect("4 bytes")) as usize;
    let widths = &bytes[4..4 + N];
    let mut min = [0; N];
    for (c, m) in min.iter_mut().enumerate() {
        *m = word_at(bytes, 4 + N + 8 * c);
    }
    let mut at = 4 + 9 * N;
    rows.clear();
    rows.resize(n, min);
    for (c, &width) in widths.iter().enumerate() {
        let width = usize::from(width);
        let packed = &bytes[at..];
        match width {
            0 => {}
            1..=56 => {
                let mask = (1u64 << width) - 1;
                for (i, row) in rows.iter_mut().enumerate() {
                    let bit = i * width;
                    row[c] += (word_at(packed, bit / 8) >> (bit % 8)) & mask;
                }
            }
            _ => {
                let mask = u64::MAX >> (64 - width);
                for (i, row) in rows.iter_mut().enumerate() {
                    let bit = i * width;
                    let low = word_at(packed, bit / 8) >> (bit % 8);
                    let high = u64::from(packed[bit / 8 + 8]);
                    let high = high.checked_shl(64 - (bit % 8) as u32).unwrap_or(0);
                    row[c] += (low | high) & mask;
                }
            }
        }
        at += (n * width).div_ceil(8);
    }
    at + PAD
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip<const N: usize>(rows: &[[u64; N]]) {
        let mut bytes = vec![7; 3];
        pack(rows, &mut bytes);
        let len = bytes.len() - 3;
        bytes.extend_from_slice(b"the next block");
        let mut got = vec![[1; N]; 5];
        assert_eq!(unpack(&bytes[3..], &mut got), len);
        assert_eq!(got, rows);
    }

    #[test]
    fn every_width() {
        for width in 0..=64u32 {
            let top = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            for n in [1, 2, 63, 64, 65, BLOCK_ROWS] {
                let rows: Vec<[u64; 2]> = (0..n as u64)
                    .map(|i| [i.wrapping_mul(0x9E37_79B9_7F4A_7C15) & top, top - (i & top)])
                    .collect();
                round_trip(&rows);
            }
        }
    }

    proptest! {
        #[test]
        fn any_rows(rows in prop::collection::vec(prop::array::uniform4(any::<u64>()), 1..200), shift in 0u32..64) {
            let rows: Vec<[u64; 4]> = rows.iter().map(|r| r.map(|v| v >> shift)).collect();
            round_trip(&rows);
        }
    }
}
