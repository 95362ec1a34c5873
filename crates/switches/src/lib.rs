//! Switches that commands of both programs share, how they are shown, and where else they can be
//! set.
//!
//! | module   | what it is                                                            |
//! |----------|-----------------------------------------------------------------------|
//! | `device` | which device: real or simulated                                       |
//! | `io`     | engine, queue, read-ahead                                             |
//! | `create` | what a new database shall be                                          |
//! | `meters` | what was read, and each wait for it                                   |
//! | `texts`  | limits on the texts of queries and updates                            |
//! | `service` | endpoints that SERVICE may ask                                      |
//! | `topics` | `--help io`, `--help limits`: switches that `--help` alone leaves out |
//! | `names`  | the switches of both programs by name, for a file that sets them      |
//! | `file`   | `--config FILE`: switches from a file                                 |
//! | `published` | addresses of published databases                                  |
//! | `open`   | memory, journal and I/O of every command that opens a database        |
//! | `advice` | errors with the switch that changes a limit                           |
//! | `program` | reads a command line, says why a command failed                     |

#![forbid(unsafe_code)]

pub mod advice;
pub mod create;
pub mod device;
pub mod file;
pub mod io;
pub mod meters;
pub mod names;
pub mod open;
pub mod program;
pub mod published;
pub mod service;
pub mod texts;
pub mod topics;
