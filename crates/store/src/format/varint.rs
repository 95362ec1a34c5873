//! Varints as the journal and the catalog read them.

use snowmelt_base::varint;
pub(crate) use snowmelt_base::varint::{put, unzigzag, zigzag};

use crate::format::encoding::{Bad, Decode};

/// Takes a varint from the front.
pub fn take(bytes: &mut &[u8]) -> Decode<u64> {
    varint::take::<10>(bytes).map_err(|why| Bad(why.why()))
}
