//! Blocks that can be told apart: each says where it belongs and which run wrote it (fio:
//! `verify`).
//!
//! | bytes    | content                                                                     |
//! |----------|-----------------------------------------------------------------------------|
//! | 0 .. 8   | magic number                                                                |
//! | 8 .. 16  | offset in the file, in bytes                                                |
//! | 16 .. 24 | seed of the run                                                             |
//! | 24 .. 32 | checksum of all other bytes                                                 |
//! | 32 ..    | bytes that follow from seed and offset, and that no device could compress   |
//!
//! All numbers are little-endian. The content follows from seed and offset alone. So a place that
//! was written twice has one right content, and nothing need be kept to compare with.

use std::fmt;

use snowmelt_base::random::{GOLDEN, mix, xorshift};

const MAGIC: u64 = u64::from_le_bytes(*b"melt-fio");

/// Shortest block that has a header and something behind it.
pub const LEAST_STAMPED: u64 = 64;

const HEADER: usize = 32;

/// A block that is not what was written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampFault {
    /// Offset of the block.
    pub block: u64,
    /// Offset of its first wrong byte.
    pub at: u64,
    /// That byte as it should be, and as it is.
    pub bytes: (u8, u8),
    /// The content found in its place.
    pub instead: FoundInstead,
}

/// The content found instead of the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundInstead {
    /// A whole block that was written for another offset: a write went astray.
    Misplaced(u64),
    /// The block that an earlier run wrote here: this run's write was lost.
    Older(u64),
    /// Nothing that was ever stamped.
    Unstamped,
    /// A stamped block with other bytes in it: it was changed, or written in part.
    Changed,
}

impl fmt::Display for StampFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StampFault { block, at, bytes: (right, is), .. } = self;
        write!(
            f,
            "the block at offset {block} is not what was written: byte {at} is {is:#04x} instead of {right:#04x}; "
        )?;
        match self.instead {
            FoundInstead::Misplaced(offset) => write!(f, "it is the block of offset {offset}"),
            FoundInstead::Older(seed) => write!(f, "it is of an earlier run (seed {seed})"),
            FoundInstead::Unstamped => f.write_str("it has no header"),
            FoundInstead::Changed => f.write_str("its checksum is wrong"),
        }
    }
}

/// Fills `block` with what belongs at `offset`.
pub fn stamp(block: &mut [u8], offset: u64, seed: u64) {
    assert!(block.len() as u64 >= LEAST_STAMPED, "a stamped block has room for its header");
    let (header, rest) = block.split_at_mut(HEADER);
    let mut state = mix(seed ^ offset.wrapping_mul(GOLDEN)) | 1;
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&xorshift(&mut state).to_le_bytes()[..chunk.len()]);
    }
    for (place, word) in header.chunks_exact_mut(8).zip([MAGIC, offset, seed, 0]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let sum = checksum(block);
    block[24..HEADER].copy_from_slice(&sum.to_le_bytes());
}

/// Compares what was read at `offset` with what belongs there.
///
/// # Errors
/// The first byte that differs, and what the block is instead.
pub fn check_stamp(read: &[u8], offset: u64, seed: u64) -> Result<(), StampFault> {
    let mut right = vec![0; read.len()];
    stamp(&mut right, offset, seed);
    let Some(first) = right.iter().zip(read).position(|(right, is)| right != is) else { return Ok(()) };
    let word = |i: usize| u64::from_le_bytes(read[i * 8..][..8].try_into().expect("eight bytes"));
    let instead = match () {
        () if word(0) != MAGIC => FoundInstead::Unstamped,
        () if word(3) != checksum(read) => FoundInstead::Changed,
        () if word(1) != offset => FoundInstead::Misplaced(word(1)),
        () => FoundInstead::Older(word(2)),
    };
    let bytes = (right[first], read[first]);
    Err(StampFault { block: offset, at: offset + first as u64, bytes, instead })
}

/// Of all bytes but the checksum's own.
fn checksum(block: &[u8]) -> u64 {
    let of = |sum: u64, bytes: &[u8]| {
        bytes.chunks(8).fold(sum, |sum, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(sum ^ u64::from_le_bytes(word)).wrapping_add(GOLDEN)
        })
    };
    of(of(block.len() as u64, &block[..24]), &block[HEADER..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: u64, seed: u64, len: usize) -> Vec<u8> {
        let mut block = vec![0; len];
        stamp(&mut block, offset, seed);
        block
    }

    #[test]
    fn every_changed_byte_is_found_and_named() {
        for len in [64, 100, 512, 4096] {
            let right = block(8192, 7, len);
            assert_eq!(check_stamp(&right, 8192, 7), Ok(()));
            for at in [0, 9, 17, 24, 31, 32, len / 2, len - 1] {
                let mut changed = right.clone();
                changed[at] ^= 0x10;
                let fault = check_stamp(&changed, 8192, 7).unwrap_err();
                assert_eq!((fault.block, fault.at), (8192, 8192 + at as u64), "{len}");
                assert_eq!(fault.bytes, (right[at], right[at] ^ 0x10));
                let wanted = if at < 8 { FoundInstead::Unstamped } else { FoundInstead::Changed };
                assert_eq!(fault.instead, wanted, "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn a_whole_block_of_another_place_or_run_is_told_apart() {
        let fault = check_stamp(&block(4096, 7, 512), 8192, 7).unwrap_err();
        assert_eq!(fault.instead, FoundInstead::Misplaced(4096));
        let fault = check_stamp(&block(8192, 6, 512), 8192, 7).unwrap_err();
        assert_eq!(fault.instead, FoundInstead::Older(6));
        let fault = check_stamp(&[0; 512], 8192, 7).unwrap_err();
        assert_eq!(fault.instead, FoundInstead::Unstamped);
        let said = fault.to_string();
        assert!(said.contains("offset 8192") && said.contains("byte 8192 is 0x00"), "{said}");
    }

    #[test]
    fn half_of_a_write_is_no_block() {
        let (old, new) = (block(0, 1, 4096), block(0, 2, 4096));
        let torn = [&new[..2048], &old[2048..]].concat();
        let fault = check_stamp(&torn, 0, 2).unwrap_err();
        assert_eq!(fault.instead, FoundInstead::Changed);
        assert!((2048..2056).contains(&fault.at), "{fault}");
    }
}
