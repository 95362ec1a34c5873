//! Database engines as the laboratory sees them: programs that are installed or not, and that are
//! made ready, loaded, started, asked, stopped and crashed by commands.
//!
//! The commands of an engine are data: an *adapter*, a TOML file in `adapters/`. Code here knows
//! no engine by name.
//!
//! 1. `adapter`: the file, checked when it is read: keys, placeholders, files it needs.
//! 2. `values`: placeholders and their values: folder, port, memory, ….
//! 3. `process`: a program under way, with its log. A killed command leaves none running.
//! 4. `ready`: when a server is ready: a port, an address, or a command that succeeds.
//! 5. `engine`: an adapter in a folder: installed? create, load, start, commands.
//! 6. `server`: a started engine: stop and crash.
//! 7. `session`: a process that asks a started engine statements, one after the other.
//! 8. `cold`: the files of a stopped engine thrown out of the page cache, and the proof.

#![forbid(unsafe_code)]

pub mod adapter;
pub mod cold;
mod engine;
mod error;
mod process;
mod ready;
mod server;
mod session;
mod values;

pub use adapter::{Adapter, Language};
pub use engine::{Engine, Found, Settings, Work};
pub use error::EngineError;
pub use process::find_program;
pub use server::Server;
pub use session::{Asked, Session};
pub use values::Values;
