//! Keys of objects, as numbers of 128 bits: no two of the keys ever used are taken to be equal.

use twox_hash::XxHash3_128;

/// XXH3-128 of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct KeyHash(pub u128);

impl KeyHash {
    pub fn of(key: &str) -> KeyHash {
        KeyHash(XxHash3_128::oneshot(key.as_bytes()))
    }
}
