//! Services for every query engine on the store, whatever its language. A bound is checked before
//! or during the work, never after it.
//!
//! | module        | holds                                                                     |
//! |---------------|---------------------------------------------------------------------------|
//! | `limits`      | time, cancellation, rows                                                  |
//! | `exceeded`    | the bound that a query exceeded                                           |
//! | `memory`      | a query's share of the memory budget, and the line of waiting queries     |
//! | `memory_wait` | a wait for memory, shown and metered                                      |
//! | `stack`       | stack space for deep recursion                                            |
//! | `active`      | the number of running queries                                             |
//! | `channel`     | messages from the threads of a query to the thread that forked them       |
//! | `spill`       | blocks spilled to temporary space                                         |
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

pub use active::{Active, Resting};
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
