//! Memory for transfers: mappings, aligned buffers, and limits of the heap.

pub(crate) mod buffer;
pub(crate) mod heap;
pub(crate) mod mapping;
