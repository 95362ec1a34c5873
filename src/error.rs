//! Errors by the way a program can act on them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use snowmelt_graph::GraphError;
use snowmelt_graph::load::LoadError;
use snowmelt_sparql::{QueryError, SparqlLanguage};
use snowmelt_store::StoreError;
use snowmelt_syntax::SyntaxError;
use snowmelt_syntax_help::{Report, likely_cause};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done. Where it changes data, nothing has changed.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// match db.query("SELECT ?s { ?s ?p }") {
///     Err(snowmelt::Error::Syntax { line, column, .. }) => assert_eq!((line, column), (1, 19)),
///     other => panic!("{:?}", other.map(drop)),
/// }
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not SPARQL. The place counts from 1; 0 where it is unknown.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The fault at that place, with its likely cause.
        message: String,
        /// All faults of the text.
        faults: SyntaxFaults,
    },
    /// SPARQL that is not supported.
    #[error("line {line}, column {column}: {construct} is not supported")]
    Unsupported {
        /// The construct, as SPARQL writes it.
        construct: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// A parameter that the text has no place for, or that cannot be one.
    #[error("the parameter ?{name}: {why}")]
    Parameter {
        /// Its name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// The text is another form of query than the function runs.
    #[error("expected {expected}, but the text is {found}")]
    Form {
        /// The form the function runs.
        expected: &'static str,
        /// The form of the text.
        found: &'static str,
    },
    /// A value of a row that was asked for and is not there, or of another type.
    #[error("column {name}: {why}")]
    Column {
        /// The column.
        name: String,
        /// Why.
        why: String,
    },
    /// The time limit was reached.
    #[error("stopped after the time limit of {0:?}")]
    Timeout(Duration),
    /// The flag to cancel was set.
    #[error("cancelled")]
    Cancelled,
    /// More memory is needed than its limit or the budget allows.
    #[error(transparent)]
    Memory(Box<dyn std::error::Error + Send + Sync>),
    /// Too many others run; later it may work.
    #[error(transparent)]
    Busy(Box<dyn std::error::Error + Send + Sync>),
    /// A text, term or answer goes beyond a limit, which the message names.
    #[error(transparent)]
    TooLarge(Box<dyn std::error::Error + Send + Sync>),
    /// A document that is not what its format says. Nothing was loaded.
    #[error("{name}:{line}:{column}: {message}")]
    Document {
        /// The file, or the name of the reader.
        name: String,
        /// Line, from 1.
        line: u64,
        /// Column in characters, from 1; 0 where it is unknown.
        column: u64,
        /// The fault at that place.
        message: String,
    },
    /// An input that cannot be read.
    #[error("cannot read {name}: {source}")]
    Input {
        /// The file, or the name of the reader.
        name: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A format that cannot be written or is unknown.
    #[error("the format {name} is not supported here")]
    Format {
        /// The format.
        name: String,
    },
    /// A setting that does not work.
    #[error("{name}: {message}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its fault.
        message: String,
    },
    /// There is no database in the directory.
    #[error("{}: not a Snowmelt database ({why})", .path.display())]
    NotADatabase {
        /// The directory.
        path: PathBuf,
        /// The missing thing.
        why: String,
    },
    /// There is a database already.
    #[error("{}: there is already a database", .path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// Another process has it open.
    #[error("{}: the database is in use by process {holder}", .path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process, as far as it is known.
        holder: String,
    },
    /// It is open for reading only.
    #[error("{}: open for reading only", .path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// A device has no space left.
    #[error("{}: no space left; nothing has changed: free some and try again", .path.display())]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Data on the device differs from the data written: restore the database from a copy.
    #[error("{0}; restore the database from a copy")]
    Damaged(Box<dyn std::error::Error + Send + Sync>),
    /// A step of the transaction failed before.
    #[error("a step of the transaction failed, so nothing of it is done")]
    TransactionFailed,
    /// This thread has a transaction open, and would wait for its end; or it runs a function that a
    /// query or update called, which cannot change a database.
    #[error(
        "this thread has a transaction or a call of a query's function open: make the change through the transaction, or end it first"
    )]
    InTransaction,
    /// The database is in memory: there are no files to copy. Dump it instead.
    #[error("a database in memory has no files to copy; dump it instead")]
    InMemory,
    /// Anything else, as the parts below say it.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// All faults of a text. As text, each is its place, what is wrong, the likely cause, the line of
