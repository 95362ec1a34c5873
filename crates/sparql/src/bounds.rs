//! Bounds of a query: what engines of all languages share, from the crate `query`, and the size of
//! a text, which is SPARQL's own.
//!
//! Each is asked before or while the query works, never after: a query that goes beyond one
//! ends with a [`QueryError`](crate::QueryError) that names it.

mod ended;
pub(crate) mod text_limits;

pub(crate) use ended::{document_failed, stopped};
pub(crate) use snowmelt_query::{
    Active, Deep, Held, Line, MemoryShare, MemoryWait, QueryLimits as Limits, Resting, Shares, Stop,
    TextKind, TextMemory, TextRoom, text_bytes, with_room,
};
pub use text_limits::TextLimits;
pub(crate) use text_limits::plan_stack_bytes;
