//! The version of the file format.

/// Version of the file format this program writes.
pub const FORMAT: u32 = 5;
/// The oldest version it reads; the first checkpoint writes the present one.
pub const OLDEST_FORMAT: u32 = 3;
