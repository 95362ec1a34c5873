//! The needs of every query engine on the store, whatever its language. Bounds are asked before or
//! while a query works, never after.
//!
//! | module        | holds                                                                     |
//! |---------------|---------------------------------------------------------------------------|
//! | `limits`      | time, cancellation, rows                                                  |
//! | `exceeded`    | the bound that a query came up against                                    |
//! | `memory`      | a query's share of the memory budget, and the line of those that wait     |
//! | `memory_wait` | such a wait, shown and metered                                            |
//! | `stack`       | stacks as large as a query is deep                                        |
//! | `active`      | how many queries are under way                                            |
//! | `channel`     | from the threads of a query to the one that forked them, in any clock's time |
//! | `spill`       | blocks put aside in temporary space                                       |
//!
//! Nothing here knows a language, a term or a row.

mod active;
mod channel;
mod exceeded;
mod limits;
mod memory;
mod memory_wait;
mod spill;
mod stack;

pub use active::Active;
pub use channel::{Receiver, Sender, channel};
pub use exceeded::Exceeded;
#[cfg(feature = "scarcity")]
pub use limits::looks;
pub use limits::{QueryLimits, Stop};
pub use memory::{Held, Line, MemoryShare, Shares, TextKind, TextMemory, TextRoom, text_bytes};
pub use memory_wait::MemoryWait;
pub use spill::{Block, BlockReader, BlockWriter, SpillError, SpillSpace};
#[cfg(feature = "scarcity")]
pub use stack::scarcity;
pub use stack::{Deep, with_room};
