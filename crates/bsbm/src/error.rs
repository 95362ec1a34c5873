//! Errors from outside: files, word lists, templates.

use std::io;
use std::path::PathBuf;

/// An error of the generator or of a workload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The number of products is 0 or gives more offers than a 31-bit number counts.
    #[error("cannot make {products} products: the number must be between 1 and {most}")]
    Products {
        /// The number asked for.
        products: u32,
        /// The largest number.
        most: u32,
    },
    /// The update set would hold more products than there are.
    #[error("cannot put {transactions} products into update transactions: there are {products}")]
    Transactions {
        /// Update transactions asked for, of one product each.
        transactions: u32,
        /// Products of the data set.
        products: u32,
    },
    /// Update transactions were asked for without a place to write them to, or the other way round.
    #[error("an update set needs both a number of transactions and an output")]
    UpdateOutput,
    /// A word file cannot be read.
    #[error("cannot read the word list {}", path.display())]
    ReadWords {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A word file holds something that is not a word.
    #[error("{} line {line}: {problem}", path.display())]
    Word {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// Its fault.
        problem: &'static str,
    },
    /// Output failed.
    #[error("cannot write the {what} after {bytes} bytes")]
    Write {
        /// "data set" or "update set".
        what: &'static str,
        /// Bytes written to it before.
        bytes: u64,
        /// Why.
        source: io::Error,
    },
    /// The update set cannot be read.
    #[error("cannot read the update set after {transactions} transactions")]
    ReadUpdates {
        /// Transactions read before.
        transactions: usize,
        /// Why.
        source: io::Error,
    },
    /// The update set ends inside a transaction.
    #[error("the update set ends inside transaction {}: its last line must be #__SEP__", transactions + 1)]
    CutUpdates {
        /// Whole transactions before.
        transactions: usize,
    },
    /// No use case has this name.
    #[error("there is no use case {name}: it is explore, bi or explore-and-update")]
    UseCase {
        /// The name asked for.
        name: String,
    },
}
