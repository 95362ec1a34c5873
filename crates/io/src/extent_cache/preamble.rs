//! The first 64 bytes of both files: of which cache they are, and in which format. This part is the
//! same in all formats, so that another format can be told from damage.
//!
//! | byte | bytes | holds                                                  |
//! |------|-------|--------------------------------------------------------|
//! | 0    | 8     | `SNOWXIDX` for the index, `SNOWXDAT` for the data      |
//! | 8    | 4     | format                                                 |
//! | 12   | 4     | most bytes of an object in a slot                      |
//! | 16   | 16    | number of the cache, random, the same in both files    |
//! | 32   | 24    | zero                                                   |
//! | 56   | 8     | XXH3-64 of bytes 0 to 55                               |
//!
//! All numbers are little-endian.

use twox_hash::XxHash3_64;

/// Length in bytes.
pub(super) const PREAMBLE_BYTES: usize = 64;
/// The format that this program reads and writes.
pub(super) const FORMAT: u32 = 1;
/// First bytes of the index.
pub(super) const OF_INDEX: &[u8; 8] = b"SNOWXIDX";
/// First bytes of the data file.
pub(super) const OF_DATA: &[u8; 8] = b"SNOWXDAT";

/// See the head of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Preamble {
    pub cache: u128,
    pub slot_bytes: u32,
}

/// Why bytes are no preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPreamble {
    /// There are none.
    Absent,
    /// They are not those that were written.
    Damaged,
    /// Another format.
    Format(u32),
}

impl Preamble {
    pub fn encode(&self, magic: &[u8; 8]) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..8].copy_from_slice(magic);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.slot_bytes.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.cache.to_le_bytes());
        let sum = XxHash3_64::oneshot(&bytes[..56]);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the beginning of a file, which may be cut.
    pub fn decode(magic: &[u8; 8], bytes: &[u8]) -> Result<Preamble, NoPreamble> {
        // Zeros are left by a process that was killed while it made the file.
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(NoPreamble::Absent);
        }
        let whole = bytes.len() >= PREAMBLE_BYTES && bytes[..8] == *magic;
        if !whole || number::<8>(bytes, 56) != XxHash3_64::oneshot(&bytes[..56]).to_le_bytes() {
            return Err(NoPreamble::Damaged);
        }
        match u32::from_le_bytes(number(bytes, 8)) {
            FORMAT => Ok(Preamble {
                cache: u128::from_le_bytes(number(bytes, 16)),
                slot_bytes: u32::from_le_bytes(number(bytes, 12)),
            }),
            found => Err(NoPreamble::Format(found)),
        }
    }
}

/// The bytes of a number within longer ones.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preamble_comes_back_and_no_bent_byte_does() {
        let preamble = Preamble { cache: 77 << 90, slot_bytes: 2 << 20 };
        let good = preamble.encode(OF_INDEX);
        assert_eq!(Preamble::decode(OF_INDEX, &good), Ok(preamble));
        assert_eq!(Preamble::decode(OF_DATA, &good), Err(NoPreamble::Damaged));
        assert_eq!(Preamble::decode(OF_DATA, &[]), Err(NoPreamble::Absent));
        for at in 0..good.len() {
            let mut bad = good;
            bad[at] ^= 4;
            assert_eq!(Preamble::decode(OF_INDEX, &bad), Err(NoPreamble::Damaged), "byte {at}");
            let cut = if at == 0 { NoPreamble::Absent } else { NoPreamble::Damaged };
            assert_eq!(Preamble::decode(OF_INDEX, &good[..at]), Err(cut), "cut at {at}");
        }
        let mut later = good;
        later[8] = 9;
        let sum = XxHash3_64::oneshot(&later[..56]);
        later[56..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Preamble::decode(OF_INDEX, &later), Err(NoPreamble::Format(9)));
    }
}
