//! `snowmelt-lab tpch`: queries derived from TPC-H on PostgreSQL, and what the device gets from
//! them. Not comparable to published TPC-H results.
//!
//! 1. `command`, `options`: the command line, checked before anything is made: room, rights, the
//!    engine.
//! 2. `rows`, `schema`: the data, generated as it is loaded; tables, keys, indexes.
//! 3. `database`: a PostgreSQL server by its adapter: started, made cold, asked.
//! 4. `load`: COPY FREEZE in the transaction that made the table, keys, statistics, checkpoint.
//! 5. `queries`, `answers`: the 22 queries, and the digests of their right answers.
//! 6. `measure`: each query cold and warm, each a phase of one watch; Q1 by both of its ways, with
//!    the kernel's read-ahead and without; random reads of the same file beside it.
//! 7. `page`: the report.
//!
//! `scripts`, `queries` and `answers` are for other engines, too.

#![forbid(unsafe_code)]

pub mod answers;
mod command;
mod database;
mod error;
mod load;
mod measure;
mod options;
mod page;
pub mod queries;
mod result;
mod rows;
mod schema;
mod scripts;

pub use command::{TpchArgs, run};
pub use error::TpchError;
pub use measure::measure;
pub use options::TpchOptions;
pub use page::sections;
pub use result::{QueryRun, State, TpchResult, Way};
pub use scripts::{TABLES_COUNTED, write_scripts};
