//! Errors of queries and updates.
//!
//! Everything that comes from the query's text, its limits or the store is a value of
//! [`QueryError`]; a panic would be a bug. Errors name limits and values; the switches that change
//! them, and other advice, are added by the command line and the server.

use std::time::Duration;

use snowmelt_syntax::{ErrorCode, LimitReached, SyntaxError};

use crate::remote::{RemoteFault, RemoteFaultKind};

/// Why a query gave no (whole) answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is not SPARQL. Line and column count from 1; 0 when the place is unknown.
    #[error("line {line}, column {column}: {message}")]
    Parse {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The fault, and the words that could stand there.
        message: String,
        /// More about it: the text around the place, and further faults.
        syntax: Option<Box<SyntaxError>>,
    },
    /// A query where an update is expected, or the other way round.
    #[error("line {line}, column {column}: this is {}", found.told())]
    WrongLanguage {
        /// The language of the text.
        found: SparqlLanguage,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// SPARQL, but not (yet) ours.
    #[error("line {line}, column {column}: {construct} is not supported")]
    Unsupported {
        /// The construct, as SPARQL writes it.
        construct: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// The text goes beyond a limit on depth, length in a row, or number: see
    /// [`TextLimits`](crate::TextLimits).
    #[error("line {line}, column {column}: the text goes beyond {limit} = {most} here")]
    TooLarge {
        /// The limit's name.
        limit: &'static str,
        /// Its value.
        most: u64,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// An operation that is too long, of an update that is read as a stream.
    #[error(
        "line {line}, column {column}: an operation of more than {most} bytes; only the data of INSERT DATA and DELETE DATA may be longer"
    )]
    OperationTooLong {
        /// The limit.
        most: usize,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// The source of a text cannot be read.
    #[error("the text cannot be read: {0}")]
    Read(#[source] std::io::Error),
    /// A parameter that the text cannot take.
    #[error("the parameter ?{name}: {why}")]
    Parameter {
        /// Its name.
        name: String,
        /// Why it cannot be one.
        why: &'static str,
    },
    /// The time limit was reached.
    #[error("the query was stopped after its time limit of {0:?}")]
    Timeout(Duration),
    /// The memory share was exceeded although what can spill had spilled.
    #[error("the query needs more than its limit of {share_bytes} bytes of memory ({what})")]
    Memory {
        /// The share, in bytes.
        share_bytes: usize,
        /// The operator that asked last.
        what: &'static str,
    },
    /// A text that takes more memory than it can ever have here.
    #[error(
        "a text of {text_bytes} bytes takes {needed_bytes} bytes of memory, and there are at most {most_bytes} for it"
    )]
    TextMemory {
        /// Size of the text.
        text_bytes: usize,
        /// Memory that its trees and plan take.
        needed_bytes: usize,
        /// Memory that they can have.
        most_bytes: usize,
    },
    /// Too many others run: what a query needs at least was not free in time.
    #[error(
        "busy: after {waited:?} only {free_bytes} of the {total_bytes} bytes of memory are free, and a query needs {least_bytes}"
    )]
    Busy {
        /// How long it waited.
        waited: Duration,
        /// Bytes a query needs to begin.
        least_bytes: usize,
        /// Bytes that are free.
        free_bytes: u64,
        /// The whole budget.
        total_bytes: u64,
    },
    /// A term that would be longer than any may be.
    #[error("a term of {bytes} bytes would be longer than the longest allowed, {most} bytes")]
    TermTooLong {
        /// Its bytes, or as many as it had when it was given up.
        bytes: u64,
        /// The limit.
        most: usize,
    },
    /// A text and a pattern that are too large together for a search that cannot be interrupted.
    #[error(
        "REGEX or REPLACE of a text of {text_bytes} bytes with a pattern that compiles to {pattern_bytes} bytes could take too long, which has a limit: make one of them smaller"
    )]
    Search {
        /// Size of the text.
        text_bytes: usize,
        /// Size of the compiled pattern, rounded up.
        pattern_bytes: usize,
    },
    /// A group of more solutions than can be counted.
    #[error("a group has more than 2^63 solutions, which cannot be counted: count parts of it")]
    Count,
    /// The texts of a batch do not fit into memory together, and it could not be done in parts.
    #[error("the texts of a batch take more memory than the limit of the query")]
    TooMuch,
    /// The row limit was reached.
    #[error("the query gave more than {0} rows, its limit")]
    Rows(u64),
    /// The caller cancelled it.
    #[error("the query was cancelled")]
    Cancelled,
    /// It would show or change graphs outside its view.
    #[error("{what} is not allowed to a user of some graphs alone")]
    Forbidden {
        /// The thing.
        what: String,
    },
    /// LOAD named a source that it may not read.
    #[error("LOAD <{source_iri}> is not allowed: {why}")]
    LoadRefused {
        /// The IRI.
        source_iri: String,
        /// The reason.
        why: LoadRefusal,
    },
    /// An endpoint elsewhere gave no answer.
    #[error("SERVICE <{endpoint}>: {fault}")]
    Service {
        /// Its address.
        endpoint: String,
        /// The reason.
        fault: RemoteFault,
    },
    /// The endpoint of a SERVICE is a variable without an address.
    #[error("SERVICE ?{variable}: {why}")]
    ServiceName {
        /// Its name.
        variable: String,
        /// The reason.
        why: &'static str,
    },
    /// A document elsewhere could not be had.
    #[error("LOAD <{source_iri}>: {fault}")]
    LoadFailed {
        /// The IRI.
        source_iri: String,
        /// The reason.
        fault: RemoteFault,
    },
    /// A document that was to be inserted.
    #[error(transparent)]
    Load(#[from] snowmelt_graph::load::LoadError),
    /// CREATE of a graph that is there.
    #[error("CREATE: the graph <{0}> exists; CREATE SILENT passes over it")]
    GraphExists(String),
    /// The request and its text both name the dataset of WHERE.
    #[error("the update has USING or WITH of its own, and its request names a dataset, too")]
    UsingTwice,
    /// A literal to be inserted has a datatype of tagged texts, and no language tag.
    #[error("a literal without a language tag is no {datatype}: it cannot be inserted")]
    Untagged {
        /// rdf:langString or rdf:dirLangString.
        datatype: &'static str,
    },
    /// Rows that a sort, group, distinct or join had put aside came back wrong.
    #[error("what the query had put aside on the device came back wrong: {what}; check the device")]
    Spill {
        /// The fault.
        what: String,
    },
    /// A term of the result that its format has no notation for.
    #[error("{term} cannot be written as {format}: {why}; ask for {instead}")]
    Unwritable {
        /// The term as in N-Triples, long texts of it cut.
        term: String,
        /// The format's name.
        format: &'static str,
        /// Whether it is newer than the version of RDF that was asked for, or that the format has:
        /// another one may do.
        is_newer: bool,
        /// Why.
        why: &'static str,
        /// Formats that can.
        instead: &'static str,
    },
    /// Writing the result failed (the reader went away, the disk is full).
    #[error("writing the result: {0}")]
    Write(#[from] std::io::Error),
    /// The store, the dictionary or an index: damage, I/O.
    #[error(transparent)]
    Store(#[from] snowmelt_graph::GraphError),
}

/// Languages of SPARQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SparqlLanguage {
    /// SELECT, ASK, CONSTRUCT or DESCRIBE.
    Query,
    /// Operations that change data.
    Update,
}

impl SparqlLanguage {
    fn told(self) -> &'static str {
        match self {
            Self::Query => "a query, not an update",
            Self::Update => "an update, not a query",
        }
    }
}

