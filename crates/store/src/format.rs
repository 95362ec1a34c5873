//! The bytes of everything on disk, without any I/O: page bodies, differences between them, the
//! catalog.
//!
//! Decoders get bytes from a disk: they check what they read and answer [`encoding::Bad`], never a
//! panic. The super-block and the records of the journal have their bytes beside their files.

pub mod catalog;
pub(crate) mod cursor;
pub(crate) mod diff;
pub(crate) mod encoding;
pub(crate) mod inner;
pub(crate) mod key;
pub(crate) mod leaf_diff;
pub(crate) mod lineage;
pub(crate) mod placement;
pub(crate) mod string;
pub(crate) mod tuple;
pub(crate) mod varint;
pub(crate) mod version;
pub(crate) mod written_by;
