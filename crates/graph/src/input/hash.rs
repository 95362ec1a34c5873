//! Hashes of terms.

/// Hash of a term, which identifies it until it has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TermHash {
    /// The first 64 bits.
    pub(crate) high: u64,
    /// 24 more bits.
    pub(crate) low: u32,
}

impl TermHash {
    /// From a 128-bit hash.
    pub(crate) fn new(hash: u128) -> TermHash {
        TermHash { high: (hash >> 64) as u64, low: (hash as u32) >> (32 - 24) }
    }
}
