//! Switches that several commands share, how they are shown, and where else they can be set.
//!
//! | module   | what it is                                                            |
//! |----------|-----------------------------------------------------------------------|
//! | `open`   | memory, journal and I/O of every command that opens a database        |
//! | `create` | what a new database shall be                                          |
//! | `io`     | engine, queue, read-ahead                                             |
//! | `device` | which device: real or simulated                                       |
//! | `meters` | what was read, and each wait for it                                   |
//! | `texts`  | limits on the texts of queries and updates                            |
//! | `warm_up` | when a server is warm, for commands that measure that                  |
//! | `topics` | `--help io`, `--help limits`: switches that `--help` alone leaves out |
//! | `file`   | `--config FILE`: switches from a file                                 |

pub mod create;
pub mod device;
pub mod file;
pub mod io;
pub mod meters;
pub mod open;
pub mod texts;
pub mod topics;
pub mod warm_up;