/// the text, and a mark below the place:
///
/// ```text
/// line 1, column 30: found "LIMT", expected "LIMIT", …; is LIMIT meant?
///   SELECT * { ?s ?p ?o . } LIMT 3
///                           ^^^^
/// ```
///
/// It is empty where the text was read in pieces, and where it is an update in place of a query or
/// the other way round.
#[derive(Clone, Debug, Default)]
pub struct SyntaxFaults(Option<Box<SyntaxError>>);

impl fmt::Display for SyntaxFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |error| Report::new(error, &[]).fmt(f))
    }
}

impl Error {
    fn syntax(line: usize, column: usize, message: String) -> Self {
        Error::Syntax { line, column, message, faults: SyntaxFaults::default() }
    }

    fn of_syntax(error: Box<SyntaxError>) -> Self {
        let cause = likely_cause(&error, &[]).map(|cause| format!("; {cause}"));
        let message = format!("{}{}", error.message, cause.unwrap_or_default());
        Error::Syntax { line: error.line, column: error.column, message, faults: SyntaxFaults(Some(error)) }
    }

    /// The error with its place in `text`, where the text that was run had `head` before it, such
    /// as declarations of prefixes in one line.
    #[must_use]
    pub fn without_head(self, head: &str, text: &str) -> Self {
        let chars = head.chars().count();
        let moved =
            |line, column: usize| if line == 1 { column.saturating_sub(chars).max(1) } else { column };
        match self {
            Error::Syntax { faults: SyntaxFaults(Some(error)), .. } => {
                Error::of_syntax(error.without_head(head, text))
            }
            Error::Syntax { line, column, message, .. } => Error::syntax(line, moved(line, column), message),
            Error::Unsupported { construct, line, column } => {
                Error::Unsupported { construct, line, column: moved(line, column) }
            }
            other => other,
        }
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        use QueryError as E;
        match error {
            E::Parse { syntax: Some(error), .. } => Error::of_syntax(error),
            E::Parse { line, column, message, .. } => Error::syntax(line, column, message),
            E::WrongLanguage { found, line, column } => {
                let message = match found {
                    SparqlLanguage::Query => "this is a query, not an update; run it with `query`",
                    SparqlLanguage::Update => "this is an update, not a query; run it with `update`",
                };
                Error::syntax(line, column, message.to_owned())
            }
            E::Unsupported { construct, line, column } => Error::Unsupported { construct, line, column },
            E::Parameter { name, why } => Error::Parameter { name, why },
            E::Timeout(after) => Error::Timeout(after),
            E::Cancelled => Error::Cancelled,
            E::Memory { .. } | E::TooMuch => Error::Memory(Box::new(error)),
            E::Busy { .. } => Error::Busy(Box::new(error)),
            E::TooLarge { .. }
            | E::TextMemory { .. }
            | E::TermTooLong { .. }
            | E::Search { .. }
            | E::Rows(_) => Error::TooLarge(Box::new(error)),
            E::Load(error) => error.into(),
            E::Store(error) => error.into(),
            other => Error::Other(Box::new(other)),
        }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Syntax { file, line, column, message, .. } => {
                Error::Document { name: file, line, column, message }
            }
            LoadError::Input { file, source } => Error::Input { name: file, source },
            LoadError::DiskFull { path } => Error::DiskFull { path },
            LoadError::Store(error) => error.into(),
            LoadError::Graph(error) => error.into(),
            LoadError::Cancelled => Error::Cancelled,
            other => Error::Other(Box::new(other)),
        }
    }
}

impl From<GraphError> for Error {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Store(error) => error.into(),
            GraphError::TermTooLong { .. } => Error::TooLarge(Box::new(error)),
            error if error.is_damage() => Error::Damaged(Box::new(error)),
            other => Error::Other(Box::new(other)),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotADatabase { path, why } => Error::NotADatabase { path, why },
            StoreError::Exists { path } => Error::Exists { path },
            StoreError::Locked { path, holder } => Error::Locked { path, holder },
            StoreError::ReadOnly { path } => Error::ReadOnly { path },
            StoreError::Full { path } => Error::DiskFull { path },
            StoreError::Memory { .. } => Error::Memory(Box::new(error)),
            StoreError::BuildBusy => Error::Busy(Box::new(error)),
            error if error.is_damage() => Error::Damaged(Box::new(error)),
            other => Error::Other(Box::new(other)),
        }
    }
}
