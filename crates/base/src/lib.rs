//! Small things that several crates need, each once.
//!
//! | module       | holds                                                             |
//! |--------------|-------------------------------------------------------------------|
//! | `size`       | bytes and counts as text, and bytes from text                     |
//! | `text_table` | tables of text                                                    |
//! | `random`     | seeded generators whose sequences never change                    |
//! | `signals`    | Ctrl-C and SIGTERM as a flag, and a thread that hears of signals  |
//! | `printable`  | text of others, fit for a terminal                                |
//! | `output`     | standard output and error, whose failures are no panics           |
//! | `seed`       | the seed of random tests                                          |
//! | `interrupt`  | how long work is asked to end                                     |
//! | `varint`     | whole numbers in few bytes                                        |
//! | `iri`        | what a relative IRI means, what Turtle takes for an IRI           |
//! | `prefixes`   | well-known prefixes of IRIs                                       |
//! | `service_depth` | how deep requests of servers lie within each other             |
//!
//! Nothing here knows of devices, stores or queries.

mod interrupt;
pub mod iri;
pub mod output;
pub mod prefixes;
pub mod printable;
pub mod random;
mod seed;
pub mod service_depth;
pub mod signals;
pub mod size;
pub mod text_table;
pub mod varint;

pub use interrupt::Interrupt;
pub use seed::test_seed;