/// Why a source may not be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadRefusal {
    /// No folder is allowed.
    #[error("nothing may be loaded from")]
    NoFolder,
    /// The IRI is not that of a file here.
    #[error("only files of this machine can be loaded")]
    NotAFile,
    /// The file, if it exists, is in none of the allowed folders.
    #[error("it is in no folder that may be loaded from")]
    OtherFolder,
}

impl QueryError {
    /// Whether a limit on time, rows or memory ended it: with more of that, or at another time,
    /// it may succeed.
    pub fn is_of_limits(&self) -> bool {
        matches!(
            self,
            Self::Timeout(_)
                | Self::Memory { .. }
                | Self::TooMuch
                | Self::Busy { .. }
                | Self::Rows(_)
                | Self::Cancelled
        ) || matches!(self, Self::Store(error) if error.is_of_memory())
    }

    /// The reason of an endpoint, where it is one.
    pub fn remote_fault(&self) -> Option<RemoteFaultKind> {
        match self {
            Self::Service { fault, .. } | Self::LoadFailed { fault, .. } => Some(fault.kind),
            _ => None,
        }
    }

    /// The error of a text in one of the languages.
    pub(crate) fn of_syntax(error: Box<SyntaxError>, wanted: SparqlLanguage) -> Self {
        let SyntaxError { line, column, code, limit, .. } = *error;
        match (code, limit) {
            (ErrorCode::Limit, Some(LimitReached { name: "operation_bytes", most })) => {
                Self::OperationTooLong { most: most as usize, line, column }
            }
            (ErrorCode::Limit, Some(limit)) => {
                Self::TooLarge { limit: limit.name, most: limit.most, line, column }
            }
            (ErrorCode::WrongLanguage, _) => {
                let found = match wanted {
                    SparqlLanguage::Query => SparqlLanguage::Update,
                    SparqlLanguage::Update => SparqlLanguage::Query,
                };
                Self::WrongLanguage { found, line, column }
            }
            _ => Self::Parse { line, column, message: error.message.clone(), syntax: Some(error) },
        }
    }

    /// The error in `text` alone, where the text that was parsed had `head` before it.
    #[must_use]
    pub fn without_head(mut self, head: &str, text: &str) -> Self {
        if let Self::Parse { syntax: Some(error), .. } = self {
            return Self::of_syntax(error.without_head(head, text), SparqlLanguage::Query);
        }
        let lines = head.matches('\n').count();
        let chars = head.rsplit('\n').next().unwrap_or_default().chars().count();
        if let Self::Parse { line, column, .. }
        | Self::WrongLanguage { line, column, .. }
        | Self::Unsupported { line, column, .. }
        | Self::TooLarge { line, column, .. } = &mut self
            && *line > 0
        {
            (*line, *column) = match *line {
                line if line <= lines => (1, 1),
                line if line == lines + 1 => (1, column.saturating_sub(chars).max(1)),
                line => (line - lines, *column),
            };
        }
        self
    }
}
