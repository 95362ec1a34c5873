//! Bounds of a query: time and interruption, memory, stack, and the size of its text.
//!
//! Each is asked before or while the query works, never after: a query that goes beyond one
//! ends with a [`QueryError`](crate::QueryError) that names it.

mod active;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod stack;
pub(crate) mod text_limits;

pub(crate) use active::Active;
pub(crate) use limits::{Limits, Stop};
pub(crate) use memory::{Held, Line, MemoryShare, Shares, TextKind, TextMemory, TextRoom, text_bytes};
pub(crate) use stack::{Deep, with_room};
pub use text_limits::TextLimits;
pub(crate) use text_limits::plan_stack_bytes;
