//! Varints as the journal and the catalog read them.

use snowmelt_base::varint::{self, NoVarint};
pub(crate) use snowmelt_base::varint::{put, unzigzag, zigzag};

use crate::format::encoding::{Bad, Decode};

/// Takes a varint from the front.
pub fn take(bytes: &mut &[u8]) -> Decode<u64> {
    varint::take(bytes).map_err(|why| match why {
        NoVarint::Cut => Bad("a number ends too early"),
        NoVarint::TooLong => Bad("a number is too long"),
    })
}
